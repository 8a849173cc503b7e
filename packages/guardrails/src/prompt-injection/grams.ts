/** The words of a sentence and their pairs as numbers: what the lexicon has no concept for still tells what a text is about. */
import { isLetterCode } from './scripts.js';

/** Words share these numbers: few enough for a small table, many enough that most have one to themselves. */
export const GRAMS = 8192;

/** Adds the numbers of all words in `[start, end)` of a text, and of all pairs of words, from `base` on. */
export function addGrams(text: string, start: number, end: number, base: number, into: Set<number>): void {
  let before = 0;
  let hash = 0;
  for (let at = start; at <= end; at++) {
    const code = at < end ? text.charCodeAt(at) : 0;
    if (isLetterCode(code) || (code === 39 && hash !== 0)) {
      hash = Math.imul((hash || 0x811c9dc5) ^ code, 0x01000193);
      continue;
    }
    if (hash === 0) continue;
    into.add(base + numberOf(hash));
    if (before !== 0) into.add(base + numberOf(Math.imul(before, 31) ^ hash));
    before = hash;
    hash = 0;
  }
}

function numberOf(hash: number): number {
  const mixed = Math.imul(hash ^ (hash >>> 15), 0x85ebca6b);
  return (mixed ^ (mixed >>> 13)) & (GRAMS - 1);
}
