/** Finds every kind of personal data in one pass over a text, by its first telling character. */
import { type Detector, type Finding, isDigit, searchStart } from '../scan/finding.js';
import { inPlainText } from '../scan/plain.js';
import { cardAt, ibanAt } from './accounts.js';
import { findUrlCredentials, findUrls, ipv4At, ipv6Around, macAround } from './addresses.js';
import { findEmails } from './email.js';
import { nationalIdAt } from './national-ids.js';
import { phoneAt } from './phone.js';

/** The types `pii` knows. */
export const PII_TYPES = [
  'email',
  'phone',
  'credit-card',
  'iban',
  'ip',
  'mac',
  'ssn',
  'national-id',
  'url-credentials',
  'url',
] as const;

export type PiiType = (typeof PII_TYPES)[number];

/** Links are rarely personal, and most answers need theirs. */
export const DEFAULT_TYPES: readonly PiiType[] = PII_TYPES.filter((type) => type !== 'url');

export interface PiiDetectorOptions {
  readonly types: readonly PiiType[];
  /** Countries (ISO 3166, such as `GB`) whose national phone numbers count without a word before them. */
  readonly countries?: readonly string[];
}

type At = (text: string, place: number) => Finding | undefined;

/** Makes a detector of these types. Its time is proportional to the length of the text. */
export function piiDetector({ types, countries = [] }: PiiDetectorOptions): Detector {
  const wanted = new Set<string>(types);
  const whole: Detector[] = [];
  if (wanted.has('email')) whole.push(findEmails);
  if (wanted.has('url')) whole.push(findUrls);
  else if (wanted.has('url-credentials')) whole.push(findUrlCredentials);
  const byCharacter = scanner(wanted, countries);
  return inPlainText((text, from) => {
    const found = byCharacter(text, from);
    for (const detect of whole) for (const one of detect(text, from)) found.push(one);
    return found;
  });
}

/** Looks at every character once. What begins with a run of digits is tried there; the first that fits wins. */
function scanner(wanted: ReadonlySet<string>, countries: readonly string[]): Detector {
  const mac = wanted.has('mac');
  const ip = wanted.has('ip');
  const ids: At = (text, place) => {
    const found = nationalIdAt(text, place);
    return found && wanted.has(found.kind) ? found : undefined;
  };
  const hasIds = wanted.has('ssn') || wanted.has('national-id');
  /** Tried at digits behind a letter, at the others that are part of something long, and at those before a dot. */
  const behindLetter: readonly At[] = [...(wanted.has('iban') ? [ibanAt] : []), ...(hasIds ? [ids] : [])];
  const phone: At = (text, place) => phoneAt(text, place, countries);
  const atNumber: readonly At[] = [
    ...(wanted.has('credit-card') ? [cardAt] : []),
    ...(hasIds ? [ids] : []),
    ...(ip ? [ipv4At] : []),
    ...(wanted.has('phone') ? [phone] : []),
  ];
  return (text, from) => {
    const found: Finding[] = [];
    /** Where the last finding ends. */
    let end = 0;
    const add = (one: Finding | undefined): boolean => {
      if (!one) return false;
      found.push(one);
      if (one.end > end) end = one.end;
      return true;
    };
    let place = searchStart(from);
    // A search that begins inside a number would take its rest for another one.
    while (place > 0 && isDigit(text.charCodeAt(place - 1)) && isDigit(text.charCodeAt(place))) place++;
    for (; place < text.length; place++) {
      const code = text.charCodeAt(place);
      if (code > 58 || code < 45) continue;
      if (code >= 48 && code <= 57) {
        let last = place + 1;
        while (isDigit(text.charCodeAt(last))) last++;
        if (place >= end) {
          const tried = isLetter(text.charCodeAt(place - 1))
            ? behindLetter
            : isLong(text, place, last)
              ? atNumber
              : NONE;
          for (const at of tried) if (add(at(text, place))) break;
        }
        place = last - 1;
      } else if (place < end) continue;
      else if (code === 58) {
        if (mac && isHexPair(text, place) && add(macAround(text, place))) continue;
        if (ip && mayBeInAddress(text, place)) add(ipv6Around(text, place));
      } else if (mac && code !== 47 && isHexPair(text, place)) add(macAround(text, place));
    }
    return found;
  };
}

const NONE: readonly At[] = [];

/** Many digits, or few and a separator with more behind it. Years, prices and counters are neither. */
function isLong(text: string, place: number, last: number): boolean {
  if (last - place >= 7) return last - place < 40;
  const next = text.charCodeAt(last);
  // Space, parenthesis, dash, dot, slash; and the marks between the parts of a Finnish number.
  if (next !== 32 && next !== 41 && next !== 43 && next !== 65 && (next < 45 || next > 47)) return false;
  const behind = text.charCodeAt(last + 1);
  return isDigit(behind) || behind === 40 || behind === 32;
}

/** Two hexadecimal digits before and behind a separator, as in `3c:5a`. */
function isHexPair(text: string, at: number): boolean {
  return (
    isHex(text.charCodeAt(at - 1)) &&
    isHex(text.charCodeAt(at - 2)) &&
    isHex(text.charCodeAt(at + 1)) &&
    isHex(text.charCodeAt(at + 2))
  );
}

/** A colon with hexadecimal digits or another colon on both sides. */
function mayBeInAddress(text: string, at: number): boolean {
  const next = text.charCodeAt(at + 1);
  const previous = text.charCodeAt(at - 1);
  return (next === 58 || isHex(next)) && (isHex(previous) || (next === 58 && !isLetter(previous)));
}

function isHex(code: number): boolean {
  return (code >= 48 && code <= 57) || (code >= 97 && code <= 102) || (code >= 65 && code <= 70);
}

function isLetter(code: number): boolean {
  return (code >= 97 && code <= 122) || (code >= 65 && code <= 90);
}
