/** Tools: schemas of any make, arguments parsed once, and results of any shape. */
import { toJsonSchema } from '@valibot/to-json-schema';
import { Agent, type Middleware, type StandardSchema, textOf, tool, toolResult, toolSpec } from 'allium';
import { jsonSchema } from 'allium/json-schema';
import { scriptedModel, text, toolCalls } from 'allium/testing';
import { type } from 'arktype';
import * as v from 'valibot';
import { describe, expect, it, vi } from 'vitest';
import { z } from 'zod';
import { watched } from '../../../../../test/run-checks.js';

const schema = { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] } as const;
const weather = (input: StandardSchema<any, any>, options: object = {}) =>
  tool({
    name: 'weather',
    description: 'The weather.',
    input,
    execute: ({ city }) => `Sunny in ${city}.`,
    ...options,
  });

const makes = {
  'zod 4': () => weather(z.object({ city: z.string() })),
  arktype: () => weather(type({ city: 'string' })),
  'valibot with toJsonSchema': () => weather(v.object({ city: v.string() }), { toJsonSchema }),
  'raw JSON Schema': () => weather(jsonSchema<{ city: string }>(schema)),
};

describe('a tool with a schema of', () => {
  for (const [make, create] of Object.entries(makes)) {
    it(`${make} shows its JSON Schema to the model, validates and runs`, async () => {
      const model = scriptedModel([
        toolCalls(
          { name: 'weather', args: { city: 'Oslo' }, id: '1' },
          { name: 'weather', args: { city: 5 }, id: '2' },
          { name: 'weather', id: '3' },
        ),
        text('end'),
      ]);
      const { result } = await watched(new Agent({ model, tools: [create()] }), 'go');
      const [fine, wrong, missing] = result.messages.filter(({ role }) => role === 'tool').map(textOf);
      expect(fine).toBe('Sunny in Oslo.');
      expect(wrong).toMatch(/^Invalid arguments for "weather":\n.*city/);
      expect(missing).toMatch(/^Invalid arguments for "weather":\n.*city/);
      const [spec] = model.requests[0]!.tools;
      expect(spec).toMatchObject({ name: 'weather', description: 'The weather.', inputSchema: schema });
      expect(spec!.inputSchema).not.toHaveProperty('$schema');
    });
  }

  it('valibot without toJsonSchema is refused when the tool is defined', () => {
    expect(() => weather(v.object({ city: v.string() }) as never)).toThrow(
      expect.objectContaining({
        code: 'INVALID_TOOL',
        message: expect.stringMatching(
          /a valibot schema does not expose its JSON Schema\. Pass `toJsonSchema`/,
        ),
      }),
    );
  });

  it('something JSON Schema cannot say is refused with the reason, before there is an agent', () => {
    const odd = z.object({ city: z.string().transform((city) => new Date(city)), when: z.date() });
    expect(() => weather(odd)).toThrow(
      expect.objectContaining({
        code: 'INVALID_TOOL',
        message: expect.stringContaining('Tool "weather": its schema cannot be expressed as JSON Schema'),
      }),
    );
  });

  it.each<[string, StandardSchema<any, any>, RegExp]>([
    ['text', z.string(), /got \{"type":"string"\}/],
    ['lists', z.array(z.string()), /got \{"type":"array"/],
    ['one of some words', z.enum(['a', 'b']), /got \{"type":"string","enum"/],
    ['text or lists', z.union([z.string(), z.array(z.string())]), /got \{"anyOf"/],
    ['nothing', z.null(), /got \{"type":"null"\}/],
    ['lists, in raw JSON Schema', jsonSchema({ type: 'array' }), /got \{"type":"array"\}/],
    ['several types', jsonSchema({ type: ['string', 'null'] }), /got \{"type":\["string","null"\]\}/],
    ['either, in raw JSON Schema', jsonSchema({ oneOf: [false, { type: 'number' }] }), /got \{"oneOf"/],
    ['an unknown type', jsonSchema({ type: 'objekt' }), /got \{"type":"objekt"\}/],
  ])('%s is refused when the tool is defined: models send objects', (_, input, got) => {
    const error = expect.objectContaining({ code: 'INVALID_TOOL', message: expect.stringMatching(got) });
    expect(() => weather(input)).toThrow(error);
    expect(() => weather(input)).toThrow(
      /^Tool "weather": `input` must be the schema of an object, got .* make it a field of an object\.$/,
    );
  });

  it.each<[string, StandardSchema<any, any>]>([
    ['no fields', z.object({})],
    ['anything', z.any()],
    ['names and values', z.record(z.string(), z.number())],
    ['one of several objects', z.union([z.object({ a: z.string() }), z.object({ b: z.string() })])],
    [
      'objects told apart by a field',
      z.discriminatedUnion('kind', [z.object({ kind: z.literal('a') }), z.object({ kind: z.literal('b') })]),
    ],
    ['an object or nothing', z.object({}).nullable()],
    ['two objects at once', z.intersection(z.object({ a: z.string() }), z.object({ b: z.string() }))],
    ['no type', jsonSchema({ properties: { a: { type: 'string' } } })],
    ['nothing at all', jsonSchema({})],
    ['a reference', jsonSchema({ $ref: '#/$defs/a', $defs: { a: { type: 'object' } } })],
    [
      'a choice with a reference',
      jsonSchema({ anyOf: [{ type: 'null' }, { $ref: '#/$defs/a' }], $defs: { a: {} } }),
    ],
    ['a list of types', jsonSchema({ type: ['object', 'null'] })],
  ])('%s is taken', (_, input) => {
    expect(toolSpec(weather(input)).inputSchema).toBeTypeOf('object');
  });

  it.each([
    ['null', () => null],
    ['"string"', () => 'string'],
    ['false', () => false],
    ['[]', () => []],
    ['a promise', async () => ({ type: 'object' })],
    ['a promise', () => Promise.reject(new Error('no'))],
  ])('%s as a JSON Schema is refused when the tool is defined', (got, convert) => {
    expect(() => weather(z.object({}), { toJsonSchema: convert })).toThrow(
      expect.objectContaining({
        code: 'INVALID_TOOL',
        message: `Tool "weather": its schema cannot be expressed as JSON Schema: Expected a JSON Schema object, got ${got}.`,
      }),
    );
  });

  it('raw JSON Schema with a mistake inside fails the first call and names the tool', async () => {
    const wrong = jsonSchema({ type: 'object', properties: { city: { type: 'strng' } } });
    const model = scriptedModel([toolCalls({ name: 'weather', args: { city: 'Oslo' } })]);
    const agent = new Agent({ model, tools: [weather(wrong)] });
    await expect(agent.run('go')).rejects.toMatchObject({
      code: 'INVALID_TOOL',
      message: expect.stringMatching(
        /Tool "weather" has a faulty `input` schema\. This is not a JSON Schema: .*city.*Repair the schema given to jsonSchema\(\)\./,
      ),
      cause: { data: { tool: 'weather', schema: { type: 'object' } } },
    });
  });

  it('a raw JSON Schema without jsonSchema() is refused with advice', () => {
    expect(() => weather(schema as never)).toThrow(
      expect.objectContaining({
        code: 'INVALID_TOOL',
        message: expect.stringContaining('jsonSchema() of "allium/json-schema"'),
      }),
    );
  });
});

describe('the JSON Schema of a tool', () => {
  it('is made once, with the tool', async () => {
    const make = vi.fn(() => schema);
    const one = weather(z.object({ city: z.string() }), { toJsonSchema: make });
    expect(make).toHaveBeenCalledTimes(1);
    const model = scriptedModel([toolCalls({ name: 'weather', args: { city: 'x' } }), text('a'), text('b')]);
    for (const agent of [new Agent({ model, tools: [one] }), new Agent({ model, tools: [one] })])
      await agent.run('go');
    for (const request of model.requests)
      expect(request.tools[0]!.inputSchema).toBe(model.requests[0]!.tools[0]!.inputSchema);
    expect(make).toHaveBeenCalledTimes(1);
  });

  it('shows an object without arguments with `properties`, which some providers ask for', () => {
    const input = jsonSchema({ type: 'object' });
    expect(toolSpec(weather(input)).inputSchema).toEqual({ type: 'object', properties: {} });
  });

  it('describes the input of a schema that transforms', () => {
    const { inputSchema } = toolSpec(
      weather(z.object({ city: z.string().transform((city) => city.length) })),
    );
    expect(inputSchema).toMatchObject({ properties: { city: { type: 'string' } } });
  });
});

describe('arguments', () => {
  it('are validated by async schemas too', async () => {
    const slow: StandardSchema<{ city: string }> = {
      '~standard': {
        version: 1,
        vendor: 'slow',
        validate: async (value) =>
          (value as { city?: unknown }).city === 'Oslo'
            ? { value: value as { city: string } }
            : { issues: [{ message: 'only Oslo', path: [{ key: 'city' }] }] },
        jsonSchema: { input: () => schema },
      },
    };
    const model = scriptedModel([
      toolCalls(
        { name: 'weather', args: { city: 'Oslo' }, id: '1' },
        { name: 'weather', args: { city: 'Rome' }, id: '2' },
      ),
      text('end'),
    ]);
    const { result } = await watched(new Agent({ model, tools: [weather(slow)] }), 'go');
    expect(result.messages.filter(({ role }) => role === 'tool').map(textOf)).toEqual([
      'Sunny in Oslo.',
      'Invalid arguments for "weather":\ncity: only Oslo',
    ]);
  });

  it.each<[string, StandardSchema<any, any>]>([
    ['zod 4', z.object({ to: z.object({ n: z.number().transform((n) => n + 1) }) })],
    ['arktype', type({ to: { n: type('number').pipe((n) => n + 1) } })],
    [
      'valibot',
      v.object({
        to: v.object({
          n: v.pipe(
            v.number(),
            v.transform((n) => n + 1),
          ),
        }),
      }),
    ],
  ])('are parsed once from what the model, a hook, a layer or a human wrote: %s', async (_, input) => {
    const hooks: Record<string, Middleware> = {
      nobody: {},
      hook: { beforeToolCall: (ctx) => (ctx.revision ? undefined : { args: ctx.rawArgs }) },
      copy: {
        beforeToolCall: (ctx) => (ctx.revision ? undefined : { args: { ...(ctx.rawArgs as object) } }),
      },
      layer: { wrapTool: (ctx, next) => next({ args: ctx.rawArgs }) },
      human: {
        beforeToolCall: () => ({
          ask: { onRequest: () => ({ type: 'edit', args: { to: { n: 1 } } }) },
        }),
      },
    };
    for (const [name, middleware] of Object.entries(hooks)) {
      const plus = tool({
        name: 'plus',
        description: '',
        input,
        toJsonSchema: () => ({ type: 'object' }),
        execute: ({ to }) => to.n,
      });
      const model = scriptedModel([toolCalls({ name: 'plus', args: { to: { n: 1 } } }), text('end')]);
      const agent = new Agent({ model, tools: [plus], middleware: [{ name, ...middleware }] });
      const { result } = await watched(agent, 'go');
      expect(textOf(result.messages[2]!), name).toBe('2');
    }
  });

  it('of a schema that throws become an error result', async () => {
    for (const validate of [
      () => {
        throw new Error('broken schema');
      },
      () => Promise.reject(new Error('broken schema')),
    ]) {
      const broken: StandardSchema = {
        '~standard': { version: 1, vendor: 'broken', validate, jsonSchema: { input: () => schema } },
      };
      const { result } = await watched(
        new Agent({
          model: scriptedModel([toolCalls({ name: 'weather' }), text('end')]),
          tools: [weather(broken)],
        }),
        'go',
      );
      expect(textOf(result.messages[2]!)).toBe('"weather" failed: broken schema');
    }
  });

  it('get defaults from the schema, and stay as the model wrote them in the history', async () => {
    const one = weather(z.object({ city: z.string().default('Oslo') }));
    const { result } = await watched(
      new Agent({
        model: scriptedModel([toolCalls({ name: 'weather', args: {} }), text('end')]),
        tools: [one],
      }),
      'go',
    );
    expect(textOf(result.messages[2]!)).toBe('Sunny in Oslo.');
    expect(result.messages[1]!.content[0]).toMatchObject({ arguments: '{}' });
  });
});

describe('what a tool returns', () => {
  const run = async (value: unknown) => {
    const one = tool({ name: 'one', description: '', input: z.object({}), execute: () => value });
    const { result } = await watched(
      new Agent({ model: scriptedModel([toolCalls({ name: 'one' }), text('end')]), tools: [one] }),
      'go',
    );
    return result.messages[2]!;
  };
  const image = { type: 'image', data: 'aGk=', mimeType: 'image/png' } as const;
  const cases: [string, unknown, object][] = [
    ['text', 'plain', { content: [{ type: 'text', text: 'plain' }], isError: false }],
    ['empty text', '', { content: [{ type: 'text', text: '' }] }],
    ['a number', 42, { content: [{ text: '42' }] }],
    ['null', null, { content: [{ text: 'null' }] }],
    ['an object', { a: [1] }, { content: [{ text: '{"a":[1]}' }] }],
    ['a list', [1, 2], { content: [{ text: '[1,2]' }] }],
    ['an empty list', [], { content: [{ text: '[]' }] }],
    ['nothing', undefined, { content: [{ text: '(no output)' }], isError: false }],
    ['a promise', Promise.resolve('later'), { content: [{ text: 'later' }] }],
    ['content', [{ type: 'text', text: 'see' }, image], { content: [{ type: 'text', text: 'see' }, image] }],
    [
      'toolResult()',
      toolResult({ content: 'r', details: { x: 1 }, isError: true }),
      { content: [{ text: 'r' }], details: { x: 1 }, isError: true },
    ],
    ['toolResult() with content', toolResult({ content: [image] }), { content: [image] }],
    [
      'an object that only looks like a result',
      { content: 'x', isError: 'yes' },
      { content: [{ text: '{"content":"x","isError":"yes"}' }], isError: false },
    ],
  ];
  for (const [name, value, wanted] of cases) {
    it(`may be ${name}`, async () => {
      expect(await run(value)).toMatchObject(wanted);
    });
  }

  it.each([
    [
      'a generator',
      function* () {
        yield 'a';
      },
      'got a Generator, which turns into an empty object in JSON',
    ],
    [
      'an async generator',
      async function* () {
        yield 'a';
      },
      'got an AsyncGenerator, which turns into an empty object in JSON',
    ],
    [
      'a file that was read',
      () => Buffer.from('PNG'),
      "got a Buffer of 3 bytes. Return its text, or [{ type: 'image'",
    ],
    ['bytes', () => new Uint8Array(5), 'got an Uint8Array of 5 bytes'],
    ['a response', () => new Response('x'), 'got a Response, which turns into an empty object in JSON'],
  ])('is an error result when it is %s', async (_, execute, message) => {
    const odd = tool({ name: 'odd', description: '', input: z.any(), execute: execute as never });
    const agent = new Agent({ model: scriptedModel([toolCalls({ name: 'odd' }), 'end']), tools: [odd] });
    const [result] = (await agent.run('go')).messages.filter(({ role }) => role === 'tool');
    expect(result).toMatchObject({ isError: true });
    expect(textOf(result!)).toContain(message);
  });

  it('is an error result if it is not JSON', async () => {
    const cyclic: Record<string, unknown> = {};
    cyclic.self = cyclic;
    for (const value of [() => {}, Symbol('s'), 1n, cyclic])
      expect(await run(value)).toMatchObject({ isError: true });
    expect(textOf(await run(() => {}))).toContain(
      'A tool must return text, a JSON value or content, got a function',
    );
  });

  it('is frozen in the history', async () => {
    const message = await run(toolResult({ content: 'x', details: { deep: { er: 1 } } }));
    expect(Object.isFrozen((message as { details: { deep: object } }).details.deep)).toBe(true);
  });
});

describe('what a tool is given', () => {
  it('is its arguments and a context that knows the call', async () => {
    const seen: unknown[] = [];
    const one = tool({
      name: 'one',
      description: '',
      input: z.object({ n: z.number() }),
      execute: (args, ctx) => {
        seen.push(
          args,
          ctx.args,
          ctx.toolCall.id,
          ctx.tool?.name,
          ctx.is(one),
          ctx.is(other),
          ctx.turn,
          ctx.depth,
          ctx.signal.aborted,
          ctx.assistantMessage.role,
        );
        ctx.update('working');
        return 'ok';
      },
    });
    const other = tool({ name: 'other', description: '', input: z.object({}), execute: () => 'x' });
    await watched(
      new Agent({
        model: scriptedModel([toolCalls({ name: 'one', args: { n: 1 }, id: 'c' }), text('end')]),
        tools: [one, other],
      }),
      'go',
    );
    expect(seen).toEqual([{ n: 1 }, { n: 1 }, 'c', 'one', true, false, 1, 0, false, 'assistant']);
  });
});

describe('a tool definition', () => {
  const fine = { name: 'fine', description: '', input: z.object({}), execute: () => 'x' };
  const broken: [object, RegExp][] = [
    [{ name: 'with space' }, /Expected `name` to be 1 to 64 letters/],
    [{ name: '' }, /Expected `name` to be 1 to 64/],
    [{ name: 'x'.repeat(65) }, /Expected `name` to be 1 to 64/],
    [{ description: undefined }, /Expected `description` to be text, got undefined/],
    [{ execute: 'x' }, /Expected `execute` to be a function, got "x"/],
    [{ input: undefined }, /Expected `input` to be a Standard Schema/],
    [{ timeoutMs: 0 }, /Expected `timeoutMs` to be a number ≥ 1, got 0/],
    [{ timeoutMs: Number.NaN }, /`timeoutMs`/],
    [{ concurrency: 1.5 }, /Expected `concurrency` to be an integer ≥ 1, got 1\.5/],
    [{ onInDoubt: 'maybe' }, /Expected `onInDoubt` to be 'retry' or 'fail', got "maybe"/],
    [{ idempotent: 'yes' }, /Expected `idempotent` to be true or false, got "yes"/],
    [{ sequential: 1 }, /Expected `sequential` to be true or false, got 1/],
    [{ tags: 'x' }, /Expected `tags` to be a list of texts/],
    [{ toJsonSchema: {} }, /Expected `toJsonSchema` to be a function/],
  ];
  for (const [change, message] of broken) {
    it(`with ${JSON.stringify(change)} is refused`, () => {
      expect(() => tool({ ...fine, ...change } as never)).toThrow(
        expect.objectContaining({ code: 'INVALID_TOOL', message: expect.stringMatching(message) }),
      );
    });
  }
  it('with an unknown option is refused, and the error says what was meant', () => {
    expect(() => tool({ ...fine, parameters: {} } as never)).toThrow(
      expect.objectContaining({
        code: 'INVALID_OPTION',
        message: expect.stringContaining('Unknown option `parameters`'),
      }),
    );
    expect(() => tool({ ...fine, timeoutms: 1 } as never)).toThrow(/Did you mean `timeoutMs`\?/);
  });
  it('is frozen, with its defaults', () => {
    const made = tool(fine);
    expect(Object.isFrozen(made)).toBe(true);
    expect(made).toMatchObject({ idempotent: false, sequential: false });
  });
  it('of a result checks its fields', () => {
    expect(() => toolResult({ content: 5 } as never)).toThrow(
      expect.objectContaining({ code: 'INVALID_OPTION' }),
    );
    expect(() => toolResult({ content: 'x', isError: 'no' } as never)).toThrow(
      expect.objectContaining({ code: 'INVALID_OPTION' }),
    );
    expect(() => toolResult({ content: 'x', error: true } as never)).toThrow(/Unknown option `error`/);
    expect(() => toolResult(undefined as never)).toThrow(expect.objectContaining({ code: 'INVALID_OPTION' }));
  });
});

describe('a field that JSON Schema cannot express', () => {
  const made = (input: StandardSchema<any, any>, toJsonSchema?: (schema: never) => object) =>
    tool({ name: 'book', description: '', input, execute: () => '', ...(toJsonSchema && { toJsonSchema }) });
  const zodFields: [string, z.ZodType, string][] = [
    ['when', z.object({ when: z.date() }), 'Date'],
    ['trip.start', z.object({ trip: z.object({ start: z.date().optional() }) }), 'Date'],
    ['trips[].start', z.object({ trips: z.array(z.object({ start: z.date() })) }), 'Date'],
    ['sizes.*', z.object({ sizes: z.record(z.string(), z.bigint()) }), 'BigInt'],
    ['pair[1]', z.object({ pair: z.tuple([z.string(), z.map(z.string(), z.string())]) }), 'Map'],
    ['either', z.object({ either: z.union([z.string(), z.set(z.string())]) }), 'Set'],
    ['properties', z.object({ properties: z.symbol() }), 'Symbols'],
    ['made', z.object({ made: z.custom<Date>() }), 'Custom types'],
  ];
  const arkFields: [string, StandardSchema<any, any>, string][] = [
    ['when', type({ when: 'Date' }), 'Date'],
    ['trips[].start', type({ trips: type({ 'start?': 'Date' }).array() }), 'Date'],
    ['sizes.*', type({ sizes: { '[string]': 'bigint' } }), 'bigint'],
    ['either', type({ either: type('string').or(type.instanceOf(Map)) }), 'Map'],
    ['properties', type({ properties: 'symbol' }), 'symbol'],
  ];
  it.each([...zodFields, ...arkFields])('is named: %s', (field, input, what) => {
    expect(() => made(input)).toThrow(
      expect.objectContaining({
        code: 'INVALID_TOOL',
        message: expect.stringContaining(
          `Tool "book": its schema cannot be expressed as JSON Schema: field \`${field}\`: ${what} cannot be represented in JSON Schema. A model sends JSON.`,
        ),
      }),
    );
  });

  it('is named even if a converter says nothing about it', () => {
    const trip = v.object({ start: v.optional(v.date()) });
    const input = v.object({ name: v.string(), trips: v.array(trip) });
    expect(() => made(input, toJsonSchema)).toThrow(/field `trips\[\]\.start`: The "date" schema cannot/);
  });

  it('is named by its field in a schema that refers to itself, too', () => {
    type Node = { children: Node[]; when: Date };
    const node: z.ZodType<Node> = z.object({
      get children() {
        return z.array(node);
      },
      when: z.date(),
    });
    expect(() => made(node, z.toJSONSchema as never)).toThrow(/field `when`: Date cannot be represented/);
  });

  it('is shown as what it accepts if arktype converts or narrows it', () => {
    const input = type({
      when: 'string.date.parse',
      'name?': type('string').narrow(() => true),
      'any?': 'unknown',
    });
    expect(toolSpec(made(input)).inputSchema).toMatchObject({
      properties: { when: { type: 'string' }, name: { type: 'string' }, any: {} },
      required: ['when'],
    });
  });

  it('is shown as what it accepts if it is coerced', async () => {
    const input = z.object({
      when: z.coerce.date().describe('The day.'),
      cents: z.coerce.bigint().optional(),
    });
    const given: unknown[] = [];
    const book = tool({ name: 'book', description: '', input, execute: (args) => void given.push(args) });
    expect(toolSpec(book).inputSchema).toMatchObject({
      properties: {
        when: { type: 'string', format: 'date-time', description: 'The day.' },
        cents: { type: 'string' },
      },
      required: ['when'],
    });
    const args = { when: '2026-01-02T00:00:00Z', cents: '12345678901234567890' };
    await new Agent({
      model: scriptedModel([toolCalls({ name: 'book', args }), 'ok']),
      tools: [book],
    }).run('go');
    expect(given).toEqual([{ when: new Date(args.when), cents: 12345678901234567890n }]);
  });

  it('may be shown as `toJsonSchema` says', () => {
    const shown = { type: 'object', properties: { when: { type: 'string' } } };
    const book = made(z.object({ when: z.date() }), () => shown);
    expect(toolSpec(book).inputSchema).toEqual(shown);
  });
});
