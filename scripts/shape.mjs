// The shape of the kernel: how large its rooms, files and functions may be, and how many files may import each other in
// a circle. Tests don't count.
//   node scripts/shape.mjs    prints what is too large and which circles are too long

import { posix } from 'node:path';
import { pathToFileURL } from 'node:url';
import { parseSync, Visitor } from 'oxc-parser';
import { importsOf } from './imports.mjs';
import { isTest, resolveSource } from './layout.mjs';
import { readSources, roomOf } from './rooms.mjs';

/** The most that each may have: lines of a room, a file and a function, and files of a cycle. */
export const LARGEST = { room: 2000, file: 350, function: 60, cycle: 3 };

/** What is larger all the same, without its size. This list may only get shorter. */
export const tooLarge = new Set(/** @type {string[]} */ ([]));

/**
 * @param {ReadonlyMap<string, string>} sources Path below `src` (forward slashes) to code.
 * @returns {string[]} One line per room, file, function and cycle that is too large, in order.
 */
export function shapeViolations(sources) {
  const kernel = new Map([...sources].filter(([path]) => roomOf(path) !== undefined && !isTest(path)));
  return [...tooLong(kernel), ...cyclesIn(kernel)].sort();
}

/** @returns {string[]} */
function tooLong(/** @type {ReadonlyMap<string, string>} */ kernel) {
  /** @type {Map<string, number>} */
  const rooms = new Map();
  /** @type {string[]} */
  const found = [];
  for (const [path, code] of kernel) {
    const room = /** @type {string} */ (roomOf(path));
    const lines = linesOf(code);
    rooms.set(room, (rooms.get(room) ?? 0) + lines);
    if (lines > LARGEST.file) found.push(`file ${short(path)}: ${lines} lines`);
    for (const { name, lines } of functionsIn(path, code))
      if (lines > LARGEST.function) found.push(`function ${name} in ${short(path)}: ${lines} lines`);
  }
  for (const [room, lines] of rooms) if (lines > LARGEST.room) found.push(`room ${room}: ${lines} lines`);
  return found;
}

/** @returns {{ name: string, lines: number }[]} */
function functionsIn(/** @type {string} */ path, /** @type {string} */ code) {
  /** @type {{ name: string, lines: number }[]} */
  const found = [];
  const names = new Map();
  const enter = (/** @type {any} */ node) => {
    const lines = linesOf(code.slice(node.start, node.end)) + 1;
    if (node.body) found.push({ name: names.get(node) ?? node.id?.name ?? '=>', lines });
  };
  new Visitor({
    MethodDefinition: (node) => void names.set(node.value, code.slice(node.key.start, node.key.end)),
    FunctionDeclaration: enter,
    FunctionExpression: enter,
    ArrowFunctionExpression: enter,
  }).visit(parseSync(path, code).program);
  return found;
}

/**
 * Groups of files that all reach each other by imports, types included, where a group is too large (Tarjan).
 *
 * @param {ReadonlyMap<string, string>} kernel
 * @returns {string[]}
 */
function cyclesIn(kernel) {
  /** @type {string[]} */
  const found = [];
  /** @type {Map<string, { index: number, low: number, open: boolean }>} */
  const seen = new Map();
  /** @type {string[]} */
  const stack = [];
  const visit = (/** @type {string} */ path) => {
    const here = { index: seen.size, low: seen.size, open: true };
    seen.set(path, here);
    stack.push(path);
    for (const target of targetsOf(path)) {
      const there = seen.get(target) ?? visit(target);
      if (there.open) here.low = Math.min(here.low, there.low);
    }
    if (here.low === here.index) {
      const group = stack.splice(stack.indexOf(path));
      for (const member of group) /** @type {any} */ (seen.get(member)).open = false;
      if (group.length > LARGEST.cycle)
        found.push(`cycle ${group.map(short).sort().join(', ')}: ${group.length} files`);
    }
    return here;
  };
  const targetsOf = (/** @type {string} */ path) =>
    importsOf(path, kernel.get(path) ?? '').flatMap(({ specifier }) => {
      const target = specifier?.startsWith('.') ? resolveSource(path, specifier, kernel) : undefined;
      return target ?? [];
    });
  for (const path of kernel.keys()) if (!seen.has(path)) visit(path);
  return found;
}

function linesOf(/** @type {string} */ code) {
  return code.split('\n').length - 1;
}

function short(/** @type {string} */ path) {
  return posix.relative('kernel', path);
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href)
  console.log(shapeViolations(readSources()).join('\n') || 'Nothing is too large.');
