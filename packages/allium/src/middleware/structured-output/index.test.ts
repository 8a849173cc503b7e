import {
  Agent,
  defineMiddleware,
  isSyntheticMessage,
  memoryStore,
  RunError,
  textOf,
  tool,
  userMessage,
} from 'allium';
import { jsonSchema } from 'allium/json-schema';
import { type StructuredOutputOptions, structuredOutput } from 'allium/middleware/structured-output';
import {
  chunks,
  collect,
  failWith,
  type Script,
  scriptedModel,
  testMiddleware,
  text,
  toolCalls,
} from 'allium/testing';
import * as v from 'valibot';
import { describe, expect, expectTypeOf, it } from 'vitest';
import { z } from 'zod';
import { importWithout } from '../../../../../test/import-without.js';

const point = z.object({ x: z.number(), y: z.number() });
const look = tool({ name: 'look', description: 'Looks.', input: z.object({}), execute: () => 'seen' });

function setup(script: readonly Script[], options: Partial<StructuredOutputOptions> = {}) {
  const model = scriptedModel(script);
  const middleware = [structuredOutput({ schema: point, ...options })];
  return { model, agent: new Agent({ model, tools: [look], middleware }) };
}

/** Accepts any answer, the empty one included. */
const anything = () => structuredOutput({ schema: z.unknown(), mode: 'validate', maxRepairs: 0 });

testMiddleware(() => structuredOutput({ schema: point, maxRepairs: 1 }), {
  name: 'structured-output',
  // The kit speaks no JSON: what this law is about is shown below, with answers that fit.
  skip: { neutrality: 'plain text never fits a schema, so there is always something to do' },
  scenarios: [
    { name: 'an answer that fits', answers: [chunks('{"x":', 'tick', '1,"y":2}')] },
    { name: 'an answer that is repaired', answers: ['{"x":1}', '{"x":1,"y":2}'] },
  ],
  describe,
  it,
});

describe('structured-output', () => {
  it('gives the parsed answer as the output of the run', async () => {
    const middleware = structuredOutput({ schema: point });
    const agent = new Agent({ model: scriptedModel(['{"x":1,"y":2}']), middleware: [middleware] });
    const result = await agent.run('go');
    expect(result).toMatchObject({ status: 'done', output: { x: 1, y: 2 }, text: '{"x":1,"y":2}', turns: 1 });
    expect(middleware.outputOf(result)).toEqual({ x: 1, y: 2 });
    expectTypeOf(middleware.outputOf(result)).toEqualTypeOf<{ x: number; y: number } | undefined>();
  });

  it('gives what the schema made of the answer', async () => {
    const schema = z.object({ at: z.string().transform((iso) => new Date(iso)) });
    const { agent } = setup(['{"at":"2026-01-01T00:00:00Z"}'], { schema });
    expect((await agent.run('go')).output).toEqual({ at: new Date('2026-01-01T00:00:00Z') });
  });

  it('gives later hooks the parsed value', async () => {
    const seen: unknown[] = [];
    const spy = defineMiddleware({
      name: 'spy',
      afterModelResponse: (_, ctx) => {
        seen.push(ctx.metadata.parsed);
      },
    });
    const model = scriptedModel(['[1]', '{"x":1,"y":2}']);
    await new Agent({ model, middleware: [structuredOutput({ schema: point }), spy] }).run('go');
    expect(seen).toEqual([undefined, { x: 1, y: 2 }]);
  });

  it('sends the exact errors back and takes the corrected answer', async () => {
    const { agent, model } = setup(['{"x":"1"}', 'not JSON', '{"x":1,"y":2}']);
    const result = await agent.run('go');
    expect(result).toMatchObject({ status: 'done', output: { x: 1, y: 2 }, turns: 3 });
    const [first, second] = result.messages.filter(isSyntheticMessage);
    expect(textOf(first!)).toContain('x: Invalid input: expected number, received string');
    expect(textOf(first!)).toContain('y: Invalid input: expected number, received undefined');
    expect(textOf(second!)).toContain('not valid JSON');
    expect(model.requests[1]!.messages.at(-1)!.metadata).toMatchObject({ source: 'structured-output' });
  });

  it('fails with the last text when the repairs are used up', async () => {
    const { agent, model } = setup(['a', 'b', '{"x":0}', 'never']);
    const error = await agent.run('go').catch((thrown) => thrown);
    expect(error).toBeInstanceOf(RunError);
    expect(error).toMatchObject({
      code: 'OUTPUT_INVALID',
      cause: { data: { text: '{"x":0}', repairs: 2, problem: expect.stringContaining('y: ') } },
    });
    expect(error.message).toContain('The last answer was: {"x":0}');
    expect(error.result).toMatchObject({ output: undefined, usage: { totalTokens: 45 } });
    expect(model.remaining).toBe(1);
  });

  it('repairs nothing with maxRepairs: 0', async () => {
    const { agent } = setup(['nope'], { maxRepairs: 0 });
    await expect(agent.run('go')).rejects.toMatchObject({ code: 'OUTPUT_INVALID' });
  });

  it('looks at final answers only', async () => {
    const { agent } = setup([toolCalls({ name: 'look', text: 'Let me see.' }), text('{"x":1,"y":2}')]);
    expect(await agent.run('go')).toMatchObject({ output: { x: 1, y: 2 }, turns: 2 });
  });

  it('may use tools again while it repairs', async () => {
    const { agent } = setup(['nope', toolCalls({ name: 'look' }), text('{"x":1,"y":2}')]);
    expect(await agent.run('go')).toMatchObject({ output: { x: 1, y: 2 }, turns: 3 });
  });

  it.each([
    ['a fence', '```json\n{"x":1,"y":2}\n```'],
    ['a fence without a language', ' ```\n{"x":1,"y":2}```\n'],
    ['white space', '\n  {"x":1,"y":2}\n'],
    ['blocks', chunks('{"x":1,', { type: 'thinking', text: 'hm' }, '"y":2}')],
  ])('finds JSON in %s', async (_, answer) => {
    expect((await setup([answer]).agent.run('go')).output).toEqual({ x: 1, y: 2 });
  });

  it.each([
    ['nothing', '', 'The answer is empty.'],
    ['text beside it', 'Here: {"x":1,"y":2}', 'not valid JSON'],
    [
      'a cut',
      {
        parts: [
          { type: 'text' as const, text: '{"x":' },
          { type: 'finish' as const, reason: 'length' as const },
        ],
      },
      'cut off at the output limit',
    ],
  ])('explains what is wrong with %s', async (_, answer, problem) => {
    const { agent } = setup([answer], { maxRepairs: 0 });
    await expect(agent.run('go')).rejects.toThrow(problem);
  });

  it('starts counting again after an answer that fits', async () => {
    const good = '{"x":1,"y":2}';
    let cycles = 0;
    const more = defineMiddleware({
      name: 'more',
      onRunEnd: () => (cycles++ < 2 ? [{ id: '', role: 'user', content: [] }] : undefined),
    });
    const model = scriptedModel(['a', good, 'b', good, 'c', good]);
    const middleware = [structuredOutput({ schema: point, maxRepairs: 1 }), more];
    expect((await new Agent({ model, middleware }).run('go')).turns).toBe(6);
  });

  describe('how the model learns of the schema', () => {
    it('sends it as a setting by default, beside the others', async () => {
      const { model } = setup([]);
      const agent = new Agent({
        model: scriptedModel(['{"x":1,"y":2}']),
        settings: { temperature: 0 },
        middleware: [structuredOutput({ schema: point })],
      });
      await agent.run('go');
      const { settings } = (agent.model as typeof model).requests[0]!;
      expect(settings).toMatchObject({ temperature: 0, responseSchema: { required: ['x', 'y'] } });
    });

    it('only validates if the schema exposes no JSON Schema', async () => {
      const schema = v.object({ x: v.number() });
      const { agent, model } = setup(['{"x":1}'], { schema });
      expect((await agent.run('go')).output).toEqual({ x: 1 });
      expect(model.requests[0]!.settings).toEqual({});
    });

    it('can be told how to make one', async () => {
      const schema = v.object({ x: v.number() });
      const { agent, model } = setup(['{"x":1}'], { schema, toJsonSchema: () => ({ type: 'object' }) });
      await agent.run('go');
      expect(model.requests[0]!.settings).toEqual({ responseSchema: { type: 'object' } });
    });

    const raw = { type: 'object', properties: { x: { type: 'number' } }, required: ['x'] };
    it.each([
      ['as it is', raw],
      ['through jsonSchema()', jsonSchema<{ x: number }>(raw)],
    ])('takes a raw JSON Schema %s', async (_, schema) => {
      for (const mode of ['auto', 'prompt', 'validate'] as const) {
        const { agent, model } = setup(['{}', '{"x":1}'], { schema, mode });
        expect((await agent.run('go')).output).toEqual({ x: 1 });
        expect(textOf(model.requests[1]!.messages.at(-1)!)).toContain("must have required property 'x'");
        const sent = mode === 'auto' ? { responseSchema: raw } : {};
        expect(model.requests[0]!.settings).toEqual(sent);
      }
      const typed = structuredOutput<{ x: number }>({ schema });
      expectTypeOf(typed.outputOf).returns.toEqualTypeOf<{ x: number } | undefined>();
    });

    it('says that a raw JSON Schema is wrong before a model is paid', async () => {
      const { agent, model } = setup(['{}'], { schema: { type: 'objekt' } });
      await expect(agent.run('go')).rejects.toMatchObject({
        code: 'INVALID_TOOL',
        message: expect.stringContaining('This is not a JSON Schema'),
      });
      expect(model.requests).toHaveLength(0);
    });

    it('says before a model is paid what to install for a raw JSON Schema', async () => {
      const { structuredOutput: fresh } = await importWithout<typeof import('./index.js')>(
        'ajv',
        new URL('index.ts', import.meta.url),
      );
      const model = scriptedModel(['{"x":1}']);
      const agent = new Agent({ model, middleware: [fresh({ schema: raw })] });
      await expect(agent.run('go')).rejects.toMatchObject({
        cause: { code: 'MISSING_DEPENDENCY' },
        message: expect.stringContaining('npm install ajv'),
      });
      expect(model.requests).toHaveLength(0);
    });

    it('puts it into the system prompt on demand', async () => {
      const { agent, model } = setup(['{"x":1,"y":2}'], { mode: 'prompt' });
      await agent.run('go');
      expect(model.requests[0]!.systemPrompt).toContain('fits this JSON Schema');
      expect(model.requests[0]!.settings).toEqual({});
    });

    it('says nothing on demand', async () => {
      const { agent, model } = setup(['{"x":1,"y":2}'], { mode: 'validate' });
      await agent.run('go');
      expect(model.requests[0]).toMatchObject({ systemPrompt: '', settings: {} });
    });

    it('does not impose it on calls that other middleware make for themselves', async () => {
      const judge = scriptedModel(['fine']);
      const asks = defineMiddleware({
        name: 'asks',
        async beforeModel(ctx) {
          await ctx.generate(judge, { messages: 'ok?' });
        },
      });
      const middleware = [asks, structuredOutput({ schema: point })];
      await new Agent({ model: scriptedModel(['{"x":1,"y":2}']), middleware }).run('go');
      expect(judge.requests[0]!.settings).toEqual({});
    });
  });

  it('changes nothing about a run whose answer fits and is not sent', async () => {
    const plain = await new Agent({ model: scriptedModel(['1']) }).run('go');
    const held = await new Agent({ model: scriptedModel(['1']), middleware: [anything()] }).run('go');
    expect(held.messages.map(({ content }) => content)).toEqual(plain.messages.map(({ content }) => content));
  });

  it('does the same when the run is streamed, in any pieces', async () => {
    const answer = chunks('{"x"', 'tick', ':"1"}');
    const { result } = await collect(setup([answer, '{"x":1,"y":2}']).agent.stream('go'));
    const plain = await setup(['{"x":"1"}', '{"x":1,"y":2}']).agent.run('go');
    expect(result?.output).toEqual(plain.output);
    expect(result?.messages.map(textOf)).toEqual(plain.messages.map(textOf));
  });

  it('keeps its count over a resume', async () => {
    const store = memoryStore();
    const ask = tool({
      name: 'ask',
      description: 'Asks.',
      input: z.object({}),
      execute: async (_, ctx) => (await ctx.suspend({})).type,
    });
    const model = scriptedModel(['nope', toolCalls({ name: 'ask' }), text('nope again')]);
    const make = () =>
      new Agent({
        model,
        tools: [ask],
        store,
        middleware: [structuredOutput({ schema: point, maxRepairs: 1 })],
      });
    const { pending } = await make().session('s').run('go');
    const answers = { [pending[0]!.id]: { type: 'approve' as const } };
    await expect(make().session('s').resume({ answers })).rejects.toMatchObject({ code: 'OUTPUT_INVALID' });
  });

  it('gives the output also when a crash came between the answer and the end of the run', async () => {
    const store = memoryStore();
    const append = store.append.bind(store);
    store.append = (id, seq, entries) => {
      if (entries.some(({ type }) => type === 'run_end')) throw new Error('crashed');
      return append(id, seq, entries);
    };
    const session = (...script: Script[]) =>
      new Agent({
        model: scriptedModel(script),
        store,
        middleware: [structuredOutput({ schema: point })],
      }).session('s');
    await expect(session('{"x":1,"y":2}').run('go')).rejects.toThrow('crashed');
    store.append = append;
    const resumed = await session().resume();
    expect(resumed).toMatchObject({ status: 'done', output: { x: 1, y: 2 }, turns: 1 });
  });

  it('gives no output when another turn follows the answer and brings none', async () => {
    const on = defineMiddleware({
      name: 'on',
      onRunEnd: ({ turn }) => (turn === 1 ? [userMessage('And now?')] : undefined),
    });
    for (const then of [toolCalls({ name: 'look' }), failWith(new Error('down'))]) {
      const model = scriptedModel(['{"x":1,"y":2}', then]);
      const middleware = [structuredOutput({ schema: point }), on];
      const agent = new Agent({ model, tools: [look], middleware, limits: { turns: 2 } });
      const result = await agent.run('go').catch((error) => error.result);
      expect(result.status).not.toBe('done');
      expect(result.output).toBeUndefined();
    }
  });

  it('keeps 100 concurrent runs of one instance apart', async () => {
    const model = scriptedModel(
      [
        ({ messages }) => {
          const n = textOf(messages[0]!);
          return messages.length === 1 ? `{"x":${n}}` : `{"x":${n},"y":0}`;
        },
      ],
      { repeat: true },
    );
    const agent = new Agent({ model, middleware: [structuredOutput({ schema: point, maxRepairs: 1 })] });
    const results = await Promise.all(Array.from({ length: 100 }, (_, n) => agent.run(String(n))));
    expect(results.map(({ output }) => output)).toEqual(Array.from({ length: 100 }, (_, x) => ({ x, y: 0 })));
  });

  it('lets two instances stand together: the last one gives the output', async () => {
    const middleware = [
      structuredOutput({ schema: z.unknown() }),
      structuredOutput({ schema: point.loose() }),
    ];
    const result = await new Agent({ model: scriptedModel(['{"x":1,"y":2,"z":3}']), middleware }).run('go');
    expect(result.output).toEqual({ x: 1, y: 2, z: 3 });
  });

  it.each([
    [{}, 'Expected `schema` to be a Standard Schema'],
    [
      { schema: true },
      'Expected `schema` to be a Standard Schema (zod, valibot, arktype, …) or a JSON Schema',
    ],
    [{ schema: [] }, 'or a JSON Schema object, got []'],
    [{ schema: new Date(0) }, 'or a JSON Schema object'],
    [{ schema: point, maxRepairs: 21 }, 'Expected `maxRepairs` to be an integer from 0 to 20, got 21.'],
    [{ schema: point, mode: 'text' }, "Expected `mode` to be 'auto', 'json', 'tool', 'prompt' or 'validate'"],
    [{ schema: point, toolName: 'a b' }, 'Expected `toolName` to be 1 to 64 letters'],
    [{ schema: point, repairs: 1 }, 'Unknown option `repairs` of structuredOutput().'],
    [{ schema: v.object({}), mode: 'prompt' }, 'does not expose its JSON Schema'],
  ])('refuses options %#', (options, message) => {
    expect(() => structuredOutput(options as never)).toThrow(message);
  });
});
