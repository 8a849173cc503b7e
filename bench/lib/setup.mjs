/** What the benchmark runs on: the installed peers, their versions, the machine. */
import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import os from 'node:os';
import { fileURLToPath } from 'node:url';

const BENCH = fileURLToPath(new URL('..', import.meta.url));
const WORKSPACE = fileURLToPath(new URL('../..', import.meta.url));

/** Installs the peers if they are not there as the lockfile wants them. A failure leaves rows that say so. */
export function installPeers() {
  if (isInstalled()) return;
  console.log('Installing the peers of the comparison (bench/package.json) …');
  const command = existsSync(`${BENCH}package-lock.json`) ? 'ci' : 'install';
  const { status } = spawnSync('npm', [command, '--prefix', BENCH], { cwd: BENCH, stdio: 'inherit' });
  if (status !== 0) console.log('The peers could not be installed; their rows will say what is missing.');
}

function isInstalled() {
  const { dependencies } = readJson(`${BENCH}package.json`);
  return Object.entries(dependencies).every(([name, version]) => versionOf(name) === version);
}

export function isAlliumBuilt() {
  return existsSync(`${WORKSPACE}packages/allium/dist/index.js`);
}

/** Versions by package name; a package that is not there has none. */
export function versions() {
  const names = Object.keys(readJson(`${BENCH}package.json`).dependencies);
  return new Map([
    ['node', process.versions.node],
    ['allium', readJson(`${WORKSPACE}packages/allium/package.json`).version],
    ...names.map((name) => [name, versionOf(name) ?? 'not installed']),
  ]);
}

function versionOf(name) {
  const path = `${BENCH}node_modules/${name}/package.json`;
  return existsSync(path) ? readJson(path).version : undefined;
}

const readJson = (path) => JSON.parse(readFileSync(path, 'utf8'));

export function machine() {
  const cpus = os.cpus();
  const memory = Math.round(os.totalmem() / 1024 ** 3);
  return `${cpus.length} × ${cpus[0]?.model.trim() ?? 'unknown CPU'}, ${memory} GB, ${os.platform()} ${os.arch()}`;
}
