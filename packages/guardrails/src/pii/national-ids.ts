/**
 * Finds national ids. Where many other numbers look the same, a word before the id has to say what it is.
 */
import { before, type Finding, isDigit, isWordCode } from '../scan/finding.js';
import { isDay, luhn, mod11And10, verhoeff, weighted } from './checksums.js';

interface NationalId {
  /** The country and what the number is called there. */
  readonly id: string;
  /** Tried at a run of digits, or this many letters before it. */
  readonly pattern: RegExp;
  readonly lettersBefore: number;
  /** `digits`: the match without separators, in capitals. */
  readonly valid: (digits: string, whole: string) => boolean;
  /** Without such a word before it, it is something else; undefined if its form says enough. */
  readonly words?: RegExp;
  /** It counts as `ssn`. */
  readonly ssn?: true;
}

const SSN_WORDS =
  /\bssn\b|social[\s-]?sec|soc\.? sec|\bss ?#|\bss ?no|tax(?:payer)? ?id|\btin\b|\bitin\b|seguro social/;

function isSsn(digits: string): boolean {
  if (/^(?:000|666|9)/.test(digits) || digits.slice(3, 5) === '00' || digits.slice(5) === '0000')
    return false;
  return !/^(\d)\1{8}$/.test(digits);
}

const IDS: readonly NationalId[] = [
  { id: 'us-ssn', ssn: true, pattern: /\d{3}-\d{2}-\d{4}/y, lettersBefore: 0, valid: isSsn },
  {
    id: 'us-ssn',
    ssn: true,
    pattern: /\d{3}[ .]\d{2}[ .]\d{4}|\d{9}/y,
    lettersBefore: 0,
    valid: isSsn,
    words: SSN_WORDS,
  },
  {
    id: 'us-itin',
    ssn: true,
    pattern: /9\d{2}-(?:5\d|6[0-5]|7\d|8[0-8]|9[0-24-9])-\d{4}/y,
    lettersBefore: 0,
    valid: () => true,
    words: /\bitin\b|tax|\btin\b|ssn/,
  },
  {
    id: 'gb-nino',
    pattern: /[A-CEGHJ-PR-TW-Z][A-CEGHJ-NPR-TW-Z] ?\d{2} ?\d{2} ?\d{2} ?[A-D]/iy,
    lettersBefore: 2,
    valid: (digits) => !/^(?:BG|GB|KN|NK|NT|TN|ZZ)/.test(digits) && digits === digits.toUpperCase(),
  },
  {
    id: 'gb-nhs',
    pattern: /\d{3}[ -]?\d{3}[ -]?\d{4}/y,
    lettersBefore: 0,
    valid: (digits) =>
      (11 - (weighted(digits, [10, 9, 8, 7, 6, 5, 4, 3, 2]) % 11)) % 11 === Number(digits[9]),
    words: /\bnhs\b|national health/,
  },
  {
    id: 'ca-sin',
    pattern: /\d{3}[ -]?\d{3}[ -]?\d{3}/y,
    lettersBefore: 0,
    valid: (digits) => !/^[08]/.test(digits) && luhn(digits),
    words: /\bsin\b|social insurance|\bnas\b|assurance sociale/,
  },
  {
    id: 'de-tax',
    pattern: /\d{2} ?\d{3} ?\d{3} ?\d{3}/y,
    lettersBefore: 0,
    valid: (digits) => digits[0] !== '0' && mod11And10(digits),
    words: /steuer|\btin\b|idnr|tax/,
  },
  {
    id: 'fr-nir',
    pattern: /[12] ?\d{2} ?(?:0[1-9]|1[0-2]|[2-9]\d) ?(?:\d{2}|2[AB]) ?\d{3} ?\d{3} ?\d{2}/iy,
    lettersBefore: 0,
    valid(digits) {
      const plain = digits.replace('2A', '19').replace('2B', '18');
      let rest = 0;
      for (let i = 0; i < 13; i++) rest = (rest * 10 + Number(plain[i])) % 97;
      return 97 - rest === Number(plain.slice(13));
    },
  },
  {
    id: 'es-dni',
    pattern: /\d{8}-?[A-Z]/y,
    lettersBefore: 0,
    valid: (digits) => 'TRWAGMYFPDXBNJZSQVHLCKE'[Number(digits.slice(0, 8)) % 23] === digits[8],
  },
  {
    id: 'es-nie',
    pattern: /[XYZ]-?\d{7}-?[A-Z]/y,
    lettersBefore: 1,
    valid: (digits) =>
      'TRWAGMYFPDXBNJZSQVHLCKE'[Number('XYZ'.indexOf(digits[0]!) + digits.slice(1, 8)) % 23] === digits[8],
  },
  {
    id: 'it-cf',
    pattern: /[A-Z]{6}\d{2}[A-EHLMPR-T]\d{2}[A-Z]\d{3}[A-Z]/iy,
    lettersBefore: 6,
    valid: isCodiceFiscale,
  },
  {
    id: 'nl-bsn',
    pattern: /\d{4}[. ]?\d{2}[. ]?\d{3}/y,
    lettersBefore: 0,
    valid: (digits) =>
      digits !== '000000000' && (weighted(digits, [9, 8, 7, 6, 5, 4, 3, 2]) - Number(digits[8])) % 11 === 0,
    words: /\bbsn\b|burgerservice|sofi|citizen service/,
  },
  {
    id: 'be-nrn',
    pattern: /\d{2}\.\d{2}\.\d{2}-\d{3}\.\d{2}/y,
    lettersBefore: 0,
    valid(digits) {
      const [head, check] = [digits.slice(0, 9), Number(digits.slice(9))];
      return 97 - (Number(head) % 97) === check || 97 - (Number(`2${head}`) % 97) === check;
    },
  },
  {
    id: 'pl-pesel',
    pattern: /\d{11}/y,
    lettersBefore: 0,
    valid: (digits) =>
      isDay(Number(digits.slice(2, 4)) % 20, Number(digits.slice(4, 6))) &&
      weighted(digits, [1, 3, 7, 9, 1, 3, 7, 9, 1, 3, 1]) % 10 === 0,
    words: /pesel/,
  },
  {
    id: 'se-pnr',
    pattern: /(?:19|20)?\d{6}[-+]\d{4}/y,
    lettersBefore: 0,
    valid(digits) {
      const short = digits.slice(-10);
      const day = Number(short.slice(4, 6));
      return isDay(Number(short.slice(2, 4)), day > 60 ? day - 60 : day) && luhn(short);
    },
  },
  {
    id: 'fi-hetu',
    pattern: /\d{6}[-+A]\d{3}[0-9A-FHJ-NPR-Y]/y,
    lettersBefore: 0,
    valid: (digits, whole) =>
      isDay(Number(digits.slice(2, 4)), Number(digits.slice(0, 2))) &&
      '0123456789ABCDEFHJKLMNPRSTUVWXY'[Number(whole.slice(0, 6) + whole.slice(7, 10)) % 31] === whole[10],
  },
  {
    id: 'br-cpf',
    pattern: /\d{3}\.\d{3}\.\d{3}-\d{2}/y,
    lettersBefore: 0,
    valid: isCpf,
  },
  { id: 'br-cpf', pattern: /\d{11}/y, lettersBefore: 0, valid: isCpf, words: /\bcpf\b/ },
  {
    id: 'in-aadhaar',
    pattern: /[2-9]\d{3}([ -])\d{4}\1\d{4}/y,
    lettersBefore: 0,
    valid: verhoeff,
    words: /a+dhaa?r|uid|\bid\b|identity|kyc/,
  },
  {
    id: 'in-pan',
    pattern: /[A-Z]{3}[ABCFGHLJPT][A-Z]\d{4}[A-Z]/y,
    lettersBefore: 5,
    valid: () => true,
    words: /\bpan\b|permanent account|income tax|tax/,
  },
  {
    id: 'au-tfn',
    pattern: /\d{3}[ -]?\d{3}[ -]?\d{3}/y,
    lettersBefore: 0,
    valid: (digits) => weighted(digits, [1, 4, 3, 7, 5, 8, 6, 9, 10]) % 11 === 0,
    words: /\btfn\b|tax file/,
  },
  {
    id: 'cn-rid',
    pattern: /[1-9]\d{5}(?:19|20)\d{2}(?:0[1-9]|1[0-2])(?:0[1-9]|[12]\d|3[01])\d{3}[\dX]/iy,
    lettersBefore: 0,
    valid: (digits) =>
      '10X98765432'[weighted(digits, [7, 9, 10, 5, 8, 4, 2, 1, 6, 3, 7, 9, 10, 5, 8, 4, 2]) % 11] ===
      digits[17],
  },
];

/** How many letters may stand between the beginning of an id and its first digit. */
const LETTERS = [0, 1, 2, 5, 6];
const BY_LETTERS = new Map(LETTERS.map((count) => [count, IDS.filter((id) => id.lettersBefore === count)]));

/** The national id whose first digit is at `digit`, or undefined. Its `kind` is `ssn` or `national-id`. */
export function nationalIdAt(text: string, digit: number): Finding | undefined {
  let letters = 0;
  while (letters < 7 && isLetter(text.charCodeAt(digit - 1 - letters))) letters++;
  let offset = letters;
  // `X-1234567-L` and `AB 12 34 56 C`: a sign may stand between the letters and the digits.
  if (
    letters === 0 &&
    /(?:^|[^A-Za-z0-9_])(?:[XYZ]-|[A-Z]{2} )$/.test(text.slice(Math.max(0, digit - 4), digit))
  ) {
    letters = text[digit - 1] === '-' ? 1 : 2;
    offset = letters + 1;
  }
  const found = idFrom(text, digit - offset, letters);
  return found || offset === 0 || offset === letters ? found : idFrom(text, digit, 0);
}

function idFrom(text: string, start: number, letters: number): Finding | undefined {
  const candidates = BY_LETTERS.get(letters);
  if (!candidates) return undefined;
  const previous = text.charCodeAt(start - 1);
  if (isWordCode(previous) || previous === 45 || (previous === 46 && isDigit(text.charCodeAt(start - 2))))
    return undefined;
  let head: string | undefined;
  for (const { pattern, valid, words, ssn } of candidates) {
    pattern.lastIndex = start;
    const match = pattern.exec(text);
    if (!match) continue;
    const end = pattern.lastIndex;
    const next = text.charCodeAt(end);
    if (isWordCode(next) || ((next === 45 || next === 46) && isWordCode(text.charCodeAt(end + 1)))) continue;
    const [whole] = match;
    if (!valid(whole.replace(/[ .+-]/g, '').toUpperCase(), whole)) continue;
    head ??= before(text, start, 48);
    if (words && !words.test(head)) continue;
    if (
      !words &&
      /(?:part|model|sku|item|serial|order|ticket|invoice|catalog|version)[\w .:#-]{0,16}$/.test(head)
    )
      continue;
    return { start, end, kind: ssn ? 'ssn' : 'national-id' };
  }
  return undefined;
}

function isCpf(digits: string): boolean {
  if (/^(\d)\1{10}$/.test(digits)) return false;
  const first = ((weighted(digits, [10, 9, 8, 7, 6, 5, 4, 3, 2]) * 10) % 11) % 10;
  const second = ((weighted(digits, [11, 10, 9, 8, 7, 6, 5, 4, 3, 2]) * 10) % 11) % 10;
  return digits.slice(9) === `${first}${second}`;
}

function isCodiceFiscale(code: string): boolean {
  let sum = 0;
  for (let i = 0; i < 15; i++) {
    const character = code[i]!;
    const value = /\d/.test(character) ? Number(character) : character.charCodeAt(0) - 65;
    // Characters at odd places count what the official table says.
    sum += i % 2 === 0 ? ODD_VALUES[value]! : value;
  }
  return String.fromCharCode(65 + (sum % 26)) === code[15];
}

const ODD_VALUES = [
  1, 0, 5, 7, 9, 13, 15, 17, 19, 21, 2, 4, 18, 20, 11, 3, 6, 8, 12, 14, 16, 10, 22, 25, 24, 23,
];

function isLetter(code: number): boolean {
  return (code >= 65 && code <= 90) || (code >= 97 && code <= 122);
}
