// Effects in the outside world: one line each, on disk before the tool goes on. Nothing of it goes through the store.

import fs from 'node:fs';

/** @typedef {{ tool: string, callId: string, key: string, pid: number }} Effect */

/** Opens a ledger for a process that has effects. */
export function openLedger(/** @type {string} */ path) {
  const file = fs.openSync(path, 'a');
  return (/** @type {Omit<Effect, 'pid'>} */ effect) => {
    fs.writeSync(file, line({ ...effect, pid: process.pid }));
    fs.fsyncSync(file);
  };
}

/** A line begins with a line break, which ends what a process before it left half-written when it was killed. */
export function line(/** @type {unknown} */ value) {
  return `\n${JSON.stringify(value)}\n`;
}

/** @returns {any[]} The lines of a file of JSON lines; none if it is not there. */
export function readLines(/** @type {string} */ path) {
  if (!fs.existsSync(path)) return [];
  return fs.readFileSync(path, 'utf8').split('\n').flatMap(whole);
}

/** Half a line was being written when its process was killed, and says nothing. */
function whole(/** @type {string} */ text) {
  if (text === '') return [];
  try {
    return [JSON.parse(text)];
  } catch {
    return [];
  }
}
