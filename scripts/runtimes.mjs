// The runtimes that the tests of examples/http start: Bun, Deno, Next.js, and workerd with Miniflare. They are large, so no
// package of the repository depends on them: they are installed once, into a folder of the user's cache.

import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';

const folder = process.env.ALLIUM_TEST_RUNTIMES ?? join(homedir(), '.cache', 'allium-runtimes');

/** What is installed for each, and the file that is there afterwards. */
const RUNTIMES = {
  bun: { packages: ['bun@1'], file: 'node_modules/bun/bin/bun.exe' },
  deno: { packages: ['deno@2'], file: `node_modules/@deno/${denoPackage()}/deno` },
  next: {
    packages: ['next@16', 'react@19', 'react-dom@19'],
    file: 'node_modules/next/dist/bin/next',
  },
  miniflare: { packages: ['miniflare@4'], file: 'node_modules/miniflare/dist/src/index.js' },
};

/** @typedef {keyof typeof RUNTIMES} Runtime */

function denoPackage() {
  const arch = process.arch === 'arm64' ? 'arm64' : 'x64';
  return process.platform === 'linux' ? `linux-${arch}-glibc` : `${process.platform}-${arch}`;
}

/** Where a runtime is installed. */
export function runtimeFolder(/** @type {Runtime} */ name) {
  return join(folder, name);
}

/** The file to start, or undefined where it is not installed. */
export function findRuntime(/** @type {Runtime} */ name) {
  const path = join(folder, name, RUNTIMES[name].file);
  return existsSync(path) ? path : undefined;
}

function install(/** @type {Runtime} */ name) {
  const at = join(folder, name);
  mkdirSync(at, { recursive: true });
  writeFileSync(join(at, 'package.json'), '{ "private": true }\n');
  const { packages } = RUNTIMES[name];
  execFileSync('npm', ['install', '--no-audit', '--no-fund', '--silent', ...packages], {
    cwd: at,
    stdio: ['ignore', 'ignore', 'inherit'],
    shell: process.platform === 'win32',
  });
}

if (process.argv[1] && import.meta.url === pathToFileURL(process.argv[1]).href) {
  for (const name of /** @type {Runtime[]} */ (Object.keys(RUNTIMES))) {
    let why = 'npm has no program for this platform';
    try {
      if (!findRuntime(name)) install(name);
    } catch (error) {
      why = String(error).split('\n', 1).join('');
    }
    if (findRuntime(name)) console.log(`${name} is there.`);
    else console.error(`The test with ${name} will be SKIPPED: it could not be installed (${why}).`);
  }
}
