/** Text as a reader understands it, however it is written, and where each of its characters is in the original. */
import { Letters, type Places, textOf } from '../scan/letters.js';
import { visibleForm } from '../scan/visible.js';
import { isLetterCode, isSpaceless } from './scripts.js';

/** Lower case, no marks, no invisible characters, Latin letters for those that only look like it. */
export interface Normalised extends Places {
  /** It contains words that were spelled letter by letter, without a sign where a word ends. */
  readonly runTogether: boolean;
}

/** Letters of other scripts that look like Latin ones, by their codes. */
const LOOKALIKES = new Map(
  'аa вb сc ԁd еe ѐe ёe һh нh іi їi јj кk ӏl мm оo рp ԛq ѕs тt уy ўy ԝw хx ԍg ɡg ɑa ɩi ɪi ıi ʏy ʀr ɴn ɢg ʜh ʟl ᴀa ʙb ᴄc ᴅd ᴇe ᴊj ᴋk ᴍm ᴏo ᴘp ᴛt ᴜu ᴠv ᴡw ᴢz αa βb εe ηn ιi κk νv οo ρp σo τt υu χx ωw γy ոn սu օo ցg զq'
    .split(' ')
    .map((pair) => [pair.charCodeAt(0), pair.charCodeAt(1)] as const),
);

/** Digits and signs that stand for letters. */
const LEET = new Uint8Array(128);
for (const pair of ['0o', '1i', '3e', '4a', '5s', '7t', '@a', '$s', '!i', '|l'])
  LEET[pair.charCodeAt(0)] = pair.charCodeAt(1);

const SPACE = 32;
const NEW_LINE = 10;
const EXCLAMATION = 33;
const AT = 64;

/** A digit or sign between letters, or before them; an `@` that isn't part of an address. */
const MAY_BE_LEET = /[a-z][0134579$!|]+[a-z]|(?<![\w.])[0134579$!|][a-z]{2}|[a-z]@[a-z]+(?![\w.-])/i;
/** Four single letters in a row, with one sign between them. */
const MAY_BE_SPELLED = /(?<![a-z])[a-z]([ \-._*~|/])[a-z]\1[a-z]\1[a-z](?![a-z])/i;

export function normalise(text: string): Normalised {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: plain ASCII needs no second look.
  const ascii = /^[\x00-\x7f]*$/.test(text);
  if (ascii && !MAY_BE_LEET.test(text) && !MAY_BE_SPELLED.test(text))
    return {
      text: text.toLowerCase(),
      runTogether: false,
      start: (index) => index,
      end: (index) => Math.min(index + 1, text.length),
    };
  const plain = plainLetters(text);
  mendWords(plain);
  const rows = spelledRows(plain);
  // It takes five letters to tell that a text is spelled: shorter rows are initials, options and sums.
  if (!rows.some(([first, last]) => last - first >= 8))
    return { ...plain.read(text.length), runTogether: false };
  return {
    ...joinSpelled(plain, rows).read(text.length),
    runTogether: rows.some(([first, last]) => last - first >= 24),
  };
}

/** Each character in its plainest form, without those that nobody sees. */
function plainLetters(text: string): Letters {
  const built = new Letters(text.length);
  for (let place = 0; place < text.length; ) {
    const code = text.codePointAt(place)!;
    const end = place + (code > 0xffff ? 2 : 1);
    if (code < 128) built.push(ASCII[code]!, place, end);
    else {
      const plain = plainForm(code);
      for (let i = 0; i < plain.length; i++) built.push(plain.charCodeAt(i), place, end);
    }
    place = end;
  }
  return built;
}

/** Lower case, with one space in place of everything that shows nothing. */
const ASCII = Array.from({ length: 128 }, (_, code) => {
  if (code === NEW_LINE) return NEW_LINE;
  return code <= SPACE || code === 127 ? SPACE : String.fromCharCode(code).toLowerCase().charCodeAt(0);
});

const FORMS = new Map<number, string>();

function plainForm(code: number): string {
  const known = FORMS.get(code);
  if (known !== undefined) return known;
  const made = formOf(code);
  // There are not many of them, whatever is read.
  if (FORMS.size < 20_000) FORMS.set(code, made);
  return made;
}

function formOf(code: number): string {
  const visible = visibleForm(code);
  if (visible === '') return '';
  if (/[‘’‚‛′]/.test(visible)) return "'";
  if (/[“”„‟″«»「」『』《》]/.test(visible)) return '"';
  if (/^\p{M}$/u.test(visible)) return '';
  return (
    visible
      .normalize('NFKD')
      .replace(/\p{Mn}/gu, '')
      .toLowerCase() || ' '
  );
}

/** Words that mix letters of several scripts, or letters and digits, are spelled with Latin letters. */
function mendWords(built: Letters): void {
  const { codes, length } = built;
  const latinText = isLatin(built);
  for (let start = 0; start < length; ) {
    let end = start;
    let latin = false;
    let similar = false;
    let leet = false;
    for (; end < length && !isSpace(codes[end]!); end++) {
      const code = codes[end]!;
      if (code >= 97 && code <= 122) latin = true;
      else if (code < 128) leet ||= LEET[code] !== 0;
      else similar ||= LOOKALIKES.has(code);
    }
    if ((latin || (latinText && similar)) && (similar || leet)) mendWord(codes, start, end);
    start = end + 1;
  }
}

/** An address of e-mail is no word with an `a` in it. */
const ADDRESS = /^[^@]+@[^@]+\.[^@]+$/;

function mendWord(codes: Uint16Array, start: number, end: number): void {
  const word = codes.subarray(start, end);
  if (word.includes(AT) && ADDRESS.test(textOf(word))) return;
  for (let i = start; i < end; i++) {
    const code = codes[i]!;
    const inside = i > start && i < end - 1;
    codes[i] = LOOKALIKES.get(code) ?? (code !== EXCLAMATION || inside ? leetIn(codes, i, start, end) : code);
  }
}

/** Is it written in Latin letters, but for some that look like them? */
function isLatin({ codes, length }: Letters): boolean {
  let latin = 0;
  let other = 0;
  for (let i = 0; i < length; i++) {
    const code = codes[i]!;
    if (code >= 97 && code <= 122) latin++;
    else if (code > 0x370 && isLetter(code) && !LOOKALIKES.has(code)) other++;
  }
  return latin > 4 * other;
}

function isSpace(code: number): boolean {
  return code === SPACE || code === NEW_LINE;
}

function isLetter(code: number | undefined): boolean {
  return code !== undefined && (isLetterCode(code) || isSpaceless(code));
}

/** A digit stands for a letter if letters stand beside it. */
function leetIn(codes: Uint16Array, i: number, start: number, end: number): number {
  const code = codes[i]!;
  const meant = code < 128 ? LEET[code]! : 0;
  if (meant === 0) return code;
  return (i > start && isLetter(codes[i - 1])) || (i + 1 < end && isLetter(codes[i + 1])) ? meant : code;
}

type Row = readonly [first: number, last: number];

/** `i g n o r e` and `i-g-n-o-r-e` are one word. Two or more spaces, or another sign, end it. */
function joinSpelled({ codes, starts, ends, length }: Letters, rows: readonly Row[]): Letters {
  const joined = new Letters(length);
  let next = 0;
  for (let at = 0; at < length; at++) {
    const row = rows[next];
    if (row?.[0] !== at) {
      joined.push(codes[at]!, starts[at]!, ends[at]!);
      continue;
    }
    next++;
    for (let i = at; i <= row[1]; i += 2) joined.push(codes[i]!, starts[i]!, ends[i]!);
    at = row[1];
  }
  return joined;
}

/** Where single letters with one sign between them begin and end. */
function spelledRows({ codes, length }: Letters): Row[] {
  const rows: Row[] = [];
  const letterAt = (at: number) => at >= 0 && at < length && isLetter(codes[at]);
  for (let at = 0; at + 2 < length; at++) {
    const sign = codes[at + 1]!;
    if (sign > 126 || !SEPARATORS[sign] || !letterAt(at) || letterAt(at - 1)) continue;
    let last = at;
    while (codes[last + 1] === sign && letterAt(last + 2) && !letterAt(last + 3)) last += 2;
    if (last === at) continue;
    rows.push([at, last]);
    at = last;
  }
  return rows;
}

const SEPARATORS: readonly boolean[] = Array.from({ length: 127 }, (_, code) =>
  ' -._*~|/'.includes(String.fromCharCode(code)),
);
