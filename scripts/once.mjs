// What several test files need is made by the first that asks, and once per run of the tests: the build, a project with
// the packed packages. The files are tested in processes of their own, so they meet in a folder.

import {
  closeSync,
  existsSync,
  mkdtempSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const VARIABLE = 'ALLIUM_TEST_RUN';

/**
 * Opens the folder of a run, unless this process is part of one already. Child processes find it by a variable.
 *
 * @returns {{ forget: (name: string) => void, close: () => void }} `forget` has it made again when it is asked for next.
 */
export function openRun() {
  const given = process.env[VARIABLE];
  const folder = given ?? mkdtempSync(join(tmpdir(), 'allium-run-'));
  process.env[VARIABLE] = folder;
  return {
    forget(name) {
      for (const file of [`${name}.json`, `${name}.lock`]) rmSync(join(folder, file), { force: true });
    },
    close() {
      if (given !== undefined) return;
      delete process.env[VARIABLE];
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

/**
 * Returns what `make` made, here or in another process of the run; its error is thrown in all of them.
 *
 * @template T
 * @param {string} name
 * @param {(folder: string) => Promise<T>} make Returns JSON. What it makes may lie in `folder`, which goes with the run.
 * @returns {Promise<T>}
 */
export async function oncePerRun(name, make) {
  const folder = process.env[VARIABLE];
  if (folder === undefined)
    throw new Error(`There is no run in which "${name}" is made once: openRun() begins one.`);
  const file = join(folder, `${name}.json`);
  if (take(join(folder, `${name}.lock`))) {
    const outcome = await make(folder).then(
      (made) => ({ made }),
      (error) => ({ error: error instanceof Error ? error.message : String(error) }),
    );
    writeFileSync(`${file}.new`, JSON.stringify(outcome));
    renameSync(`${file}.new`, file);
  }
  while (!existsSync(file)) await new Promise((resolve) => setTimeout(resolve, 20));
  const { made, error } = JSON.parse(readFileSync(file, 'utf8'));
  if (error !== undefined) throw new Error(error);
  return made;
}

/** Whether this process is the first. */
function take(/** @type {string} */ lock) {
  try {
    closeSync(openSync(lock, 'wx'));
    return true;
  } catch (error) {
    if (/** @type {NodeJS.ErrnoException} */ (error).code === 'EEXIST') return false;
    throw error;
  }
}
