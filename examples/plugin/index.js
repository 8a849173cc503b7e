// Keeps words out of what an agent says: a guard, so it holds wherever it stands in the chain, streamed or not.

import { defineMiddleware, window } from 'allium';

/** What may stand in a config file. It is checked before the function below is called. */
export const optionsSchema = {
  type: 'object',
  properties: {
    words: { type: 'array', items: { type: 'string', minLength: 1 }, minItems: 1 },
    replacement: { type: 'string', description: 'Default: ***' },
  },
  required: ['words'],
  additionalProperties: false,
};

/** It cannot be made without words: these are for those who check plugins. */
export const exampleOptions = { words: ['secret'] };

/** @param {{ readonly words: readonly string[], readonly replacement?: string }} options */
export default function wordFilter({ words, replacement = '***' }) {
  const escaped = words.map((word) => word.replace(/[.*+?^${}()|[\]\\]/g, '\\$&'));
  const pattern = new RegExp(`(?<![\\p{L}\\p{N}])(?:${escaped.join('|')})(?![\\p{L}\\p{N}])`, 'giu');
  return defineMiddleware({
    name: 'word-filter',
    guard: {
      on: ['output'],
      // The longest word, and the character after it that tells whether the word ends there.
      hold: window(Math.max(...words.map(({ length }) => length)) + 1),
      replacement,
      find: (text) =>
        [...text.matchAll(pattern)].map(({ index, 0: { length } }) => ({
          start: index,
          end: index + length,
        })),
    },
  });
}
