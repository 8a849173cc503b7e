// A real Redis server for tests: the one that is installed, or one from the system's packages.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { createInterface } from 'node:readline';
import { installDebianPackage } from './debian-package.mjs';
import { freePort } from './postgres.mjs';

/**
 * @typedef {object} RedisServer
 * @property {string} url
 * @property {() => Promise<void>} crash Kills it as a crash would, and starts it again on what it had on disk.
 * @property {() => void} pause Makes it stand still: connections stay open and nothing is answered, until it is `continued`.
 * @property {() => void} continue
 * @property {() => Promise<void>} stop
 */

/** @returns {Promise<RedisServer>} */
export async function startRedis() {
  const program = await findProgram();
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'allium-redis-'));
  const port = await freePort();
  const start = async () => {
    // The durable settings of the README.
    const settings = ['--appendonly', 'yes', '--appendfsync', 'always', '--maxmemory-policy', 'noeviction'];
    const child = spawn(
      program,
      ['--port', String(port), '--bind', '127.0.0.1', '--dir', folder, '--save', '', ...settings],
      { stdio: ['ignore', 'pipe', 'inherit'] },
    );
    /** @type {string[]} */
    const output = [];
    const lines = createInterface({ input: child.stdout });
    await /** @type {Promise<void>} */ (
      new Promise((resolve, reject) => {
        lines.on('line', (line) => {
          output.push(line);
          if (line.includes('Ready to accept connections')) resolve();
        });
        lines.on('close', () => reject(new Error(`redis-server did not start:\n${output.join('\n')}`)));
        child.on('error', reject);
      })
    );
    return child;
  };
  const end = async (/** @type {NodeJS.Signals} */ signal) => {
    const ended = once(child, 'exit');
    child.kill(signal);
    await ended;
  };
  let child = await start();
  return {
    url: `redis://127.0.0.1:${port}`,
    async crash() {
      await end('SIGKILL');
      child = await start();
    },
    pause: () => void child.kill('SIGSTOP'),
    continue: () => void child.kill('SIGCONT'),
    async stop() {
      await end('SIGTERM');
      fs.rmSync(folder, { recursive: true, force: true });
    },
  };
}

/** @returns {Promise<string>} */
async function findProgram() {
  const given = process.env.ALLIUM_TEST_REDIS_SERVER;
  if (given) return given;
  const found = () =>
    (process.env.PATH ?? '')
      .split(path.delimiter)
      .map((dir) => path.join(dir, 'redis-server'))
      .find((file) => fs.existsSync(file));
  const installed = found();
  if (installed !== undefined) return installed;
  console.warn('redis-server is not installed. Trying: apt-get install redis-server');
  /** @type {unknown} */
  let reason;
  try {
    await installDebianPackage('redis-server');
  } catch (error) {
    reason = error;
  }
  const now = found();
  if (now !== undefined) return now;
  throw new Error(
    'These tests need a Redis server, and there is none: redis-server is not on the PATH and apt-get could not install it. Install it, or name it in ALLIUM_TEST_REDIS_SERVER.',
    { cause: reason },
  );
}
