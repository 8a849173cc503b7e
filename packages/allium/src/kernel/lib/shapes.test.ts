import { checkFields, checkValue, kinds, type OptionsOf } from 'allium/kit';
import { describe, expect, expectTypeOf, it } from 'vitest';

describe('kinds', () => {
  it.each([
    [kinds.anything, undefined, 'a value'],
    [kinds.text, 1, 'text'],
    [kinds.nonEmptyText, '', 'non-empty text'],
    [kinds.flag, 'yes', 'true or false'],
    [kinds.record, [], 'an object'],
    [kinds.record, new Map(), 'an object'],
    [kinds.func(), 1, 'a function'],
    [kinds.methods<{ now(): number }>('now'), { now: 1 }, 'an object with now()'],
    [kinds.integer(), 1.5, 'an integer'],
    [kinds.integer(1), 0, 'an integer ≥ 1'],
    [kinds.integer(1, 9), 10, 'an integer from 1 to 9'],
    [kinds.number(), Number.NaN, 'a finite number'],
    [kinds.number(0), Number.POSITIVE_INFINITY, 'a finite number ≥ 0'],
    [kinds.number(0, 1), 2, 'a number from 0 to 1'],
    [kinds.timeout, -1, 'a number ≥ 0'],
    [kinds.oneOf('a', 'b'), 'c', "'a' or 'b'"],
    [kinds.list, {}, 'a list'],
    [kinds.names, ['a', 1], 'a list of names'],
    [kinds.names, new Array(1), 'a list of names'],
    [kinds.listOf(kinds.text, undefined, 1), [], 'a non-empty list'],
    [kinds.either(kinds.text, kinds.func()), 1, 'text or a function'],
    [kinds.shape({ a: kinds.text }), 'a', 'an object'],
  ])('%# refuse a wrong value', (kind, value, expected) => {
    expect(() => checkValue('x', kind, value)).toThrow(`Expected \`x\` to be ${expected}, got `);
  });

  it.each([
    [kinds.timeout, Number.POSITIVE_INFINITY],
    [kinds.integer(1, 9), 9],
    [kinds.names, ['a']],
    [kinds.either(kinds.text, kinds.listOf(kinds.text)), ['a']],
    [kinds.recordOf(kinds.integer(0)), { a: 0, b: undefined }],
    [kinds.methods<{ now(): number }>('now'), { now: () => 0 }],
  ])('%# accept a right value', (kind, value) => {
    expect(() => checkValue('x', kind, value)).not.toThrow();
  });

  it.each([
    [kinds.listOf(kinds.text), ['a', 1], 'Expected `x[1]` to be text, got 1.'],
    [kinds.recordOf(kinds.integer(0)), { a: -1 }, 'Expected `x.a` to be an integer ≥ 0, got -1.'],
    [kinds.shape({ a: kinds.shape({ b: kinds.flag }) }), { a: { b: 1 } }, 'Expected `x.a.b` to be true or'],
    [
      kinds.shape({ turns: kinds.integer(1) }, { steps: 'turns' }),
      { steps: 1 },
      'Unknown option `steps` of x. Here that is `turns`. It takes: turns.',
    ],
    [kinds.either(kinds.flag, kinds.listOf(kinds.text)), [1], 'Expected `x[0]` to be text, got 1.'],
  ])('%# say where inside the mistake is', (kind, value, message) => {
    expect(() => checkValue('x', kind, value)).toThrow(message);
  });

  it('have a JSON Schema that says the same, with a mark for what only code can give', () => {
    expect(
      kinds.shape({
        a: kinds.required(kinds.integer(1, 9)),
        b: kinds.either(kinds.oneOf('x', 'y'), kinds.func()),
        c: kinds.either(kinds.flag, kinds.recordOf(kinds.number(0))),
        d: kinds.func(),
      }).schema,
    ).toEqual({
      type: 'object',
      properties: {
        a: { type: 'integer', minimum: 1, maximum: 9 },
        b: { anyOf: [{ enum: ['x', 'y'] }, kinds.CODE] },
        c: {
          anyOf: [
            { type: 'boolean' },
            { type: 'object', additionalProperties: { type: 'number', minimum: 0 } },
          ],
        },
        d: kinds.CODE,
      },
      required: ['a'],
      additionalProperties: false,
    });
  });
});

describe('fields', () => {
  const fields = {
    path: kinds.required(kinds.nonEmptyText),
    mode: kinds.oneOf('fast', 'safe'),
    onDone: kinds.func<(ok: boolean) => void>(),
  };

  it('name what is missing, wrong or misspelt', () => {
    expect(() => checkFields('open()', fields, {})).toThrow(
      'Expected `path` to be non-empty text, got undefined.',
    );
    expect(() => checkFields('open()', fields, { path: 'a', mode: 'x' })).toThrow(
      "`mode` to be 'fast' or 'safe'",
    );
    expect(() => checkFields('open()', fields, { path: 'a', onDon: 1 })).toThrow(
      'Unknown option `onDon` of open(). Did you mean `onDone`? It takes: path, mode, onDone.',
    );
    const many = Object.fromEntries(
      [...'abcdefghijklmnopqrstuvwxyz'].map((name) => [name + name, kinds.text]),
    );
    expect(() => checkFields('x()', many, { aaa: 1 })).toThrow(
      /^Unknown option `aaa` of x\(\)\. Did you mean `aa`\?$/,
    );
    expect(() => checkFields('x()', many, { nothing: 1 })).toThrow('It takes: aa, bb, ');
    expect(() => checkFields('open()', fields, 'a')).toThrow(
      'an object with path, mode, onDone for open(), got "a"',
    );
    expect(() => checkFields('open()', fields, { path: 'a', mode: undefined })).not.toThrow();
    // Members of every object are not fields.
    expect(() => checkFields('open()', fields, { path: 'a', toString: 1 })).toThrow(
      'Unknown option `toString`',
    );
  });

  it('give the type of the options', () => {
    expectTypeOf<OptionsOf<typeof fields>>().toExtend<{
      readonly path: string;
      readonly mode?: 'fast' | 'safe';
      readonly onDone?: (ok: boolean) => void;
    }>();
  });
});
