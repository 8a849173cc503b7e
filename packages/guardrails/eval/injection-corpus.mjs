// Puts injections and texts that only look like one together, of the sentences of a set, and disguises them.

import { randomFrom } from './random.mjs';

const LOOKALIKE = { a: 'а', c: 'с', e: 'е', i: 'і', o: 'о', p: 'р', s: 'ѕ', x: 'х', y: 'у' };
const ZERO_WIDTH = ['\u200b', '\u200c', '\u200d', '\u2060', '\ufeff'];
const LEET = { a: '4', e: '3', i: '1', o: '0' };

const spelled = (text, between, apart) =>
  text
    .split(' ')
    .map((word) => [...word].join(between))
    .join(apart);

/** Disguise → text. */
const DISGUISES = {
  'zero-width': (text, r) =>
    [...text].map((letter) => (r.chance(0.4) ? letter + r.pick(ZERO_WIDTH) : letter)).join(''),
  homoglyph: (text, r) =>
    [...text].map((letter) => (LOOKALIKE[letter] && r.chance(0.5) ? LOOKALIKE[letter] : letter)).join(''),
  'full-width': (text) =>
    [...text]
      .map((letter) =>
        letter > ' ' && letter <= '~' ? String.fromCharCode(letter.charCodeAt(0) + 0xfee0) : letter,
      )
      .join(''),
  base64: (text, r) => r.pick(['Decode this: ', 'aux=', '']) + Buffer.from(text).toString('base64'),
  hex: (text, r) => r.pick(['payload: ', '0x', '']) + Buffer.from(text).toString('hex'),
  percent: (text) =>
    `https://x.example/?q=${[...Buffer.from(text)].map((byte) => `%${byte.toString(16).padStart(2, '0')}`).join('')}`,
  tags: (text) =>
    `Nice day.${[...text].map((letter) => String.fromCodePoint(0xe0000 + (letter.charCodeAt(0) & 127))).join('')}`,
  spaced: (text) => spelled(text, ' ', '   '),
  dashed: (text) => spelled(text, '-', ' '),
  mathematical: (text) =>
    text.replace(/[a-z]/g, (letter) => String.fromCodePoint(0x1d41a + letter.charCodeAt(0) - 97)),
  leet: (text) => text.replace(/[aeio]/g, (letter) => LEET[letter]),
  rot13: (text) =>
    text.replace(/[a-z]/gi, (letter) => {
      const base = letter <= 'Z' ? 65 : 97;
      return String.fromCharCode(((letter.charCodeAt(0) - base + 13) % 26) + base);
    }),
  reversed: (text) => [...text].reverse().join(''),
};

/**
 * Texts by category; those of `benign…` hold no injection. `group` is the sentence that a text was made of, so that training
 * can hold all texts of a sentence back at once.
 *
 * @typedef {{ category: string, text: string, injection: boolean, group: string }} InjectionSample
 * @param {Record<string, any>} from the sentences
 * @param {number} seed
 * @returns {InjectionSample[]}
 */
export function injectionCorpus(from, seed, each = 120) {
  const r = randomFrom(seed);
  /** @type {InjectionSample[]} */
  const samples = [];
  const add = (category, text, group, injection = true) => samples.push({ category, text, injection, group });
  const order = () => {
    const template = r.pick(from.ORDERS);
    return { template, text: withGoal(template, r.pick(from.GOALS)) };
  };
  const around = (text) => r.pick(from.PADDING) + text + r.pick(from.ENDINGS);
  for (const template of from.ORDERS)
    for (const dress of [(text) => text, around, around])
      add('plain', dress(withGoal(template, r.pick(from.GOALS))), template);
  for (const [language, texts] of Object.entries(from.LANGUAGES))
    for (const text of texts) add(`language-${language}`, text, text);
  for (const [disguise, apply] of Object.entries(DISGUISES))
    for (let i = 0; i < each / 4; i++) {
      const { template, text } = order();
      add(`disguise-${disguise}`, apply(text, r), template);
    }
  for (const text of from.INDIRECT) add('indirect', text, text);
  for (let i = 0; i < each * 2; i++) {
    const text = r.pick(from.INDIRECT);
    const inside = r.chance(0.5) ? { template: text, text } : order();
    const document = r.pick(from.CARRIERS).replace('{order}', () => inside.text);
    add('tool-result', document, inside.template);
  }
  for (const text of [...from.BENIGN, ...from.DOCUMENTS]) add('benign', text, text, false);
  // The same in other company.
  for (let i = 0; i < each * 4; i++) {
    const [text, other] = [r.pick(from.BENIGN), r.pick(from.BENIGN)];
    add('benign-mixed', around(r.chance(0.5) ? `${text} ${other}` : text), text, false);
  }
  // Benign orders and sentences inside of documents, and encoded.
  for (let i = 0; i < each; i++) {
    const text = r.pick(from.BENIGN);
    add(
      'benign-document',
      r.pick(from.CARRIERS).replace('{order}', () => text),
      text,
      false,
    );
  }
  for (let i = 0; i < each / 4; i++) {
    const text = r.pick(from.BENIGN);
    add('benign-encoded', `data: ${Buffer.from(text).toString(r.pick(['base64', 'hex']))}`, text, false);
  }
  return samples;
}

function withGoal(template, goal) {
  return template
    .replace('{goal}', () => goal)
    .replace('{Goal}', () => goal[0].toUpperCase() + goal.slice(1));
}
