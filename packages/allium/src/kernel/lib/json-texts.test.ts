import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  hasRepeatedKeys,
  readArguments,
  textsIn,
  toStoredJson,
  unescaped,
  withoutRounding,
  withTexts,
} from './json-texts.js';

describe('texts of a JSON value', () => {
  it('are its keys, strings and numbers, at any depth and in order', () => {
    expect(textsIn({ a: 'x', list: [1, { deep: ['y'] }], none: null, yes: true })).toEqual([
      'a',
      'x',
      'list',
      '1',
      'deep',
      'y',
      'none',
      'yes',
    ]);
  });

  it('put back unchanged give the same value', () => {
    fc.assert(
      fc.property(fc.jsonValue(), (value) => {
        const json = JSON.parse(JSON.stringify(value));
        expect(withTexts(json, textsIn(json))).toEqual(json);
      }),
    );
  });

  it('put back changed keep everything around them', () => {
    const value = { card: 4111, 'k 1': ['keep', 'cut'], flag: false };
    const texts = textsIn(value).map((text) => text.replace(/4111|cut/g, '[x]'));
    expect(withTexts(value, texts)).toEqual({ card: '[x]', 'k 1': ['keep', '[x]'], flag: false });
  });

  it('lose no value when two keys become the same', () => {
    expect(withTexts({ a1: 1, a2: 2, a3: 3 }, ['[x]', '1', '[x]', '2', '[x]', '3'])).toEqual({
      '[x]': 1,
      '[x]#2': 2,
      '[x]#3': 3,
    });
  });
});

describe('hidesText', () => {
  it.each([
    ['{"a": "x", "b": ["y", {"c": "z"}]}', false],
    ['"a \\"quoted\\" text\\\\"', false],
    ['{}', false],
    ['{"a":"secret","a":"x"}', true],
    ['[{"a":{"b":1},"a":2}]', true],
  ])('%s: %s', (json, hides) => {
    expect(hasRepeatedKeys(json, JSON.parse(json))).toBe(hides);
  });

  it('is false for everything JSON.stringify writes', () => {
    fc.assert(
      fc.property(fc.json(), (json) => {
        expect(hasRepeatedKeys(json, JSON.parse(json))).toBe(false);
      }),
    );
  });
});

describe('withoutRounding', () => {
  it.each([
    ['{"card":6222021000123456781}', '{"card":"6222021000123456781"}'],
    ['[-12345678901234567890.5e-3,1e400]', '["-12345678901234567890.5e-3","1e400"]'],
    ['{"6222021000123456781":"6222021000123456781","\\"":1}', undefined],
    ['[1.0,1e3,-0,0.10,1E+2,4111111111111111,0.30000000000000004,1e21,5e-324]', undefined],
  ])('%s', (json, made = json) => {
    expect(withoutRounding(json)).toBe(made);
  });

  it('leaves everything JSON.stringify writes', () => {
    fc.assert(
      fc.property(fc.json(), (given) => {
        const json = JSON.stringify(JSON.parse(given));
        expect(withoutRounding(json)).toBe(json);
      }),
    );
  });
});

describe('readArguments', () => {
  it.each([
    ['{"card":4111111111111111e9}', '{"card":4.111111111111111e+24}'],
    ['{"card":4111111111111111000000}', '{"card":4.111111111111111e+21}'],
    ['[4111111111111111e-3,1E+2]', '[4111111111111.111,100]'],
    ['{"1e9":"1e9 \\"1e9","n":1.0,"card":6222021000123456781}', undefined],
    ['[12345678901234567890e3]', undefined],
  ])('keeps numbers as they were judged: %s', (given, kept = given) => {
    expect(readArguments(given)!.kept).toBe(kept);
    expect(JSON.parse(kept)).toEqual(JSON.parse(given));
  });

  it('keeps everything JSON.stringify writes', () => {
    fc.assert(
      fc.property(fc.json(), (given) => {
        const json = JSON.stringify(JSON.parse(given));
        expect(readArguments(json)!.kept).toBe(json);
      }),
    );
  });
});

describe('unescaped', () => {
  it('reads a text like JSON reads a string', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), (text) => {
        expect(unescaped(JSON.stringify(text).slice(1, -1))).toBe(text);
      }),
    );
    expect(unescaped('a\\u0040b \\x \\')).toBe('a@b \\x \\');
  });
});

describe('asJson', () => {
  it('returns what would be stored, or undefined if it cannot be stored', () => {
    const circular: { self?: unknown } = {};
    circular.self = circular;
    expect(toStoredJson({ at: new Date(0), no: undefined })).toEqual({ at: '1970-01-01T00:00:00.000Z' });
    expect(toStoredJson(() => 1)).toBeUndefined();
    expect(toStoredJson(circular)).toBeUndefined();
  });
});
