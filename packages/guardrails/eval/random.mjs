// Random numbers from a seed: the same corpus on every machine.

/** @param {number} seed */
export function randomFrom(seed) {
  let state = seed >>> 0;
  // mulberry32
  const next = () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let t = state;
    t = Math.imul(t ^ (t >>> 15), t | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return ((t ^ (t >>> 14)) >>> 0) / 4_294_967_296;
  };
  const int = (from, to) => from + Math.floor(next() * (to - from + 1));
  const pick = (list) => list[int(0, list.length - 1)];
  const text = (alphabet, length) =>
    Array.from({ length }, () => alphabet[int(0, alphabet.length - 1)]).join('');
  const chance = (p) => next() < p;
  return { next, int, pick, text, chance, digits: (length) => text('0123456789', length) };
}

export const HEX = '0123456789abcdef';
export const LOWER = 'abcdefghijklmnopqrstuvwxyz';
export const UPPER = 'ABCDEFGHIJKLMNOPQRSTUVWXYZ';
export const DIGITS = '0123456789';
export const ALNUM = UPPER + LOWER + DIGITS;
export const BASE64 = `${ALNUM}+/`;
export const BASE64URL = `${ALNUM}-_`;

/**
 * A template with a value in the place of `{}`, and where it stands.
 *
 * @param {string} template
 * @param {string} value
 * @param {string} kind
 */
export function placed(template, value, kind) {
  const start = template.indexOf('{}');
  return { text: template.replace('{}', () => value), spans: [{ start, end: start + value.length, kind }] };
}
