/** Text that is hidden in an encoding: what it says, and where it stands. */

export interface Hidden {
  readonly text: string;
  readonly start: number;
  readonly end: number;
}

const BASE64 = /[A-Za-z0-9+/_-]{24,}={0,2}/g;
const HEX = /(?:[0-9a-fA-F]{2}[\s:]?){16,}|(?:\\x[0-9a-fA-F]{2}){8,}/g;
const PERCENT = /(?:[\w.~!*'()+,;:@/?=&-]*%[0-9a-fA-F]{2}){3,}[\w.~!*'()+,;:@/?=&-]*/g;
const ENTITIES = /(?:&#(?:x[0-9a-f]{1,6}|\d{1,7});[\w\s]{0,2}){6,}/gi;
const ESCAPES = /(?:\\u(?:[0-9a-fA-F]{4}|\{[0-9a-fA-F]{1,6}\})[\w ]{0,2}){6,}/g;

/** Longer runs are files and pictures: only their beginning is read. */
const LONGEST = 8192;

export function hiddenTexts(text: string): Hidden[] {
  const found: Hidden[] = [];
  const add = (pattern: RegExp, decode: (run: string) => string | undefined) => {
    for (const match of text.matchAll(pattern)) {
      const said = decode(match[0].slice(0, LONGEST));
      if (said !== undefined)
        found.push({ text: said, start: match.index, end: match.index + match[0].length });
    }
  };
  add(BASE64, (run) => readable(Buffer.from(run, 'base64')));
  add(HEX, (run) => readable(Buffer.from(run.replace(/\\x|[\s:]/g, ''), 'hex')));
  if (text.includes('%')) add(PERCENT, percentDecoded);
  if (text.includes('&#'))
    add(ENTITIES, (run) =>
      run.replace(/&#(x?)([0-9a-f]+);/gi, (_, hex, digits) =>
        character(Number.parseInt(digits, hex ? 16 : 10)),
      ),
    );
  if (text.includes('\\u'))
    add(ESCAPES, (run) =>
      run.replace(/\\u\{?([0-9a-f]{1,6})\}?/gi, (_, digits) => character(Number.parseInt(digits, 16))),
    );
  return found;
}

function character(code: number): string {
  return code > 0 && code <= 0x10ffff ? String.fromCodePoint(code) : '';
}

function percentDecoded(run: string): string | undefined {
  try {
    return decodeURIComponent(run.replaceAll('+', ' '));
  } catch {
    return undefined;
  }
}

/** What bytes say, if they are text: letters and spaces for the most part. */
function readable(bytes: Buffer): string | undefined {
  const said = bytes.toString('utf8').replace(/\uFFFD+$/, '');
  if (said.length < 12 || said.includes('\uFFFD')) return undefined;
  const plain = said.match(/[\p{L}\s]/gu)?.length ?? 0;
  return plain / said.length > 0.75 ? said : undefined;
}

const ROT13_SIGNS = /vtaber|qvfertneq|biveevqr|birevqr|flfgrz cebzcg|vafgehpgvba|sbetrg/;
const REVERSED_SIGNS = /snoitcurtsni|tpmorp|tpmorp metsys|erongi|dragersid|tegrof/;

/** The whole text, turned round or rotated, if words in it say that this makes sense of it. Places are kept. */
export function disguised(normalised: string): { text: string; reversed: boolean } | undefined {
  if (ROT13_SIGNS.test(normalised)) {
    const text = normalised.replace(/[a-z]/g, (letter) =>
      String.fromCharCode(((letter.charCodeAt(0) - 84) % 26) + 97),
    );
    return { text, reversed: false };
  }
  if (REVERSED_SIGNS.test(normalised)) return { text: [...normalised].reverse().join(''), reversed: true };
  return undefined;
}
