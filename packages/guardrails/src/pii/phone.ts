/** Finds phone numbers: international ones, North American ones as people write them, and national ones after a word. */
import { createRequire } from 'node:module';
import { before, type Finding, isDigit, isWordCode } from '../scan/finding.js';

/** What is used of libphonenumber-js. It takes 80 KB of tables, so it is loaded with the first number that needs it. */
interface PhoneLibrary {
  parsePhoneNumberFromString(
    text: string,
    country?: string,
  ): { isValid(): boolean; isPossible(): boolean } | undefined;
}

let library: PhoneLibrary | undefined;

function phones(): PhoneLibrary {
  library ??= createRequire(import.meta.url)('libphonenumber-js/min') as PhoneLibrary;
  return library;
}

/** Digits with single separators, and parentheses around the area code. */
const INTERNATIONAL = /(?:\+|00)[1-9](?:[ ./-]{0,1}(?:\(\d{1,4}\))?[ ./-]{0,1}\d){6,16}(?!\d)/y;
const NORTH_AMERICAN = /(?:1[ .-])?(?:\([2-9]\d{2}\) ?|[2-9]\d{2}([ .-]))[2-9]\d{2}[ .-]\d{4}(?!\d)/y;
const NATIONAL = /\(?0?\d{1,5}\)?(?:[ ./-]{0,2}\d{1,5}){2,6}(?!\d)/y;

const PHONE_WORDS =
  /\b(?:tele?phone?|phone|tel|call(?:ing)?|cell(?:phone)?|mobile|mob|fax|whats ?app|sms|text(?: me)?|dial|ring|reach(?: me)?|hotline|landline|handy|anruf(?:en)?|rufnummer|telefon[eo]?|tél(?:éphone)?|portable|appele[rz]|móvil|celular|llam[ae]r?|cellulare|telefono|chiam[ai]\w*|nummer|bel)\b[^\n\d]{0,24}$/;
const OTHER_NUMBERS =
  /(?:order|invoice|ticket|isbn|issn|serial|part|model|sku|version|build|id|ref|case|tracking|error|code|port|pid|line|page|room|account|amount|total|score|coordinates?|lat|lon|lng|commit|imei|bytes|size|delta|offset|issue|pr|#)[\s:=#."']{0,3}(?:no\.?|number|nr\.?)?[\s:=#."']{0,3}$/;

/** The number that begins at a digit (or at the `+` or `(` before it), or undefined. `countries` have national numbers. */
export function phoneAt(text: string, digit: number, countries: readonly string[]): Finding | undefined {
  const previous = text.charCodeAt(digit - 1);
  if (previous === 43) return internationalAt(text, digit - 1);
  if (isWordCode(previous) || previous === 46 || previous === 45 || previous === 47) return undefined;
  const code = text.charCodeAt(digit);
  if (code === 48 && text.charCodeAt(digit + 1) === 48) {
    const found = internationalAt(text, digit);
    if (found) return found;
  }
  // A parenthesis may belong to the number or stand around it.
  const opened =
    previous === 40
      ? (northAmericanAt(text, digit - 1) ?? nationalAt(text, digit - 1, countries))
      : undefined;
  return opened ?? northAmericanAt(text, digit) ?? nationalAt(text, digit, countries);
}

function internationalAt(text: string, start: number): Finding | undefined {
  const previous = text.charCodeAt(start - 1);
  if (isWordCode(previous) || previous === 43 || previous === 46) return undefined;
  INTERNATIONAL.lastIndex = start;
  if (!INTERNATIONAL.test(text)) return undefined;
  const head = before(text, start, 40);
  if (OTHER_NUMBERS.test(head)) return undefined;
  const told = text[start] === '+' || PHONE_WORDS.test(head);
  return longest(text, start, INTERNATIONAL.lastIndex, (whole) => {
    const plain = `+${whole.replace(/^00/, '').replace(/\(0\)/, '').replace(/\D/g, '')}`;
    if (plain.length < 9 || plain.length > 16 || !(told || /[ ./-]/.test(whole))) return false;
    return phones().parsePhoneNumberFromString(plain)?.isValid() ?? false;
  });
}

/** (415) 555-2671, 415-555-2671, 415.555.2671 and 1-415-555-2671: the form says enough. */
function northAmericanAt(text: string, start: number): Finding | undefined {
  NORTH_AMERICAN.lastIndex = start;
  const match = NORTH_AMERICAN.exec(text);
  if (!match) return undefined;
  const end = NORTH_AMERICAN.lastIndex;
  const previous = text.charCodeAt(start - 1);
  if (isWordCode(previous) || previous === 46 || previous === 45 || endsInside(text, end)) return undefined;
  const head = before(text, start, 40);
  if (OTHER_NUMBERS.test(head)) return undefined;
  const area = match[0].replace(/^1[ .-]/, '').replace(/\D/g, '');
  // N11 codes are services, and nobody's area is 555 or ends in 9 behind its first digit.
  if (/^.11|^.9\d|^555/.test(area) || /^.{3}.11/.test(area)) return undefined;
  if (match[1] === '.' || match[1] === ' ')
    if (!PHONE_WORDS.test(head) && !phones().parsePhoneNumberFromString(area, 'US')?.isValid())
      return undefined;
  return { start, end, kind: 'phone' };
}

/** 020 7946 0958 behind "Tel.", or wherever one of `countries` has such numbers and it is written in groups. */
function nationalAt(text: string, start: number, countries: readonly string[]): Finding | undefined {
  const zero = text.charCodeAt(start) === 48 || (text[start] === '(' && text.charCodeAt(start + 1) === 48);
  const asked = countries.length > 0 && zero;
  const head = before(text, start, 40);
  const told = PHONE_WORDS.test(head);
  if ((!asked && !told) || OTHER_NUMBERS.test(head)) return undefined;
  NATIONAL.lastIndex = start;
  if (!NATIONAL.test(text)) return undefined;
  return longest(text, start, NATIONAL.lastIndex, (whole) => {
    const digits = whole.replace(/\D/g, '');
    if (digits.length < 7 || digits.length > 13 || isDate(whole)) return false;
    if (told) return true;
    if (!/\d[ ./)-]+\d/.test(whole)) return false;
    return countries.some((country) => phones().parsePhoneNumberFromString(whole, country)?.isValid());
  });
}

/** The longest part that `fits`. Behind a space another number may follow: a date, an amount, the next phone. */
function longest(
  text: string,
  start: number,
  end: number,
  fits: (whole: string) => boolean,
): Finding | undefined {
  for (
    let last = trimmed(text, start, end);
    last > start;
    last = trimmed(text, start, text.lastIndexOf(' ', last - 1))
  )
    if (!endsInside(text, last) && fits(text.slice(start, last))) return { start, end: last, kind: 'phone' };
  return undefined;
}

/** Separators at the end belong to the sentence. */
function trimmed(text: string, start: number, end: number): number {
  let last = end;
  while (last > start && !isDigit(text.charCodeAt(last - 1))) last--;
  return last;
}

/** Does something longer go on behind it? */
function endsInside(text: string, end: number): boolean {
  const next = text.charCodeAt(end);
  return (
    isWordCode(next) || ((next === 46 || next === 45 || next === 47) && isDigit(text.charCodeAt(end + 1)))
  );
}

function isDate(text: string): boolean {
  return /^(?:\d{4}[-./]\d{1,2}[-./]\d{1,2}|\d{1,2}[-./]\d{1,2}[-./]\d{2,4})(?:[ T].*)?$/.test(text);
}
