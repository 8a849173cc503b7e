import { checkOptionsSchema } from 'allium/registry';
import { describe, expect, it } from 'vitest';
import { written } from './options-schema.js';

const schema = {
  type: 'object',
  properties: {
    name: { type: 'string', minLength: 1, pattern: '^[a-z]+$' },
    count: { type: 'integer', minimum: 1, maximum: 9 },
    rate: { type: 'number', exclusiveMinimum: 0 },
    on: { enum: ['model', 'tool'] },
    kind: { const: 'x' },
    deep: { type: 'object', properties: { flag: { type: 'boolean' } }, additionalProperties: false },
    list: { type: 'array', items: { type: 'string' }, minItems: 1 },
    either: {
      anyOf: [
        { type: 'string' },
        { type: 'object', properties: { use: { type: 'string' } }, required: ['use'] },
      ],
    },
    any: {},
    table: { type: 'object', additionalProperties: { type: 'number' } },
    maybe: { type: ['string', 'null'] },
  },
  required: ['name'],
  additionalProperties: false,
};

describe('checkOptionsSchema', () => {
  it('accepts fitting options, and ignores undefined ones', async () => {
    const value = {
      ...{ name: 'a', count: 9, rate: 0.1, on: 'tool', kind: 'x', deep: { flag: false }, list: ['a'] },
      ...{ either: { use: 'x' }, any: [1, {}], table: { a: 1 }, maybe: null, more: undefined },
    };
    expect(await checkOptionsSchema(schema, value)).toEqual({ value });
  });

  it.each([
    [
      {},
      ['name'],
      'Expected `name` to be text of at least 1 characters and that matches ^[a-z]+$, got undefined.',
    ],
    [{ name: 'A' }, ['name'], 'that matches ^[a-z]+$, got "A".'],
    [{ name: '' }, ['name'], 'got "".'],
    [{ name: 'a', count: 1.5 }, ['count'], 'Expected `count` to be an integer ≥ 1 and ≤ 9, got 1.5.'],
    [{ name: 'a', count: 10 }, ['count'], 'got 10.'],
    [{ name: 'a', rate: 0 }, ['rate'], 'Expected `rate` to be a number > 0, got 0.'],
    [{ name: 'a', on: 'x' }, ['on'], 'Expected `on` to be "model" or "tool", got "x".'],
    [{ name: 'a', kind: 'y' }, ['kind'], 'Expected `kind` to be "x", got "y".'],
    [
      { name: 'a', deep: { flagg: true } },
      ['deep', 'flagg'],
      'Unknown option `deep.flagg`. Did you mean `flag`? It takes: flag.',
    ],
    [{ name: 'a', deep: [] }, ['deep'], 'Expected `deep` to be a table of options, got [].'],
    [{ name: 'a', list: ['a', 1] }, ['list', 1], 'Expected `list[1]` to be text, got 1.'],
    [{ name: 'a', list: [] }, ['list'], 'Expected `list` to be a list of at least 1, got [].'],
    [{ name: 'a', either: 1 }, ['either'], 'Expected `either` to be text or a table of options, got 1.'],
    [{ name: 'a', either: { use: 1 } }, ['either', 'use'], 'Expected `either.use` to be text, got 1.'],
    [{ name: 'a', table: { b: 'x' } }, ['table', 'b'], 'Expected `table.b` to be a number, got "x".'],
    [{ name: 'a', maybe: 1 }, ['maybe'], 'Expected `maybe` to be text or null, got 1.'],
    [{ name: 'a', constructor: 1 }, ['constructor'], 'Unknown option `constructor`.'],
    ['text', [], 'Expected `options` to be a table of options, got "text".'],
  ])('refuses %j', async (value, path, message) => {
    const { issues } = await checkOptionsSchema(schema, value);
    expect(issues?.[0].path).toEqual(path);
    expect(issues?.[0].message).toContain(message);
  });

  it('names every mistake', async () => {
    expect((await checkOptionsSchema(schema, { count: 0, on: 1 })).issues).toHaveLength(3);
  });
});

it('paths are written the way people write them', () => {
  expect(written(['chain', 2, 'use'])).toBe('chain[2].use');
  expect(written([])).toBe('');
});
