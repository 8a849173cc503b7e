// What several test files need is made by the first that asks, and once per run of the tests: the build, a project with
// the packed packages. The files are tested in processes of their own, so they meet in a folder.

import { spawnSync } from 'node:child_process';
import {
  chmodSync,
  closeSync,
  existsSync,
  mkdtempSync,
  openSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statfsSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { freemem, tmpdir } from 'node:os';
import { join } from 'node:path';

const VARIABLE = 'ALLIUM_TEST_RUN';

/** In memory, where there is such a place: stores write through to the disk at every step, and that is what tests wait for. */
const MEMORY = '/dev/shm';
/** A whole run took 376 MB at most. */
const ROOM = 2 * 2 ** 30;

/**
 * Opens the folder of a run, unless this process is part of one already. Child processes find it by a variable. Everything
 * temporary lies in it, and goes with it.
 *
 * @returns {{ forget: (name: string) => void, promise: (name: string) => () => void, close: () => void }} `forget` has
 *   it made again when it is asked for next. `promise` says that it is being made, and what it returns that it was.
 */
export function openRun() {
  const given = process.env[VARIABLE];
  const outside = process.env.TMPDIR;
  if (given === undefined) openFolder();
  const folder = process.env[VARIABLE] ?? '';
  return {
    forget(name) {
      for (const file of [`${name}.json`, `${name}.lock`]) rmSync(join(folder, file), { force: true });
    },
    promise(name) {
      take(join(folder, `${name}.lock`));
      return () => finish(join(folder, `${name}.json`), { made: true });
    },
    close() {
      if (given !== undefined) return;
      delete process.env[VARIABLE];
      if (outside === undefined) delete process.env.TMPDIR;
      else process.env.TMPDIR = outside;
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

function openFolder() {
  const inMemory = process.env.TMPDIR === undefined && hasRoom();
  if (inMemory) removeAbandoned();
  const place = inMemory ? MEMORY : tmpdir();
  const folder = mkdtempSync(join(place, 'allium-run-'));
  // Postgres runs as somebody else, who has to get to its data.
  chmodSync(folder, 0o755);
  process.env[VARIABLE] = folder;
  process.env.TMPDIR = folder;
}

/** Is there room for a whole run, and can programs be started there? In containers often neither is so. */
function hasRoom() {
  if (!existsSync(MEMORY)) return false;
  const { bavail, bsize } = statfsSync(MEMORY);
  if (Math.min(bavail * bsize, freemem()) < ROOM) return false;
  const folder = mkdtempSync(join(MEMORY, 'allium-run-'));
  const program = join(folder, 'program');
  writeFileSync(program, '#!/bin/sh\n', { mode: 0o755 });
  const { status } = spawnSync(program);
  rmSync(folder, { recursive: true });
  return status === 0;
}

/** Folders of runs that were killed hours ago: memory is not to be wasted on them. */
function removeAbandoned() {
  for (const name of readdirSync(MEMORY).filter((one) => one.startsWith('allium-run-'))) {
    const folder = join(MEMORY, name);
    const { mtimeMs = Date.now() } = statSync(folder, { throwIfNoEntry: false }) ?? {};
    if (Date.now() - mtimeMs > 6 * 3_600_000) rmSync(folder, { recursive: true, force: true });
  }
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
    finish(file, outcome);
  }
  await appears(file);
  const { made, error } = JSON.parse(readFileSync(file, 'utf8'));
  if (error !== undefined) throw new Error(error);
  return made;
}

/** Waits for what was promised in this run. What nobody promised is there already, or will not come. */
export async function whenMade(/** @type {string} */ name) {
  const folder = process.env[VARIABLE];
  if (folder !== undefined && existsSync(join(folder, `${name}.lock`)))
    await appears(join(folder, `${name}.json`));
}

/** Others see all of it or nothing. */
function finish(/** @type {string} */ file, /** @type {object} */ outcome) {
  writeFileSync(`${file}.new`, JSON.stringify(outcome));
  renameSync(`${file}.new`, file);
}

async function appears(/** @type {string} */ file) {
  while (!existsSync(file)) await new Promise((resolve) => setTimeout(resolve, 20));
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
