// The rooms of the kernel, top to bottom. A room may import from itself and from rooms below it, types included.
//   node scripts/rooms.mjs    prints the rooms, their sizes, and who breaks the arrows

import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { importsOf } from './imports.mjs';
import { isTest, resolveSource } from './layout.mjs';
import { alliumFolder } from './repository.mjs';

/** Name of a folder in `kernel/` → what lives there. The order is that of the arrows. */
export const rooms = {
  run: 'one run from start to end, and the loop',
  tools: 'a batch of calls: whether they may run, in which order, and how the batch ends',
  calls: 'one call of a tool: its arguments, its execution, its result',
  model: 'one model call: request, attempt, stream, answer',
  inbox: 'what comes in meanwhile: messages, answers, cancel',
  events: 'what goes out meanwhile: live messages, queue, observers',
  plan: 'what a plan says: the rule table, how much history is enough',
  layers: 'the onion',
  guards: 'the guard ring',
  stream: 'the parts of an answer: put together, and changed on their way',
  context: 'what hooks are given',
  journal: 'what is written, what it comes to when read, and how long the store may take',
  protocol: 'what users write against: middleware, contexts, tools, stores, events, results',
  messages: 'what is said: messages, the model port, prices, schemas',
  lib: 'nothing about agents: errors, clock, scope, hash, JSON, queues',
};

/** Imports that still go upward, as `from → to`. This list may only get shorter. */
export const exceptions = new Set([]);

/**
 * @param {ReadonlyMap<string, string>} sources Path below `src` (forward slashes) to code.
 * @returns {string[]} Every import that goes upward, as `from → to`, in order, each once.
 */
export function upwardImports(sources) {
  const order = Object.keys(rooms);
  const found = new Set();
  for (const [path, code] of sources) {
    const from = roomOf(path);
    if (from === undefined || isTest(path)) continue;
    for (const { specifier } of importsOf(path, code)) {
      const target = specifier?.startsWith('.') ? resolveSource(path, specifier, sources) : undefined;
      const to = target && roomOf(target);
      if (to && order.indexOf(to) < order.indexOf(from))
        found.add(`${path.slice('kernel/'.length)} → ${target.slice('kernel/'.length)}`);
    }
  }
  return [...found].sort();
}

/** The room of a file of the kernel; undefined for files elsewhere and for those that lie in no room. */
export function roomOf(/** @type {string} */ path) {
  const [, room] = /^kernel\/([^/]+)\//.exec(path) ?? [];
  return room !== undefined && room in rooms ? room : undefined;
}

/** @returns {Map<string, string>} */
export function readSources(folder = join(alliumFolder, 'src')) {
  const paths = readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter((path) =>
    path.endsWith('.ts'),
  );
  return new Map(paths.map((path) => [path.replaceAll('\\', '/'), readFileSync(join(folder, path), 'utf8')]));
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href) report();

function report() {
  const sources = readSources();
  const upward = upwardImports(sources);
  let total = 0;
  for (const [room, what] of Object.entries(rooms)) {
    const files = [...sources].filter(([path]) => roomOf(path) === room && !isTest(path));
    const lines = files.reduce((sum, [, code]) => sum + code.split('\n').length - 1, 0);
    total += lines;
    console.log(
      `${room.padEnd(10)}${String(files.length).padStart(4)} files ${String(lines).padStart(6)} lines   ${what}`,
    );
  }
  console.log(`${'kernel'.padEnd(10)}${' '.repeat(10)} ${String(total).padStart(6)} lines`);
  console.log(`\n${upward.length} imports go upward; ${exceptions.size} are known.`);
  for (const one of upward) console.log(`  ${one}`);
}
