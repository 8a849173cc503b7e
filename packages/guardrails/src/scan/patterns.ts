/** Words and patterns of users, searched in time proportional to the text. */
import { createRequire } from 'node:module';
import { invalidOption } from 'allium/kit';
import { isWordCode } from './finding.js';

/** What is used of re2js. It is loaded when somebody brings a pattern. */
interface Re2 {
  readonly RE2JS: {
    compile(pattern: string, flags?: number): { matcher(text: string): Matcher };
    translateRegExp(pattern: string): string;
    readonly CASE_INSENSITIVE: number;
    readonly MULTILINE: number;
    readonly DOTALL: number;
  };
}

interface Matcher {
  find(start?: number): boolean;
  start(): number;
  end(): number;
}

/**
 * Tells where matches begin and end. What begins before `from` is decided already, and need not be found again: words are
 * searched from there on, patterns from the beginning, as what they match depends on the match before.
 */
export type Search = (text: string, found: (start: number, end: number) => void, from?: number) => void;

let re2: Re2 | undefined;

/**
 * A pattern that runs in linear time, whatever the text. What RE2 can't do (look-around, back-references) is refused
 * with the reason, because it could take forever on some text.
 */
export function linearPattern(option: string, pattern: RegExp | string): Search {
  const source = typeof pattern === 'string' ? pattern : pattern?.source;
  if (typeof source !== 'string' || source === '')
    throw invalidOption(option, 'a regular expression, or the source of one', pattern);
  const flags = typeof pattern === 'string' ? '' : pattern.flags;
  const unknown = flags.replace(/[gimsuyd]/g, '');
  if (unknown !== '')
    throw invalidOption(option, 'a regular expression with the flags i, m, s and u only', pattern);
  re2 ??= createRequire(import.meta.url)('re2js') as Re2;
  const { RE2JS } = re2;
  const bits =
    (flags.includes('i') ? RE2JS.CASE_INSENSITIVE : 0) |
    (flags.includes('m') ? RE2JS.MULTILINE : 0) |
    (flags.includes('s') ? RE2JS.DOTALL : 0);
  let compiled: ReturnType<Re2['RE2JS']['compile']>;
  try {
    compiled = RE2JS.compile(RE2JS.translateRegExp(source), bits);
  } catch (cause) {
    const why = cause instanceof Error ? cause.message : String(cause);
    throw invalidOption(
      option,
      `a pattern that runs in linear time, without look-around and back-references (${why})`,
      pattern,
    );
  }
  return (text, found) => {
    const matcher = compiled.matcher(text);
    for (let ok = matcher.find(); ok; ) {
      const [start, end] = [matcher.start(), matcher.end()];
      if (end > start) found(start, end);
      if (end >= text.length) return;
      ok = matcher.find(end > start ? end : end + 1);
    }
  };
}

/** One character of words that begin alike, and what may follow it. */
interface Letter {
  readonly next: Map<number, Letter>;
  /** A word ends here. */
  end: boolean;
}

const SPACE = 32;

/**
 * Words and phrases as whole words, in any case and with any number of spaces between them. One walk over the text,
 * however many words there are.
 */
export function wordPattern(words: readonly string[]): Search {
  const root: Letter = { next: new Map(), end: false };
  for (const word of words) {
    let letter = root;
    for (const code of folded(word.trim().replace(/\s+/g, ' '))) {
      const next = letter.next.get(code) ?? { next: new Map(), end: false };
      letter.next.set(code, next);
      letter = next;
    }
    letter.end = true;
  }
  const first = new Uint8Array(128);
  for (const code of root.next.keys()) if (code < 128) first[code] = first[upperCode(code)] = 1;
  return (text, found, from = 0) => {
    let inside = from > 0 && isWordCode(text.charCodeAt(from - 1));
    for (let place = from; place < text.length; place++) {
      const code = text.charCodeAt(place);
      const begins = !inside;
      inside = isWordCode(code);
      if (code < 128 ? first[code] === 0 || (inside && !begins) : inside && !begins) continue;
      const end = wordEnd(text, place, root);
      if (end === -1) continue;
      found(place, end);
      place = end - 1;
      inside = isWordCode(text.charCodeAt(place));
    }
  };
}

/** Where the longest word that begins here ends; -1 if none does. */
function wordEnd(text: string, start: number, root: Letter): number {
  let end = -1;
  let letter: Letter | undefined = root;
  for (let place = start; letter && place < text.length; place++) {
    let code = foldedCode(text.charCodeAt(place));
    if (isSpace(code)) {
      let spaces = 1;
      while (spaces < 8 && isSpace(text.charCodeAt(place + 1))) {
        place++;
        spaces++;
      }
      code = SPACE;
    }
    letter = letter.next.get(code);
    if (letter?.end && !(isWordCode(text.charCodeAt(place)) && isWordCode(text.charCodeAt(place + 1))))
      end = place + 1;
  }
  return end;
}

function folded(word: string): number[] {
  return Array.from({ length: word.length }, (_, i) => foldedCode(word.charCodeAt(i)));
}

/** The code of a letter in lower case. */
function foldedCode(code: number): number {
  if (code < 128) return code >= 65 && code <= 90 ? code + 32 : code;
  const lower = String.fromCharCode(code).toLowerCase();
  return lower.length === 1 ? lower.charCodeAt(0) : code;
}

function upperCode(code: number): number {
  return code >= 97 && code <= 122 ? code - 32 : code;
}

function isSpace(code: number): boolean {
  return code === SPACE || (code >= 9 && code <= 13) || code === 0xa0;
}
