/** Searches a text also as it reads without disguise: invisible, full-width and encoded characters. */
import { type Detector, type Finding, LEFT_CONTEXT } from './finding.js';
import { Letters, type Places } from './letters.js';
import { visibleForm } from './visible.js';

/** Signs that have a name in HTML and may stand in an address, a number or a key. */
const NAMED: Readonly<Record<string, string>> = {
  amp: '&',
  apos: "'",
  bsol: '\\',
  colon: ':',
  comma: ',',
  commat: '@',
  dash: '-',
  dollar: '$',
  equals: '=',
  excl: '!',
  gt: '>',
  hyphen: '-',
  lowbar: '_',
  lpar: '(',
  lt: '<',
  nbsp: ' ',
  num: '#',
  percnt: '%',
  period: '.',
  plus: '+',
  quest: '?',
  quot: '"',
  rpar: ')',
  semi: ';',
  shy: '',
  sol: '/',
  tab: '\t',
  zwj: '',
  zwnj: '',
  ZeroWidthSpace: '',
};

/** Where the digits of other scripts begin: ten of them each. */
const DIGITS =
  '0660 06F0 07C0 0966 09E6 0A66 0AE6 0B66 0BE6 0C66 0CE6 0D66 0DE6 0E50 0ED0 0F20 1040 1090 17E0 1810 1946 19D0 1A80 1A90 1B50 1BB0 1C40 1C50 A620 A8D0 A900 A9D0 A9F0 AA50 ABF0'
    .split(' ')
    .map((first) => Number.parseInt(first, 16));

/** Signs that an encoding begins with, and what may follow them. */
const ENCODED = [
  // In addresses: a byte of ASCII, or the bytes of one character.
  '%(?:[2-7][\\da-fA-F]|0[9adAD]|[c-fC-F][\\da-fA-F](?:%[89abAB][\\da-fA-F]){1,3})',
  // In HTML and XML.
  `&(?:#(?:[xX][\\da-fA-F]{1,6}|\\d{1,7});?|(?:${Object.keys(NAMED).join('|')});)`,
  // In JSON and code.
  '\\\\(?:u[\\da-fA-F]{4}|u\\{[\\da-fA-F]{1,6}\\}|x[2-7][\\da-fA-F])',
  // Tags and selectors, which nobody sees; letters of mathematics, and in squares.
  '\\udb40[\\udc00-\\udfff]',
  '\\ud835[\\udc00-\\udfff]',
  '\\ud83c[\\udd30-\\udd89]',
];

/** Characters that are no plain ones, as ranges of their codes; what must follow them. */
const SINGLE: readonly (readonly [ranges: string, follows: string])[] = [
  // Nobody sees these.
  [
    '00ad 034f 061c 115f 1160 17b4 17b5 180b-180f 200b-200f 202a-202e 2060-206f 2800 3164 fe00-fe0f feff ffa0 fff9-fffb',
    '',
  ],
  // Full-width, small, and in circles.
  [
    '2024 24b6-24e9 fe52 fe55 fe58 fe61-fe63 fe68-fe6b ff03-ff05 ff08-ff0b ff0d-ff1a ff1d ff20-ff3a ff3f ff41-ff5a',
    '',
  ],
  [DIGITS.map((first) => `${hex(first)}-${hex(first + 9)}`).join(' '), ''],
  // A full stop of East Asia before a Latin letter is the dot of a domain.
  ['3002 ff61', '(?=[\\w\\uff10-\\uff5a])'],
  // Spaces and dashes of print before digits.
  ['00a0 2000-200a 2010-2015 202f 205f 2212 3000', '(?=[\\d(%&\\\\\\u00ad-\\uffff])'],
];

function hex(code: number): string {
  return code.toString(16).padStart(4, '0');
}

/** One character that is written otherwise than readers and programs will take it. */
const DISGUISED = new RegExp(
  [
    ...ENCODED,
    ...SINGLE.map(
      ([ranges, follows]) => `[${ranges.replace(/\w+/g, '\\u$&').replaceAll(' ', '')}]${follows}`,
    ),
  ].join('|'),
  'y',
);

/** Which characters one of them begins with: a look at a table is faster than a pattern. */
const BEGINS = new Uint8Array(65_536);
for (const code of [37, 38, 92, 0xdb40, 0xd835, 0xd83c]) BEGINS[code] = 1;
for (const [ranges] of SINGLE)
  for (const range of ranges.split(' ')) {
    const [first, last = first] = range.split('-').map((code) => Number.parseInt(code, 16));
    BEGINS.fill(1, first, last! + 1);
  }

/** Where the next disguised character begins; -1 if none follows. `DISGUISED.lastIndex` is where it ends. */
function nextDisguise(text: string, from: number): number {
  for (let place = from; place < text.length; place++) {
    if (BEGINS[text.charCodeAt(place)] === 0) continue;
    DISGUISED.lastIndex = place;
    if (DISGUISED.test(text)) return place;
  }
  return -1;
}

/** How much of the text around a disguise is read: as much as detectors look to the left, and the longest domain. */
const BEFORE = LEFT_CONTEXT;
const AFTER = 320;
/** As far from a cut, what is written plainly is found as in the whole text. */
const MARGIN = 64;

/**
 * A detector that also finds what is disguised, even twice (`%2540`). It reads only around disguises, so that its time
 * stays proportional to the text, and what it finds says where that stands in the text as it is written.
 */
export function inPlainText(detect: Detector): Detector {
  return (text, from) => search(detect, text, from, 2);
}

function search(detect: Detector, text: string, from: number, depth: number): Finding[] {
  const found = detect(text, from);
  if (depth === 0) return found;
  const windows = disguisedParts(text, Math.max(0, from - MARGIN));
  if (windows.length === 0) return found;
  for (const [first, last] of windows) {
    const piece = text.slice(first, last);
    const plain = readPlain(piece);
    for (const one of search(detect, plain.text, 0, depth - 1)) {
      const value = one.value ?? plain.text.slice(one.start, one.end);
      const [start, end] = [plain.start(one.start), plain.end(one.end - 1)];
      const isDisguised = piece.slice(start, end) !== value;
      // Near a cut it may be a part of something longer, or lack the words that explain it.
      const isNearCut = (start < MARGIN && first > 0) || (end > piece.length - MARGIN && last < text.length);
      if (isDisguised) found.push({ start: first + start, end: first + end, kind: one.kind, value });
      else if (!isNearCut) found.push({ start: first + start, end: first + end, kind: one.kind });
    }
  }
  return withoutParts(found);
}

/** Where disguised characters stand, with the text around them. */
function disguisedParts(text: string, from: number): (readonly [start: number, end: number])[] {
  const parts: (readonly [start: number, end: number])[] = [];
  let [start, end] = [-1, -1];
  for (let at = nextDisguise(text, from); at !== -1; at = nextDisguise(text, DISGUISED.lastIndex)) {
    if (start === -1 || at > end + BEFORE) {
      if (start !== -1) parts.push([start, end]);
      start = Math.max(0, at - BEFORE);
    }
    end = Math.min(text.length, DISGUISED.lastIndex + AFTER);
  }
  if (start !== -1) parts.push([start, end]);
  return parts;
}

/** Without those that are part of another one of their kind: the part of an address that is not disguised. */
function withoutParts(found: Finding[]): Finding[] {
  const ends = new Map<string, number>();
  return found
    .sort(
      (a, b) =>
        a.start - b.start || b.end - a.end || Number(a.value === undefined) - Number(b.value === undefined),
    )
    .filter(({ kind, end }) => {
      if (end <= (ends.get(kind) ?? -1)) return false;
      ends.set(kind, end);
      return true;
    });
}

/** The text without disguises. */
export function readPlain(text: string): Places {
  const letters = new Letters(text.length);
  const copy = (start: number, end: number) => {
    for (let at = start; at < end; at++) letters.push(text.charCodeAt(at), at, at + 1);
  };
  let place = 0;
  for (let at = nextDisguise(text, 0); at !== -1; at = nextDisguise(text, place)) {
    copy(place, at);
    place = DISGUISED.lastIndex;
    const plain = plainForm(text.slice(at, place));
    for (let i = 0; i < plain.length; i++) letters.push(plain.charCodeAt(i), at, place);
  }
  copy(place, text.length);
  return letters.read(text.length);
}

/** What one disguised character stands for. */
function plainForm(written: string): string {
  const sign = written.charCodeAt(0);
  if (sign === 37) return percentForm(written);
  if (sign === 92) return codeForm(Number.parseInt(written.replace(/[^\da-f]/gi, ''), 16));
  if (sign !== 38) return codeForm(written.codePointAt(0)!);
  const number = /^&#(x?)([\da-f]+)/i.exec(written);
  if (!number) return NAMED[written.slice(1, -1)]!;
  return codeForm(Number.parseInt(number[2]!, number[1] === '' ? 10 : 16));
}

function percentForm(written: string): string {
  const said = Buffer.from(written.replaceAll('%', ''), 'hex').toString('utf8');
  return said.includes('\ufffd') ? written : codeForm(said.codePointAt(0)!);
}

function codeForm(code: number): string {
  if (code < 128) return code === 0 ? '' : String.fromCharCode(code);
  if (code > 0x10ffff) return '';
  const digit = DIGITS.find((first) => code >= first && code < first + 10);
  if (digit !== undefined) return String(code - digit);
  if ((code >= 0x2010 && code <= 0x2015) || code === 0x2212) return '-';
  if (code === 0x3002 || code === 0xff61) return '.';
  if (code === 0x34f || (code >= 0x180b && code <= 0x180f) || (code >= 0xfe00 && code <= 0xfe0f)) return '';
  return visibleForm(code).normalize('NFKC');
}
