// Effects in the outside world: one line each, on disk before the tool goes on. Nothing of it goes through the store.

import fs from 'node:fs';

/** @typedef {{ tool: string, callId: string, key: string, pid: number }} Effect */

/** Opens a ledger for a process that has effects. */
export function openLedger(/** @type {string} */ path) {
  const file = fs.openSync(path, 'a');
  return (/** @type {Omit<Effect, 'pid'>} */ effect) => {
    fs.writeSync(file, `${JSON.stringify({ ...effect, pid: process.pid })}\n`);
    fs.fsyncSync(file);
  };
}

/** @returns {any[]} The lines of a file of JSON lines; none if it is not there. */
export function readLines(/** @type {string} */ path) {
  if (!fs.existsSync(path)) return [];
  const lines = fs.readFileSync(path, 'utf8').split('\n');
  // What comes after the last line break was being written when the process was killed.
  return lines.slice(0, -1).map((line) => JSON.parse(line));
}
