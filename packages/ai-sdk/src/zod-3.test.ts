import { describe, expect, it } from 'vitest';
import { z } from 'zod/v3';
import { type Zod3Schema, zod3JsonSchema } from './zod-3.js';

enum Size {
  Small,
  Large,
}
enum Color {
  Red = 'red',
}

describe('zod3JsonSchema()', () => {
  it.each<[z.ZodTypeAny, object]>([
    [z.string().min(1).max(5), { type: 'string', minLength: 1, maxLength: 5 }],
    [z.string().length(3), { type: 'string', minLength: 3, maxLength: 3 }],
    [z.string().regex(/^a/), { type: 'string', pattern: '^a' }],
    [z.string().url(), { type: 'string', format: 'uri' }],
    [z.string().datetime(), { type: 'string', format: 'date-time' }],
    [z.string().trim().email(), { type: 'string', format: 'email' }],
    [z.number().int().min(1).lt(5), { type: 'integer', minimum: 1, exclusiveMaximum: 5 }],
    [
      z.number().gt(0).max(9).multipleOf(3),
      { type: 'number', exclusiveMinimum: 0, maximum: 9, multipleOf: 3 },
    ],
    [z.boolean(), { type: 'boolean' }],
    [z.null(), { type: 'null' }],
    [z.any(), {}],
    [z.unknown(), {}],
    [z.literal('a'), { const: 'a' }],
    [z.enum(['a', 'b']), { type: 'string', enum: ['a', 'b'] }],
    [z.nativeEnum(Size), { enum: [0, 1] }],
    [z.nativeEnum(Color), { enum: ['red'] }],
    [
      z.array(z.string()).min(1).max(3),
      { type: 'array', items: { type: 'string' }, minItems: 1, maxItems: 3 },
    ],
    [z.array(z.string()).length(2), { type: 'array', items: { type: 'string' }, minItems: 2, maxItems: 2 }],
    [z.tuple([z.string()]), { type: 'array', prefixItems: [{ type: 'string' }], items: false }],
    [z.tuple([]).rest(z.string()), { type: 'array', prefixItems: [], items: { type: 'string' } }],
    [z.record(z.number()), { type: 'object', additionalProperties: { type: 'number' } }],
    [z.union([z.string(), z.number()]), { anyOf: [{ type: 'string' }, { type: 'number' }] }],
    [
      z.discriminatedUnion('k', [z.object({ k: z.literal(1) })]),
      { anyOf: [{ type: 'object', properties: { k: { const: 1 } }, required: ['k'] }] },
    ],
    [z.intersection(z.string(), z.any()), { allOf: [{ type: 'string' }, {}] }],
    [z.string().nullable(), { anyOf: [{ type: 'string' }, { type: 'null' }] }],
    [z.string().default('x'), { type: 'string', default: 'x' }],
    [z.string().catch('x').readonly(), { type: 'string' }],
    [z.string().brand('B'), { type: 'string' }],
    [z.string().transform(Number), { type: 'string' }],
    [z.string().pipe(z.any()), { type: 'string' }],
    [z.string().describe('Words.'), { type: 'string', description: 'Words.' }],
    [
      z.object({ a: z.string(), b: z.string().optional() }).strict(),
      {
        type: 'object',
        properties: { a: { type: 'string' }, b: { type: 'string' } },
        required: ['a'],
        additionalProperties: false,
      },
    ],
  ])('%#', (schema, expected) => {
    expect(zod3JsonSchema(schema as unknown as Zod3Schema)).toEqual(expected);
  });

  it('says what it has no words for', () => {
    const schema = z.object({ m: z.map(z.string(), z.string()) }) as unknown as Zod3Schema;
    expect(() => zod3JsonSchema(schema)).toThrow('a ZodMap of zod 3 has no JSON Schema here');
  });
});
