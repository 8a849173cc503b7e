/** Where results that are too long are kept: the port, one in memory and one in files. */

import { createHash, randomUUID } from 'node:crypto';
import { mkdir, readFile, rename, writeFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { checkInteger, checkOptions, invalidOption } from '../../kit/index.js';

/**
 * A Map, a Keyv, or anything with these methods, which may return promises.
 *
 * Contract: `get` returns the very text that `set` was given for the key, or nothing when it is gone. What `set`
 * throws costs the end of the result, not the call; what `get` throws becomes a result the model can read.
 */
export interface SpillStore {
  get(key: string): unknown;
  set(key: string, text: string): unknown;
}

/** Texts in memory, `maxChars` characters in all; then those that were not used for longest are forgotten. */
export function memorySpill(
  options: { /** An integer ≥ 1. @default 50_000_000 */ readonly maxChars?: number } = {},
): SpillStore {
  checkOptions('memorySpill', options, ['maxChars']);
  const { maxChars = 50_000_000 } = options;
  checkInteger('maxChars', maxChars, 1);
  // A map keeps the order in which keys were set: the first one is the oldest.
  const texts = new Map<string, string>();
  let total = 0;
  const drop = (key: string): void => {
    total -= texts.get(key)?.length ?? 0;
    texts.delete(key);
  };
  return {
    get(key) {
      const text = texts.get(key);
      if (text === undefined) return undefined;
      texts.delete(key);
      texts.set(key, text);
      return text;
    },
    set(key, text) {
      if (text.length > maxChars)
        throw new RangeError(
          `The text has ${text.length} characters, more than the ${maxChars} of this store.`,
        );
      drop(key);
      texts.set(key, text);
      total += text.length;
      for (const oldest of texts.keys()) {
        if (total <= maxChars) break;
        drop(oldest);
      }
    },
  };
}

/** Texts as files in a folder, which outlive the process. Nothing is ever deleted: that is for whoever owns the folder. */
export function fileSpill(dir: string): SpillStore {
  if (typeof dir !== 'string' || dir === '') throw invalidOption('dir', 'the path of a folder', dir);
  // Resolved now: a process that changes its folder later does not move it.
  const folder = resolve(dir);
  // A key may hold anything, the name of a file may not.
  const fileOf = (key: string): string =>
    join(folder, `${createHash('sha256').update(key).digest('hex')}.txt`);
  return {
    async get(key) {
      try {
        return await readFile(fileOf(key), 'utf8');
      } catch (error) {
        if ((error as { code?: unknown }).code === 'ENOENT') return undefined;
        throw error;
      }
    },
    async set(key, text) {
      await mkdir(folder, { recursive: true });
      // Under another name first: nobody reads half a file.
      const half = join(folder, `${randomUUID()}.tmp`);
      await writeFile(half, text, { mode: 0o600 });
      await rename(half, fileOf(key));
    },
  };
}
