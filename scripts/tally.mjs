// Counting what passed and failed: each checking script tells its tally, and the gate adds them up.

import { existsSync, readFileSync, writeFileSync } from 'node:fs';

/** @typedef {{ passed: number, failed: number, skipped: number }} Tally */

/** The closing line: `N passed, N failed`, plain and alone, so that any CI can read it. */
export function tallyLine(/** @type {Tally} */ { passed, failed, skipped }) {
  return `${passed} passed, ${failed} failed${skipped > 0 ? `, ${skipped} skipped` : ''}`;
}

/** Hands the tally to the gate when the gate runs this script (it names a file to write); false when nobody asked. */
export function record(/** @type {Tally} */ tally) {
  const file = process.env.ALLIUM_TALLY_FILE;
  if (!file) return false;
  writeFileSync(file, JSON.stringify(tally));
  return true;
}

/** @returns {Tally | undefined} What a script recorded in `file`. */
export function readTally(/** @type {string} */ file) {
  return existsSync(file) ? JSON.parse(readFileSync(file, 'utf8')) : undefined;
}
