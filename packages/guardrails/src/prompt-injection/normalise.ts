/** Text as a reader understands it, whatever it is written with, and where each of its characters stands in the original. */

export interface Normalised {
  /** Lower case, one space between words, no marks, no invisible characters, Latin letters for those that only look like it. */
  readonly text: string;
  /** The place in the original of the character at `index`; the end of the original for the length of the text. */
  start(index: number): number;
  /** Where the character at `index` ends in the original. */
  end(index: number): number;
}

/** Letters of other scripts that look like Latin ones. */
const LOOKALIKES: Readonly<Record<string, string>> = Object.fromEntries(
  'аa вb сc ԁd еe ѐe ёe һh нh іi їi јj кk ӏl мm оo рp ԛq ѕs тt уy ўy ԝw хx ԍg ɡg ɩi ɪi ʏy αa βb εe ηn ιi κk νv οo ρp σo τt υu χx ωw γy һh ոn սu օo ցg զq ӀI'
    .split(' ')
    .map((pair) => [pair.slice(0, -1), pair.slice(-1).toLowerCase()]),
);

const LEET: Readonly<Record<string, string>> = {
  0: 'o',
  1: 'i',
  3: 'e',
  4: 'a',
  5: 's',
  7: 't',
  '@': 'a',
  $: 's',
  '!': 'i',
};

/** More than one space, until spelled words are put together. */
const WIDE = '\n';

class Builder {
  readonly letters: string[] = [];
  readonly starts: number[] = [];
  readonly ends: number[] = [];

  push(letter: string, start: number, end: number): void {
    this.letters.push(letter);
    this.starts.push(start);
    this.ends.push(end);
  }
}

export function normalise(text: string): Normalised {
  const built = plainLetters(text);
  mendWords(built);
  const { letters, starts, ends } = joinSpelled(built);
  return {
    text: letters.join(''),
    start: (index) => starts[index] ?? text.length,
    end: (index) => ends[index] ?? text.length,
  };
}

/** Each character in its plainest form; those that nobody sees are gone. */
function plainLetters(text: string): Builder {
  const built = new Builder();
  let space = true;
  for (let place = 0; place < text.length; ) {
    const code = text.codePointAt(place)!;
    const end = place + (code > 0xffff ? 2 : 1);
    const plain = code < 128 ? asciiForm(code) : plainForm(code);
    if (plain === ' ') {
      // Between spelled words stands more than between their letters.
      if (!space) built.push(' ', place, end);
      else if (built.letters.length > 0) built.letters[built.letters.length - 1] = WIDE;
      space = true;
    } else if (plain !== '') {
      for (const letter of plain) built.push(letter, place, end);
      space = false;
    }
    place = end;
  }
  return built;
}

const ASCII = Array.from({ length: 128 }, (_, code) =>
  code <= 32 || code === 127 ? ' ' : String.fromCharCode(code).toLowerCase(),
);

function asciiForm(code: number): string {
  return ASCII[code]!;
}

const FORMS = new Map<number, string>();

function plainForm(code: number): string {
  const known = FORMS.get(code);
  if (known !== undefined) return known;
  const made = formOf(code);
  // There are not many of them, whatever is read.
  if (FORMS.size < 20_000) FORMS.set(code, made);
  return made;
}

/** Letters that show nothing: of Hangul. */
const FILLERS = new Set([0x115f, 0x1160, 0x3164, 0xffa0]);

function formOf(code: number): string {
  // Tags repeat ASCII, invisibly.
  if (code >= 0xe0020 && code <= 0xe007e) return asciiForm(code - 0xe0000);
  const letter = String.fromCodePoint(code);
  if (FILLERS.has(code) || /[\p{Cf}\p{M}]/u.test(letter)) return '';
  if (/[\p{Z}\p{Cc}]/u.test(letter)) return ' ';
  if (/[‘’‚‛′]/.test(letter)) return "'";
  if (/[“”„‟″«»]/.test(letter)) return '"';
  return (
    letter
      .normalize('NFKD')
      .replace(/\p{Mn}/gu, '')
      .toLowerCase() || ' '
  );
}

/** Words that mix letters of several scripts, or letters and digits, are spelled with Latin letters. */
function mendWords({ letters }: Builder): void {
  const latinText = isLatin(letters);
  for (let start = 0; start < letters.length; ) {
    if (isSpace(letters[start]!)) {
      start++;
      continue;
    }
    let end = start;
    let latin = false;
    let similar = false;
    let leet = false;
    for (; end < letters.length && !isSpace(letters[end]!); end++) {
      const letter = letters[end]!;
      if (letter >= 'a' && letter <= 'z') latin = true;
      else if (LOOKALIKES[letter] !== undefined) similar = true;
      else if (LEET[letter] !== undefined) leet = true;
    }
    if ((latin || (latinText && similar)) && (similar || leet))
      for (let i = start; i < end; i++) {
        const letter = letters[i]!;
        const inside = i > start && i < end - 1;
        letters[i] =
          LOOKALIKES[letter] ?? (letter !== '!' || inside ? leetIn(letters, i, start, end) : letter);
      }
    start = end;
  }
}

/** Is it written in Latin letters, but for some that look like them? */
function isLatin(letters: readonly string[]): boolean {
  let latin = 0;
  let other = 0;
  for (const letter of letters) {
    if (letter >= 'a' && letter <= 'z') latin++;
    else if (letter > '\u0370' && LOOKALIKES[letter] === undefined && LETTER.test(letter)) other++;
  }
  return latin > 4 * other;
}

function isSpace(letter: string): boolean {
  return letter === ' ' || letter === WIDE;
}

/** A digit stands for a letter if letters stand beside it. */
function leetIn(letters: readonly string[], i: number, start: number, end: number): string {
  const letter = letters[i]!;
  const meant = LEET[letter];
  if (meant === undefined) return letter;
  const beside = (at: number) => at >= start && at < end && /\p{L}/u.test(letters[at]!);
  return beside(i - 1) || beside(i + 1) ? meant : letter;
}

/**
 * `i g n o r e` and `i-g-n-o-r-e` are one word. Two or more spaces, or another sign, end it. It takes five letters to tell
 * that a text is spelled, for shorter rows are initials, options and sums; then its short words are put together as well.
 */
function joinSpelled({ letters, starts, ends }: Builder): Builder {
  const joined = new Builder();
  const rows = spelledRows(letters);
  const spelled = rows.some(([first, last]) => last - first >= 8);
  let next = 0;
  for (let at = 0; at < letters.length; at++) {
    const row = rows[next];
    if (row?.[0] !== at) {
      joined.push(letters[at] === WIDE ? ' ' : letters[at]!, starts[at]!, ends[at]!);
      continue;
    }
    next++;
    if (!spelled) {
      joined.push(letters[at]!, starts[at]!, ends[at]!);
      continue;
    }
    for (let i = at; i <= row[1]; i += 2) joined.push(letters[i]!, starts[i]!, ends[i]!);
    at = row[1];
  }
  return joined;
}

/** Where single letters with one sign between them begin and end. */
function spelledRows(letters: readonly string[]): (readonly [number, number])[] {
  const rows: (readonly [number, number])[] = [];
  const isLetter = (at: number) => LETTER.test(letters[at] ?? '');
  for (let at = 0; at < letters.length; at++) {
    const sign = letters[at + 1];
    if (sign === undefined || !SEPARATORS.has(sign) || !isLetter(at) || isLetter(at - 1)) continue;
    let last = at;
    while (letters[last + 1] === sign && isLetter(last + 2) && !isLetter(last + 3)) last += 2;
    if (last === at) continue;
    rows.push([at, last]);
    at = last;
  }
  return rows;
}

const LETTER = /^\p{L}$/u;
const SEPARATORS = new Set([' ', '-', '.', '_', '*']);
