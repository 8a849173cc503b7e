import type { JsonSchema } from 'allium';
import { Agent, tool } from 'allium';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { fake, finish, text } from '../test/fakes.js';
import { fromAiSdk } from './index.js';
import { toolSchema } from './tool-schema.js';

const inputOf = (schema: z.ZodType) => z.toJSONSchema(schema, { io: 'input' }) as JsonSchema;
const string = { type: 'string' };
const number = { type: 'number' };

describe('toolSchema', () => {
  it('leaves an object as it is', () => {
    const plain = inputOf(z.object({ a: z.union([z.string(), z.number()]) }));
    expect(toolSchema(plain)).toBe(plain);
  });

  it('has no `oneOf`, which Gemini does not know', () => {
    const kind = z.discriminatedUnion('k', [
      z.object({ k: z.literal('a') }),
      z.object({ k: z.literal('b') }),
    ]);
    const { oneOf } = inputOf(kind) as { oneOf: unknown[] };
    expect(toolSchema(inputOf(z.object({ list: z.array(kind) }))).properties).toEqual({
      list: { type: 'array', items: { anyOf: oneOf } },
    });
  });

  it('merges the kinds of a union, and says which fields go together', () => {
    const at = z.object({ at: z.string() });
    const schema = z.discriminatedUnion('do', [
      at.extend({ do: z.literal('make'), size: z.number() }),
      at.extend({ do: z.literal('move'), size: z.string().optional(), to: z.string() }),
    ]);
    const made = toolSchema(inputOf(schema.describe('Works.')));
    expect(made).toEqual({
      $schema: expect.any(String),
      type: 'object',
      description: 'Works. Give the fields of one kind: at, do, size; or at, do, size, to.',
      properties: {
        at: string,
        do: { type: 'string', enum: ['make', 'move'] },
        size: { anyOf: [number, string] },
        to: string,
      },
      required: ['at', 'do'],
    });
    expect(
      toolSchema(inputOf(z.union([z.object({ a: z.string() }), z.object({ b: z.number() })]))),
    ).toMatchObject({
      type: 'object',
      properties: { a: string, b: number },
    });
  });

  it.each<[string, JsonSchema, object]>([
    ['anything', {}, { type: 'object', properties: {} }],
    [
      'an object that needs one of two fields',
      {
        type: 'object',
        properties: { a: string, b: number },
        required: ['a'],
        anyOf: [{ required: ['a', 'b'] }, { required: ['b'] }],
      },
      { type: 'object', properties: { a: string, b: number }, required: ['a', 'b'] },
    ],
    [
      'parts that all hold',
      {
        allOf: [
          { properties: { a: string }, required: ['a'] },
          { properties: { b: number }, required: ['b'] },
        ],
      },
      { type: 'object', properties: { a: string, b: number }, required: ['a', 'b'] },
    ],
    [
      'a reference, in a circle as well',
      {
        $ref: '#/$defs/tree',
        $defs: { tree: { anyOf: [{ type: 'object', properties: { a: string } }, { $ref: '#/$defs/tree' }] } },
      },
      { type: 'object', properties: { a: string }, $defs: expect.anything() },
    ],
    ['a reference to nowhere', { $ref: '#/x' }, { type: 'object', properties: {} }],
  ])('makes an object of %s', (_, given, made) => {
    expect(toolSchema(given)).toEqual(made);
  });

  it('is what models are sent; the tool is still called with one kind only', async () => {
    const input = z.discriminatedUnion('k', [
      z.object({ k: z.literal('a'), x: z.string() }),
      z.object({ k: z.literal('b'), y: z.number() }),
    ]);
    const got: unknown[] = [];
    const both = tool({ name: 'both', description: 'Both.', input, execute: (args) => void got.push(args) });
    const call = (toolCallId: string, args: object) => ({
      type: 'tool-call',
      toolCallId,
      toolName: 'both',
      input: JSON.stringify(args),
    });
    const faked = fake('v3', [
      [call('1', { k: 'b', x: 'no' }), call('2', { k: 'b', y: 1 }), finish('v3', 'tool-calls')],
      [...text('Done.'), finish('v3')],
    ] as never);
    const { messages } = await new Agent({ model: fromAiSdk(faked.model), tools: [both] }).run('go');
    const [sent] = faked.calls[0]!.options.tools;
    expect(sent.inputSchema).toMatchObject({ type: 'object', required: ['k'] });
    expect(sent.inputSchema).not.toHaveProperty('oneOf');
    expect(got).toEqual([{ k: 'b', y: 1 }]);
    expect(messages[2]).toMatchObject({ isError: true });
  });
});
