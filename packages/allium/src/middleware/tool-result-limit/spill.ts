/** Where results that are too long are kept: the port, one implementation in memory and one in files. */

import { createHash, randomUUID } from 'node:crypto';
import fs from 'node:fs';
import { readFile, rename, writeFile } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { checkInteger, checkOptions, invalidOption, makeFolder, pathError } from '../../kit/index.js';

/**
 * A Map, a Keyv, or anything with these methods, which may return promises.
 *
 * Contract: `get` returns exactly the text that `set` was given for the key, or nothing if it is gone. If `set`
 * throws, the end of the result is lost, not the call. If `get` throws, the model reads that as a result.
 */
export interface SpillStore {
  get(key: string): unknown;
  set(key: string, text: string): unknown;
}

/** Texts in memory, `maxChars` characters in all; beyond that the least recently used are forgotten. */
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

/**
 * Texts as files in a folder, which outlive the process. Nothing is ever deleted: that is up to the owner of the
 * folder.
 */
export function fileSpill(dir: string): SpillStore {
  if (typeof dir !== 'string' || dir === '') throw invalidOption('dir', 'the path of a folder', dir);
  // Resolved now, so that it stays the same if the process changes its folder.
  const folder = resolve(dir);
  // A key may hold anything; a file name may not.
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
      try {
        makeFolder(fs, dirname, folder);
        // Under another name first, so that nobody reads half a file.
        const half = join(folder, `${randomUUID()}.tmp`);
        await writeFile(half, text, { mode: 0o600 });
        await rename(half, fileOf(key));
      } catch (error) {
        throw pathError('fileSpill()', folder, error);
      }
    },
  };
}
