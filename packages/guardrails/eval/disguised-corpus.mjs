// The values of pii-corpus.mjs and what looks like them, with characters that are invisible, full-width or encoded.

import { PII_CORPUS_TYPES, piiCorpus } from './pii-corpus.mjs';
import { randomFrom } from './random.mjs';

const ZERO_WIDTH = ['\u200b', '\u200c', '\u200d', '\u2060', '\ufeff', '\u00ad'];
const SIGN = /[^A-Za-z0-9]/;
const code = (character) => character.charCodeAt(0);
const isAscii = (character) => character >= '!' && character <= '~';

/** Disguise → how it writes a character. Signs are what people encode most. */
const DISGUISES = {
  'zero-width': (character, r) => (r.chance(0.3) ? character + r.pick(ZERO_WIDTH) : character),
  'full-width': (character) =>
    isAscii(character) ? String.fromCharCode(code(character) + 0xfee0) : character,
  entities: (character) => (isAscii(character) && SIGN.test(character) ? `&#${code(character)};` : character),
  'all entities': (character) =>
    character <= '~' ? `&#x${code(character).toString(16).padStart(2, '0')};` : character,
  percent: (character) =>
    character <= '~' && SIGN.test(character) && !'-_.~'.includes(character)
      ? `%${code(character).toString(16).padStart(2, '0')}`
      : encoded(character),
  escapes: (character) =>
    SIGN.test(character) && character !== ' '
      ? `\\u${code(character).toString(16).padStart(4, '0')}`
      : character,
};

function encoded(character) {
  try {
    return character <= '~' ? character : encodeURIComponent(character);
  } catch {
    return character;
  }
}

/**
 * Texts with and without a value, disguised as a whole; `spans` say where the values stand then.
 *
 * @param {'tune' | 'report'} set
 * @param {number} seed
 */
export function disguisedCorpus(set, seed, each = 240) {
  const r = randomFrom(seed + 1);
  const names = Object.keys(DISGUISES);
  return PII_CORPUS_TYPES.flatMap((type) => {
    const all = piiCorpus(type, set, seed);
    const [values, others] = [true, false].map((is) => all.filter(({ spans }) => spans.length > 0 === is));
    return [values, others].flatMap((samples) =>
      Array.from({ length: each }, (_, i) => {
        const { text, spans } = r.pick(samples);
        const write = DISGUISES[names[i % names.length]];
        /** @type {number[]} */
        const places = [];
        let written = '';
        for (const character of text) {
          for (let unit = 0; unit < character.length; unit++) places.push(written.length);
          written += character.length === 1 ? write(character, r) : character;
        }
        places.push(written.length);
        return {
          type,
          text: written,
          // An invisible character behind the last one is no part of it.
          spans: spans.map(({ start, end, kind }) => ({
            start: places[start],
            end: places[end - 1] + 1,
            kind,
          })),
        };
      }),
    );
  });
}
