/**
 * The words of a sentence, their pairs and their pieces as numbers: what the lexicon has no concept for still tells what a text
 * is about, and pieces tell it for words that were never seen.
 */
import { isLetterCode, isSpaceless } from './scripts.js';

/** They share these numbers: few enough for a small table, many enough that most have one to themselves. */
export const GRAMS = 16_384;

/** A piece of a word is this long; the edges of the word count as letters. */
const PIECE = 4;
const EDGE = 36;

/** What a number is of, so that a piece is not taken for the word that is spelled like it. */
const WORD = 0;
const OF_PIECE = 17;
const OPENING = 23;
const IDEOGRAPHS = 29;

/** Adds the numbers of what stands in `[start, end)` of a text, from `base` on. */
export function addGrams(text: string, start: number, end: number, base: number, into: Set<number>): void {
  const add = (hash: number) => into.add(base + numberOf(hash));
  let [count, before] = [0, 0];
  for (let at = start; at < end; at++) {
    const code = text.charCodeAt(at);
    if (isSpaceless(code)) {
      // These have no spaces between words: any two may be one.
      if (at + 1 < end && isSpaceless(text.charCodeAt(at + 1))) add(hashOf(text, at, at + 2, IDEOGRAPHS));
      continue;
    }
    if (!isLetterCode(code)) continue;
    const first = at;
    while (at < end && (isLetterCode(text.charCodeAt(at)) || text.charCodeAt(at) === 39)) at++;
    const word = hashOf(text, first, at, WORD);
    add(word);
    if (count === 0) add(word ^ OPENING);
    if (before !== 0) add(Math.imul(before, 31) ^ word);
    if (count === 1) add((Math.imul(before, 31) ^ word) + OPENING);
    for (let piece = first - 1; piece + PIECE <= at + 1; piece++) add(pieceHash(text, piece, first, at));
    before = word;
    count++;
    at--;
  }
}

function hashOf(text: string, start: number, end: number, seed: number): number {
  let hash = 0x811c9dc5 ^ seed;
  for (let at = start; at < end; at++) hash = Math.imul(hash ^ text.charCodeAt(at), 0x01000193);
  return hash;
}

/** Of the letters from `start` on in the word `[first, end)`, its edges included. */
function pieceHash(text: string, start: number, first: number, end: number): number {
  let hash = 0x811c9dc5 ^ OF_PIECE;
  for (let at = start; at < start + PIECE; at++)
    hash = Math.imul(hash ^ (at < first || at >= end ? EDGE : text.charCodeAt(at)), 0x01000193);
  return hash;
}

function numberOf(hash: number): number {
  const mixed = Math.imul(hash ^ (hash >>> 15), 0x85ebca6b);
  return (mixed ^ (mixed >>> 13)) & (GRAMS - 1);
}
