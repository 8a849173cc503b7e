/** Finds text that is hidden in an encoding: what it says, and where it is. */

export interface Hidden {
  readonly text: string;
  readonly start: number;
  readonly end: number;
}

/** One way to encode text: how a run of it begins, which characters continue it, and what it says. */
interface Encoding {
  /** Bounded, because the engine remembers every character of a match: megabytes in one match overflow its stack. */
  readonly pattern: RegExp;
  readonly more: RegExp;
  /** Contained in every run of it. */
  readonly sign?: string;
  readonly decode: (run: string) => string | undefined;
}

/** Longer runs are files and pictures: only their beginning is read. */
const LONGEST = 8192;

const ENCODINGS: readonly Encoding[] = [
  {
    pattern: /[A-Za-z0-9+/_-]{20,8192}={0,2}/g,
    more: /(?<!=)[A-Za-z0-9+/_-]{1,8192}={0,2}/y,
    decode: (run) => readable(Buffer.from(run, 'base64')),
  },
  {
    // Over several lines, as mails have it.
    pattern: /(?:^[A-Za-z0-9+/]{60,76}\r?\n){1,100}[A-Za-z0-9+/]{4,76}={0,2}/gm,
    more: /[A-Za-z0-9+/]{1,76}\r?\n?/y,
    sign: '\n',
    decode: (run) => readable(Buffer.from(run, 'base64')),
  },
  {
    pattern: /(?:[01]{8}[\s,]?){8,1000}/g,
    more: /(?:[01]{8}[\s,]?){1,1000}/y,
    decode: (run) => readable(Buffer.from(run.match(/[01]{8}/g)!.map((bits) => Number.parseInt(bits, 2)))),
  },
  {
    pattern: /(?:[0-9a-fA-F]{2}[\s:]?){16,2048}|(?:\\x[0-9a-fA-F]{2}){8,2048}/g,
    more: /(?:[0-9a-fA-F]{2}[\s:]?|\\x[0-9a-fA-F]{2}){1,2048}/y,
    decode: (run) => readable(Buffer.from(run.replace(/\\x|[\s:]/g, ''), 'hex')),
  },
  {
    // From its first sign on. A pattern for the words before it would try all of them again from each of their
    // letters.
    pattern: /(?:%[0-9a-fA-F]{2}[\w.~!*'()+,;:@/?=&-]{0,80}){3,1000}/g,
    more: /(?:%[0-9a-fA-F]{2}|[\w.~!*'()+,;:@/?=&-]){1,4096}/y,
    sign: '%',
    decode: percentDecoded,
  },
  {
    pattern: /(?:&#(?:x[0-9a-f]{1,6}|\d{1,7});[\w\s]{0,2}){6,500}/gi,
    more: /(?:&#(?:x[0-9a-f]{1,6}|\d{1,7});[\w\s]{0,2}){1,500}/iy,
    sign: '&#',
    decode: (run) =>
      run.replace(/&#(x?)([0-9a-f]+);/gi, (_, hex, digits) =>
        character(Number.parseInt(digits, hex ? 16 : 10)),
      ),
  },
  {
    pattern: /(?:\\u(?:[0-9a-fA-F]{4}|\{[0-9a-fA-F]{1,6}\})[\w ]{0,2}){6,500}/g,
    more: /(?:\\u(?:[0-9a-fA-F]{4}|\{[0-9a-fA-F]{1,6}\})[\w ]{0,2}){1,500}/y,
    sign: '\\u',
    decode: (run) =>
      run.replace(/\\u\{?([0-9a-f]{1,6})\}?/gi, (_, digits) => character(Number.parseInt(digits, 16))),
  },
];

/** Words directly before a percent sign. */
const WORDS_BEFORE = /[\w.~!*'()+,;:@-]{1,80}$/;

/** What encodings contain, also encodings within encodings. */
export function hiddenTexts(text: string, depth = 2): Hidden[] {
  const found: Hidden[] = [];
  for (const { pattern, more, sign, decode } of ENCODINGS) {
    if (sign !== undefined && !text.includes(sign)) continue;
    pattern.lastIndex = 0;
    for (let match = pattern.exec(text); match; match = pattern.exec(text)) {
      const end = runEnd(text, pattern.lastIndex, more);
      const before =
        sign === '%' ? WORDS_BEFORE.exec(text.slice(Math.max(0, match.index - 80), match.index)) : null;
      const start = match.index - (before?.[0].length ?? 0);
      const said = decode(text.slice(start, Math.min(end, start + LONGEST)));
      if (said !== undefined) {
        found.push({ text: said, start, end });
        if (depth > 1)
          for (const inner of hiddenTexts(said, depth - 1)) found.push({ text: inner.text, start, end });
      }
      pattern.lastIndex = end;
    }
  }
  return found;
}

/** Where the run ends that a match began. */
function runEnd(text: string, from: number, more: RegExp): number {
  let end = from;
  for (more.lastIndex = end; more.test(text); more.lastIndex = end) end = more.lastIndex;
  return end;
}

function character(code: number): string {
  return code > 0 && code <= 0x10ffff ? String.fromCodePoint(code) : '';
}

function percentDecoded(run: string): string {
  const spaced = run.replaceAll('+', ' ');
  try {
    return decodeURIComponent(spaced);
  } catch {
    // Not valid UTF-8, or a sign that was cut: the rest can still be read.
    return spaced.replace(/%([0-9a-f]{2})/gi, (_, digits) => character(Number.parseInt(digits, 16)));
  }
}

/** What bytes say, if they are text: mostly letters and spaces, or another encoding. */
function readable(bytes: Buffer): string | undefined {
  const said = bytes.toString('utf8').replace(/\uFFFD+$/, '');
  if (said.length < 12 || said.includes('\uFFFD')) return undefined;
  const plain = said.match(/[\p{L}\p{M}\s]/gu)?.length ?? 0;
  return plain / said.length > 0.7 || /^[A-Za-z0-9+/_=-]{24,}$/.test(said) ? said : undefined;
}

const COMMON =
  'ignore disregard forget override bypass prompt instructions rules reveal previous prior guidelines assistant pretend secret password your you the system without answer print never everything and all with this that for from what write tell give how are have has been not now mode text above message me my to of is in an as it be any no new repeat restrictions'.split(
    ' ',
  );

/** Words that are also words when reversed. */
const BOTH_WAYS = new Set(
  'and for give how tell are not now me my to of is in an as it be no all'.split(' '),
);

/** Enough of these words in disguise show that a text is written that way. */
const wordsIn = (words: readonly string[], disguise: (word: string) => string) =>
  new RegExp(`(?<![a-z'])(?:${words.map(disguise).join('|')})(?![a-z'])`, 'g');

const rotated = (text: string): string =>
  text.replace(/[a-z]/g, (letter) => String.fromCharCode(((letter.charCodeAt(0) - 84) % 26) + 97));
const reversed = (text: string): string => [...text].reverse().join('');

const PLAIN = wordsIn(COMMON, (word) => word);
const ROTATED = wordsIn(COMMON, rotated);
const REVERSED = wordsIn(
  COMMON.filter((word) => !BOTH_WAYS.has(word)),
  reversed,
);

/** The whole text, reversed or rotated, if words in it show that this makes sense of it. Places are kept. */
export function disguised(normalised: string): { text: string; reversed: boolean } | undefined {
  const count = (words: RegExp): number => normalised.match(words)?.length ?? 0;
  const turned = count(ROTATED);
  const back = count(REVERSED);
  if (turned < 2 && back < 2) return undefined;
  // Two may be chance if the text makes sense as it is.
  const plain = Math.max(turned, back) > 2 ? 0 : count(PLAIN);
  if (turned > 2 || turned > Math.max(back, plain)) return { text: rotated(normalised), reversed: false };
  if (back > 2 || back > plain) return { text: normalised.split('').reverse().join(''), reversed: true };
  return undefined;
}
