import { describe, expect, it } from 'vitest';
import { objectInput } from './object-input.js';

const input = objectInput<{ name: string; count?: number; tags: readonly string[]; rest?: object }>({
  name: { type: 'text', description: 'A name.' },
  count: { type: 'integer', description: 'A count.', optional: true, min: 1, max: 9 },
  tags: { type: 'texts', description: 'Tags.', min: 1 },
  rest: { type: 'object', description: 'The rest.', optional: true },
});
const { validate, jsonSchema } = input['~standard'];

describe('objectInput', () => {
  it.each([
    [
      { name: 'a', tags: ['x'] },
      { name: 'a', tags: ['x'] },
    ],
    [
      { name: '', count: 9, tags: ['x'], rest: { b: 1 } },
      { name: '', count: 9, tags: ['x'], rest: { b: 1 } },
    ],
    [
      { name: 'a', count: null, tags: ['x'] },
      { name: 'a', tags: ['x'] },
    ],
    [
      { name: 'a', tags: ['x'], rest: '{"b":1}' },
      { name: 'a', tags: ['x'], rest: { b: 1 } },
    ],
  ])('takes %j', (value, expected) => {
    expect(validate(value)).toEqual({ value: expected });
  });

  it.each([
    [null, 'Expected an object.'],
    [['a'], 'Expected an object.'],
    [{ tags: ['x'] }, 'Expected text.'],
    [{ name: 5, tags: ['x'] }, 'Expected text.'],
    [{ name: 'a', tags: [] }, 'Expected a list of texts, at least 1.'],
    [{ name: 'a', tags: [1] }, 'Expected a list of texts, at least 1.'],
    [{ name: 'a', tags: ['x'], count: 0 }, 'Expected an integer from 1 to 9.'],
    [{ name: 'a', tags: ['x'], count: 1.5 }, 'Expected an integer from 1 to 9.'],
    [{ name: 'a', tags: ['x'], rest: '[1]' }, 'Expected an object.'],
    [{ name: 'a', tags: ['x'], rest: '{' }, 'Expected an object.'],
    [{ name: 'a', tags: ['x'], nmae: 'b' }, 'Unknown property. Expected: name, count, tags, rest.'],
    [
      JSON.parse('{"name":"a","tags":["x"],"__proto__":{}}'),
      'Unknown property. Expected: name, count, tags, rest.',
    ],
  ])('refuses %j', (value, message) => {
    expect(validate(value)).toMatchObject({ issues: [{ message }] });
  });

  it('says everything that is wrong at once', () => {
    expect(validate({ tags: 1, other: 1 })).toMatchObject({
      issues: [{ path: ['other'] }, { path: ['name'] }, { path: ['tags'] }],
    });
  });

  it('fills in the default of a text, and only suggests its values', () => {
    const { validate, jsonSchema } = objectInput<{ kind: string }>({
      kind: { type: 'text', description: 'A kind.', default: 'a', oneOf: ['a', 'b'] },
    })['~standard'];
    for (const left of [{}, { kind: null }]) expect(validate(left)).toEqual({ value: { kind: 'a' } });
    expect(validate({ kind: 'c' })).toEqual({ value: { kind: 'c' } });
    expect(validate({ kind: 1 })).toMatchObject({ issues: [{ path: ['kind'], message: 'Expected text.' }] });
    expect(jsonSchema!.input({ target: 'draft-2020-12' })).toMatchObject({
      properties: { kind: { type: 'string', enum: ['a', 'b'] } },
      required: [],
    });
  });

  it('shows the model the same as it checks', () => {
    expect(jsonSchema!.input({ target: 'draft-2020-12' })).toEqual({
      type: 'object',
      properties: {
        name: { type: 'string', description: 'A name.' },
        count: { type: 'integer', description: 'A count.', minimum: 1, maximum: 9 },
        tags: { type: 'array', items: { type: 'string' }, description: 'Tags.', minItems: 1 },
        rest: { type: 'object', description: 'The rest.' },
      },
      required: ['name', 'tags'],
      additionalProperties: false,
    });
  });
});
