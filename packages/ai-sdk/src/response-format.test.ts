// What providers demand of the JSON Schema of an answer. OpenAI answers 400 to schemas that its strict mode doesn't know.
import type { JsonSchema, ModelSettings } from 'allium';
import { Agent } from 'allium';
import { structuredOutput } from 'allium/middleware/structured-output';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { type AnyPart, fake, finish, text } from '../test/fakes.js';
import { type FromAiSdkOptions, fromAiSdk } from './index.js';

/** The options of the call that a request with this schema makes. */
async function callFor(
  responseSchema: JsonSchema,
  { provider = 'openai.responses', ...options }: FromAiSdkOptions = {},
  settings: ModelSettings = {},
): Promise<AnyPart> {
  const faked = fake('v3', [[...text('{}'), finish('v3')]], { provider });
  const model = fromAiSdk(faked.model, options);
  await new Agent({ model, settings: { ...settings, responseSchema } }).run('go');
  return faked.calls[0]!.options;
}

const inputOf = (schema: z.ZodType) => z.toJSONSchema(schema, { io: 'input' }) as JsonSchema;
const shownFor = async (schema: JsonSchema) => (await callFor(schema)).responseFormat.schema;
const A = { type: 'object', properties: { a: { type: 'string' } }, required: ['a'] };
const BOTH = { allOf: [A, { ...A, properties: { b: { type: 'string' } }, required: ['b'] }] };
const tree = z.object({
  name: z.string(),
  get children() {
    return z.array(tree);
  },
});
const LENIENT = { strictJsonSchema: false };

describe('the schema of an answer', () => {
  it('says of every object that it has no other fields, as structuredOutput sends it', async () => {
    const faked = fake('v3', [[...text('{"a":{"b":[{"c":1}]}}'), finish('v3')]], { provider: 'openai.chat' });
    const schema = z.object({ a: z.object({ b: z.array(z.object({ c: z.number() })) }) });
    await new Agent({ model: fromAiSdk(faked.model), middleware: [structuredOutput({ schema })] }).run('go');
    const { responseFormat, providerOptions } = faked.calls[0]!.options;
    const { a } = responseFormat.schema.properties;
    for (const object of [responseFormat.schema, a, a.properties.b.items])
      expect(object).toMatchObject({ type: 'object', additionalProperties: false });
    expect(providerOptions).toBeUndefined();
  });

  it('does so in definitions and unions, and leaves the given schema as it was', async () => {
    const one = { type: 'object', properties: { n: { type: 'null' } }, required: ['n'] };
    const given = {
      type: 'object',
      properties: { a: { anyOf: [one, { type: 'null' }] }, b: { $ref: '#/$defs/b' } },
      required: ['a', 'b'],
      $defs: { b: one },
    };
    const shut = { ...one, additionalProperties: false };
    const before = structuredClone(given);
    expect(await shownFor(given)).toEqual({
      ...given,
      properties: { ...given.properties, a: { anyOf: [shut, { type: 'null' }] } },
      $defs: { b: shut },
      additionalProperties: false,
    });
    expect(given).toEqual(before);
  });

  it('has `anyOf` in the place of `oneOf`, which Gemini does not know', async () => {
    const one = {
      type: 'object',
      properties: { n: { type: 'null' } },
      required: ['n'],
      additionalProperties: false,
    };
    const both = { anyOf: [one], oneOf: [one] };
    const given = (kinds: object) => ({
      ...one,
      properties: { a: kinds, b: { type: 'array', items: kinds }, c: both },
    });
    expect(await shownFor(given({ oneOf: [one, { type: 'string' }] }))).toEqual(
      given({ anyOf: [one, { type: 'string' }] }),
    );
  });

  it.each<[string, JsonSchema]>([
    ['an open object', inputOf(z.looseObject({ a: z.string() }))],
    ['a record', inputOf(z.record(z.string(), z.number()))],
    ['an intersection', BOTH],
    ['any object', { type: 'object' }],
  ])('leaves %s open', async (_, schema) => {
    expect(await shownFor(schema)).toEqual(schema);
  });
});

describe('strict mode', () => {
  it.each<[string, z.ZodType | JsonSchema]>([
    ['a field that may be missing', z.object({ a: z.string().optional() })],
    ['a default', z.object({ a: z.string().default('x') })],
    ['a record', z.object({ a: z.record(z.string(), z.number()) })],
    [
      'one of several kinds',
      z.object({ a: z.xor([z.object({ x: z.string() }), z.object({ y: z.string() })]) }),
    ],
    ['a URL', z.object({ a: z.url() })],
    ['a pattern that looks ahead', z.object({ a: z.string().regex(/^(?!x)/) })],
    ['the length of a text', z.object({ a: z.string().min(1) })],
    ['a tuple', z.object({ a: z.tuple([z.string(), z.number()]) })],
    ['an intersection', { ...A, properties: { a: BOTH } }],
    [
      'a reference and more',
      { ...A, properties: { a: { $ref: '#/$defs/a', description: 'An a.' } }, $defs: { a: A } },
    ],
    ['a list', z.array(z.string())],
    ['anything', z.object({ a: z.unknown() })],
  ])('is turned off for a schema with %s', async (_, schema) => {
    const given = schema instanceof z.ZodType ? inputOf(schema) : schema;
    expect((await callFor(given)).providerOptions).toMatchObject({ openai: LENIENT });
  });

  it.each<[string, z.ZodType]>([
    ['plain fields', z.object({ a: z.string(), b: z.number().int().min(0), c: z.boolean(), d: z.null() })],
    [
      'lists, choices and nullable fields',
      z.object({ a: z.array(z.enum(['x', 'y'])).max(3), b: z.string().nullable() }),
    ],
    [
      'a union of objects',
      z.object({ a: z.union([z.object({ x: z.string() }), z.object({ y: z.literal(1) })]) }),
    ],
    ['a tree', tree],
    ['a date', z.object({ at: z.iso.date().meta({ description: 'When.' }) })],
  ])('stays on for %s', async (_, schema) => {
    expect((await callFor(inputOf(schema))).providerOptions).toBeUndefined();
  });

  it('is told to those who have one, and what was asked for wins', async () => {
    const schema = inputOf(z.object({ a: z.string().optional() }));
    const optionsFor = async (provider: string, own?: object) =>
      (await callFor(schema, { provider }, own && { provider: own as never })).providerOptions;
    expect(await optionsFor('azure.responses')).toMatchObject({ azure: LENIENT, openai: LENIENT });
    expect(await optionsFor('anthropic.messages')).toEqual({ openaiCompatible: LENIENT });
    expect(
      await optionsFor('openai.chat', { openai: { strictJsonSchema: true, user: 'ann' } }),
    ).toMatchObject({
      openai: { strictJsonSchema: true, user: 'ann' },
    });
  });
});
