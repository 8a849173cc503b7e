// The arguments of the offline model are valid by the schemas that zod, valibot and arktype write.

import { toJsonSchema } from '@valibot/to-json-schema';
import Ajv from 'ajv';
import Ajv2020 from 'ajv/dist/2020.js';
import { type } from 'arktype';
import * as v from 'valibot';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { toMessages } from '../../kernel/messages/message-input.js';
import type { JsonSchema } from '../../kernel/messages/model.js';
import { offlineModel } from './index.js';

// Formats are a package of its own: the table says word for word what is expected of them.
const OPTIONS = { strict: false, validateFormats: false };

function isValid(schema: JsonSchema, value: unknown): boolean {
  const { $schema, ...rest } = schema;
  const old = String($schema).includes('draft-07');
  return (old ? new Ajv.default(OPTIONS) : new Ajv2020.default(OPTIONS)).validate(rest, value);
}

/** The arguments of the one call that the model makes, or what it says instead. */
async function asked(message: string, inputSchema: JsonSchema): Promise<unknown> {
  const request = {
    messages: toMessages(message),
    systemPrompt: '',
    tools: [{ name: 'go', description: '', inputSchema }],
    settings: {},
  };
  let text = '';
  for await (const part of offlineModel().stream(request, { signal: new AbortController().signal })) {
    if (part.type === 'tool-call') return JSON.parse(part.arguments);
    if (part.type === 'text') text += part.text;
  }
  return text.split('\n')[0];
}

const missing = (key: string) => `I would call go, but I find nothing in your message for \`${key}\`.`;

type Case = readonly [name: string, message: string, schema: JsonSchema, expected: unknown];

const UUID = '3f2b8c1e-5d4a-4c3b-9a8f-7e6d5c4b3a21';

const zod = (x: z.ZodType) => z.toJSONSchema(z.object({ x }), { io: 'input' }) as JsonSchema;
interface ZodNode {
  name: string;
  next: ZodNode | null;
}
const ZodList: z.ZodType<ZodNode> = z.object({
  name: z.string(),
  get next() {
    return ZodList.nullable();
  },
});
const zodTree = z.object({
  open: z.boolean(),
  get inner() {
    return zodTree.nullable();
  },
}) as z.ZodType;

const ZOD: readonly Case[] = [
  ['tuple', 'go "a" 3 4', zod(z.tuple([z.string(), z.number()])), ['a', 3]],
  ['tuple that lacks something', 'go "a"', zod(z.tuple([z.string(), z.number()])), missing('x')],
  ['tuple with a rest', 'go "a" 3 4', zod(z.tuple([z.string()], z.number())), ['a', 3, 4]],
  ['tuple with an optional end', 'go "a"', zod(z.tuple([z.string(), z.number().optional()])), ['a']],
  ['tuple of constants', 'go 3', zod(z.tuple([z.literal('a'), z.boolean(), z.number()])), ['a', false, 3]],
  ['list with a most', 'go 1 2 3', zod(z.array(z.number()).max(2)), [1, 2]],
  ['list with a least', 'go 1', zod(z.array(z.number()).min(2)), missing('x')],
  ['list of a length', 'go with Ann, Bob and Cid', zod(z.array(z.string()).length(2)), ['Ann', 'Bob']],
  ['list of objects', 'go 1 2', zod(z.array(z.object({ n: z.number() })).min(1)), [{ n: 1 }]],
  [
    'list of objects that lack something',
    'go',
    zod(z.array(z.object({ n: z.number() })).min(1)),
    missing('x'),
  ],
  [
    'names of one object',
    'go with Ann and Bob',
    zod(z.object({ a: z.string(), b: z.string() })),
    { a: 'Ann', b: 'Bob' },
  ],
  ['list of choices', 'go with Ann', zod(z.array(z.enum(['low', 'high']))), []],
  ['literals', 'go b', zod(z.literal(['a', 'b'])), 'b'],
  ['union of literals', 'go b', zod(z.union([z.literal('a'), z.literal('b')])), 'b'],
  ['enum', 'go', zod(z.enum(['a', 'b'])), missing('x')],
  ['multiple', 'go 3 10', zod(z.int().positive().multipleOf(5)), 10],
  ['exclusive range', 'go 1 5 4', zod(z.number().gt(1).lt(5)), 4],
  ['lengths', 'go "a" "abcde" "👍👍👍👍"', zod(z.string().min(2).max(4)), '👍👍👍👍'],
  ['length of a name', 'go to Oslo and Bergen', zod(z.string().min(5)), 'Bergen'],
  ['pattern', 'go for ab-12.', zod(z.string().regex(/^ab-\d+$/)), 'ab-12'],
  ['two patterns', 'go "A" "Z" "AZ"', zod(z.string().regex(/^A/).regex(/Z$/)), 'AZ'],
  ['pattern of nothing there', 'go to Oslo "x"', zod(z.string().regex(/^ab-\d+$/)), missing('x')],
  ['email', 'go to "Ann", ann@example.com', zod(z.email()), 'ann@example.com'],
  ['url', 'go to "Ann", https://example.com/a', zod(z.url()), 'https://example.com/a'],
  ['date-time', 'go at 2026-02-03T04:05:06Z.', zod(z.iso.datetime()), '2026-02-03T04:05:06Z'],
  ['no date-time', 'go at 2026-02-03 "noon"', zod(z.iso.datetime()), missing('x')],
  ['date', 'go on 2026-02-30 or 2026-02-28', zod(z.iso.date()), '2026-02-28'],
  ['time', 'go at 10:30', zod(z.iso.time()), '10:30'],
  ['uuid', `go with Ann (${UUID})`, zod(z.uuid()), UUID],
  ['ipv4', 'go to 10.0.0.1', zod(z.ipv4()), '10.0.0.1'],
  ['nullable, there', 'go "a"', zod(z.string().nullable()), 'a'],
  ['nullable, not there', 'go', zod(z.string().nullable()), null],
  [
    'intersection',
    'go 3 "s"',
    zod(z.object({ a: z.number() }).and(z.object({ b: z.string() }))),
    { a: 3, b: 's' },
  ],
  ['record', 'go', zod(z.record(z.string(), z.number())), {}],
  ['record of an enum', 'go 1 2', zod(z.record(z.enum(['a', 'b']), z.number())), { a: 1, b: 2 }],
  [
    'discriminated union',
    'go to ann@example.com',
    zod(
      z.discriminatedUnion('k', [
        z.object({ k: z.literal('a'), n: z.number() }),
        z.object({ k: z.literal('b'), s: z.email() }),
      ]),
    ),
    { k: 'b', s: 'ann@example.com' },
  ],
  ['union', 'go "a"', zod(z.union([z.number(), z.string()])), 'a'],
  ['union of nothing there', 'go', zod(z.union([z.number(), z.string()])), missing('x')],
  ['reference', 'go "a" "b"', zod(ZodList), { name: 'a', next: { name: 'b', next: null } }],
  ['reference that takes nothing', 'go', zod(zodTree), { open: false, inner: null }],
];

const valibot = (x: v.GenericSchema) => toJsonSchema(v.object({ x })) as JsonSchema;

const VALIBOT: readonly Case[] = [
  ['tuple', 'go "a" 3 4', valibot(v.tuple([v.string(), v.number()])), ['a', 3]],
  ['strict tuple', 'go "a" 3 4', valibot(v.strictTuple([v.string(), v.number()])), ['a', 3]],
  ['tuple with a rest', 'go "a" 3 4', valibot(v.tupleWithRest([v.string()], v.number())), ['a', 3, 4]],
  ['list', 'go 1 2 3', valibot(v.pipe(v.array(v.number()), v.minLength(1), v.maxLength(2))), [1, 2]],
  ['picklist', 'go b', valibot(v.picklist(['a', 'b'])), 'b'],
  ['multiple', 'go 3 10', valibot(v.pipe(v.number(), v.integer(), v.minValue(1), v.multipleOf(5))), 10],
  ['length', 'go "a" "abc"', valibot(v.pipe(v.string(), v.length(3))), 'abc'],
  ['email', 'go "a" a@example.com', valibot(v.pipe(v.string(), v.email())), 'a@example.com'],
  ['date', 'go 2026-02-03', valibot(v.pipe(v.string(), v.isoDate())), '2026-02-03'],
  ['uuid', `go "a" ${UUID}`, valibot(v.pipe(v.string(), v.uuid())), UUID],
  ['nullable', 'go', valibot(v.nullable(v.string())), null],
  [
    'intersection',
    'go 3 "s"',
    valibot(v.intersect([v.object({ a: v.number() }), v.object({ b: v.string() })])),
    { a: 3, b: 's' },
  ],
  ['record', 'go', valibot(v.record(v.string(), v.number())), {}],
  [
    'record with a least',
    'go',
    valibot(v.pipe(v.record(v.string(), v.number()), v.minEntries(1))),
    missing('x'),
  ],
];

const arktype = (x: unknown) => type({ x } as never).toJsonSchema() as JsonSchema;

const ARKTYPE: readonly Case[] = [
  ['tuple', 'go "a" 3 4', arktype(['string', 'number']), ['a', 3]],
  ['tuple with a rest', 'go "a" 3 4', arktype(['string', '...', 'number[]']), ['a', 3, 4]],
  ['list', 'go 1 2 3', arktype('1<=number[]<=2'), [1, 2]],
  ['literals', 'go b', arktype("'a'|'b'"), 'b'],
  ['multiple', 'go 3 10', arktype('number%5'), 10],
  ['lengths', 'go "a" "abc"', arktype('2<=string<=4'), 'abc'],
  ['pattern', 'go ab-12', arktype('/^ab-\\d+$/'), 'ab-12'],
  ['email', 'go "a" a@example.com', arktype('string.email'), 'a@example.com'],
  ['uuid', `go ${UUID}`, arktype('string.uuid'), UUID],
  ['no uuid', 'go', arktype('string.uuid'), missing('x')],
  ['nullable', 'go', arktype('string|null'), null],
  ['union', 'go "a"', arktype('string|number'), 'a'],
  ['record', 'go', arktype('Record<string,number>'), {}],
];

describe.each([
  ['zod', ZOD],
  ['valibot', VALIBOT],
  ['arktype', ARKTYPE],
])('the offline model, with a schema of %s', (_, cases) => {
  it.each(cases)('%s: %s', async (_name, message, schema, expected) => {
    const said = await asked(message, schema);
    if (typeof said === 'string') return expect(said).toBe(expected);
    expect(said).toEqual({ x: expected });
    expect(isValid(schema, said)).toBe(true);
  });
});

const raw = (x: JsonSchema): JsonSchema => ({ type: 'object', properties: { x }, required: ['x'] });
const number = { type: 'number' };

const self = { $ref: '#/$defs/J' };
const recursive = (J: JsonSchema): JsonSchema => ({ ...raw(self), $defs: { J } });
const SIX = ['a', 'b', 'c', 'd', 'e', 'f'];
const six = (one: JsonSchema): JsonSchema => ({
  type: 'object',
  properties: Object.fromEntries(SIX.map((key) => [key, one])),
  required: SIX,
});
const orNull = { anyOf: [self, { type: 'null' }] };
const json = { anyOf: [{ type: 'string' }, number, { type: 'array', items: self }] };
/** Each of thirty refers twice to the next one, the last one to the first. */
const twice = (keyword: string): JsonSchema => ({
  ...raw({ $ref: '#/$defs/0' }),
  $defs: Object.fromEntries(
    Array.from({ length: 30 }, (_, n) => {
      const next = { $ref: `#/$defs/${(n + 1) % 30}` };
      return [n, { [keyword]: [next, next] }];
    }),
  ),
});

describe('the offline model, with a schema that could go on for ever', () => {
  it.each([
    ['a list of itself', 'go', recursive({ type: 'array', items: self }), { x: [] }],
    ['a list of two of itself', 'go', recursive({ type: 'array', items: self, minItems: 2 }), missing('x')],
    ['any JSON, of nothing', 'go', recursive(json), { x: [] }],
    ['any JSON, of a number', 'go 3', recursive(json), { x: 3 }],
    [
      'very many flags',
      'go',
      raw({ type: 'array', items: { type: 'boolean' }, minItems: 1e7 }),
      missing('x'),
    ],
    ['very many constants', 'go', raw({ type: 'array', items: { const: 1 }, minItems: 1e7 }), missing('x')],
    [
      'as many flags as are to be had',
      'go',
      raw({ type: 'array', items: { type: 'boolean' }, minItems: 100 }),
      { x: Array(100).fill(false) },
    ],
    [
      'six of itself or null',
      'go',
      recursive(six(orNull)),
      { x: Object.fromEntries(SIX.map((key) => [key, null])) },
    ],
    ['six of itself', 'go', recursive(six(self)), expect.stringContaining('I find nothing')],
    [
      'six of itself or null, before a name',
      'go to Oslo',
      (() => {
        const { properties, required, ...rest } = recursive(six(orNull));
        return {
          ...rest,
          properties: { ...(properties as object), y: raw({ type: 'string' }) },
          required: [...(required as string[]), 'y'],
        };
      })(),
      { x: Object.fromEntries(SIX.map((key) => [key, null])), y: { x: 'Oslo' } },
    ],
    [
      'six of itself, each with a number, and a text that is not there',
      'go 1 2 3 4 5 6 7 8 9',
      recursive({
        type: 'object',
        properties: { n: number, ...(six({ anyOf: [self, { type: 'boolean' }] }).properties as object) },
        required: ['n', ...SIX, 'email'],
        additionalProperties: { type: 'string' },
      }),
      expect.stringContaining('`x.email`'),
    ],
    ['choices that refer to each other', 'go', twice('anyOf'), missing('x')],
    ['parts that refer to each other', 'go', twice('allOf'), missing('x')],
    ['a reference that cannot be decoded', 'go', raw({ $ref: '#/$defs/100%' }), missing('x')],
  ])('%s', async (_, message, schema, expected) => {
    expect(await asked(message, schema)).toEqual(expected);
  });

  it('answers by one that contains itself', async () => {
    const request = (responseSchema: JsonSchema) => ({
      messages: toMessages('hello'),
      systemPrompt: '',
      tools: [],
      settings: { responseSchema },
    });
    const answer = async (schema: JsonSchema) => {
      let text = '';
      const stream = offlineModel().stream(request(schema), { signal: new AbortController().signal });
      for await (const part of stream) if (part.type === 'text') text += part.text;
      return JSON.parse(text);
    };
    expect(await answer(recursive(six(self)))).toEqual({ x: {} });
    expect(await answer(recursive({ type: 'array', items: self }))).toEqual({ x: [] });
  });
});

describe('the offline model, with a schema', () => {
  it.each([
    [
      'of different items',
      'go 1 1 2',
      raw({ type: 'array', items: number, uniqueItems: true }),
      { x: [1, 2] },
    ],
    [
      'of two different constants',
      'go',
      raw({ type: 'array', items: { const: 1 }, uniqueItems: true, minItems: 2 }),
      missing('x'),
    ],
    ['with a choice at its root', 'go 1', { oneOf: [raw({ type: 'string' }), raw(number)] }, { x: 1 }],
    [
      'that is a reference',
      'go 1',
      { $ref: '#/definitions/a~1b', definitions: { 'a/b': raw(number) } },
      { x: 1 },
    ],
    ['that refers to itself for ever', 'go', { ...raw({ $ref: '#/properties/x' }) }, missing('x')],
    ['that contains itself for ever', 'go', raw({ $ref: '#' }), expect.stringContaining('I find nothing')],
    ['whose reference leads nowhere', 'go', raw({ $ref: '#/$defs/none' }), missing('x')],
    ['whose pattern is none', 'go "a"', raw({ type: 'string', pattern: '(' }), { x: 'a' }],
    [
      'with a default beside a choice',
      'go',
      raw({ default: 2, anyOf: [number, { type: 'null' }] }),
      { x: 2 },
    ],
    ['of an optional tuple', 'go', { ...raw({ prefixItems: [number, number] }), required: [] }, {}],
  ])('%s', async (_, message, schema, expected) => {
    expect(await asked(message, schema)).toEqual(expected);
  });
});
