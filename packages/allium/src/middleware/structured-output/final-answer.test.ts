import { Agent, defineMiddleware, type Model, memoryStore, textOf, tool } from 'allium';
import { cache } from 'allium/middleware/cache';
import { fallback } from 'allium/middleware/fallback';
import { structuredOutput } from 'allium/middleware/structured-output';
import {
  chunks,
  collect,
  failWith,
  hang,
  type Script,
  scriptedModel,
  testMiddleware,
  text,
  toolCalls,
} from 'allium/testing';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';

const point = z.object({ x: z.number(), y: z.number() });
const look = tool({ name: 'look', description: 'Looks.', input: z.object({}), execute: () => 'seen' });
const answer = (args: object, id = 'f') => toolCalls({ name: 'final_answer', args, id });

function setup(script: readonly Script[], options: object = {}, more: object = {}) {
  const model = scriptedModel(script);
  const output = structuredOutput({ schema: point, mode: 'tool', ...options });
  return { model, output, agent: new Agent({ model, tools: [look], middleware: [output], ...more }) };
}

testMiddleware(() => structuredOutput({ schema: point, mode: 'tool', maxRepairs: 1 }), {
  name: 'structured-output through a tool',
  skip: { neutrality: 'plain text never fits a schema, so there is always something to do' },
  scenarios: [
    { name: 'an answer that fits', answers: [answer({ x: 1, y: 2 })] },
    { name: 'an answer that is repaired', answers: ['Sure.', answer({ x: 1, y: 2 })] },
  ],
  describe,
  it,
});

describe('structuredOutput({ mode: "tool" })', () => {
  it('takes the arguments of the call as the answer, and runs nothing', async () => {
    const { agent, model } = setup([answer({ x: 1, y: 2 })]);
    const { result, events } = await collect(agent.stream('go'));
    expect(result).toMatchObject({ status: 'done', output: { x: 1, y: 2 }, text: '{"x":1,"y":2}', turns: 1 });
    expect(events.some(({ type }) => type === 'tool_execution_start')).toBe(false);
    expect(model.requests[0]).toMatchObject({ settings: { toolChoice: 'required' } });
    expect(model.requests[0]!.tools.map(({ name }) => name)).toEqual(['look', 'final_answer']);
    expect(model.requests[0]!.settings).not.toHaveProperty('responseSchema');
  });

  it('lets the other tools work first, and drops prose beside the answer', async () => {
    const { agent } = setup([
      toolCalls({ name: 'look', args: {}, id: 'l' }),
      chunks('Here you are: ', {
        type: 'tool-call',
        id: 'f',
        name: 'final_answer',
        arguments: '{"x":1,"y":2}',
      }),
    ]);
    expect(await agent.run('go')).toMatchObject({ output: { x: 1, y: 2 }, text: '{"x":1,"y":2}', turns: 2 });
  });

  it('tells the model what is wrong, and takes JSON in prose as well', async () => {
    const { agent, model } = setup([answer({ x: 'a' }), text('{"x":1,"y":2}')]);
    expect((await agent.run('go')).output).toEqual({ x: 1, y: 2 });
    expect(textOf(model.requests[1]!.messages.at(-1)!)).toContain('by calling "final_answer"');
  });

  it('wraps values that are not objects, and shows them without the wrapper', async () => {
    const { agent, model } = setup([answer({ value: [1, 2] })], { schema: z.array(z.number()) });
    expect(await agent.run('go')).toMatchObject({ output: [1, 2], text: '[1,2]' });
    expect(model.requests[0]!.tools[1]!.inputSchema).toMatchObject({
      properties: { value: { type: 'array' } },
      required: ['value'],
    });
  });

  it('unwraps however the call is cut into pieces', async () => {
    const whole = ' { "value" : [ {"a":"}"}, {} ] } ';
    for (let at = 0; at <= whole.length; at++) {
      const pieces = [whole.slice(0, at), ...whole.slice(at)];
      const model: Model = {
        provider: 'p',
        id: 'm',
        *stream() {
          yield { type: 'tool-call', id: 'f', name: 'final_answer', arguments: pieces[0]! };
          for (const piece of pieces.slice(1)) yield { type: 'tool-call-delta', id: 'f', arguments: piece };
          yield { type: 'finish', reason: 'tool-calls' };
        },
      };
      const output = structuredOutput({
        schema: z.array(z.object({ a: z.string().optional() })),
        mode: 'tool',
      });
      const { output: value, text } = await new Agent({ model, middleware: [output] }).run('go');
      expect(value).toEqual([{ a: '}' }, {}]);
      expect(text).toBe('[ {"a":"}"}, {} ]');
    }
  });

  it('still asks for the call where an outer layer wants no more calls', async () => {
    const last = defineMiddleware({
      name: 'last',
      beforeModel(ctx) {
        ctx.settings = { ...ctx.settings, toolChoice: 'none' };
      },
    });
    const model = scriptedModel([answer({ x: 1, y: 2 })]);
    const output = structuredOutput({ schema: point, mode: 'tool' });
    await new Agent({ model, tools: [look], middleware: [last, output] }).run('go');
    expect(model.requests[0]!.settings.toolChoice).toEqual({ tool: 'final_answer' });
  });

  it('is what `auto` means for models without a JSON mode, behind a fallback too', async () => {
    const plain = { ...scriptedModel([answer({ x: 1, y: 2 })]), jsonMode: false } as Model;
    const first = scriptedModel([failWith(new Error('down'))]);
    const output = structuredOutput({ schema: point });
    const agent = new Agent({ model: first, middleware: [fallback({ models: [plain] }), output] });
    expect((await agent.run('go')).output).toEqual({ x: 1, y: 2 });
    const back = scriptedModel(['{"x":1,"y":2}']);
    const other = { ...scriptedModel([failWith(new Error('down'))]), jsonMode: false } as Model;
    const again = new Agent({ model: other, middleware: [fallback({ models: [back] }), output] });
    expect((await again.run('go')).output).toEqual({ x: 1, y: 2 });
    expect(back.requests[0]!.tools).toEqual([]);
    expect(back.requests[0]!.settings).not.toHaveProperty('toolChoice');
    expect(back.requests[0]!.settings).toHaveProperty('responseSchema');
  });

  it('is what `auto` means for models that have a JSON mode or tools, but not both, if there are tools', async () => {
    const output = structuredOutput({ schema: point });
    for (const tools of [[look], []]) {
      const script = scriptedModel([
        ({ settings }) => (settings.responseSchema ? '{"x":1,"y":2}' : answer({ x: 1, y: 2 })),
      ]);
      const model = { ...script, jsonMode: 'without-tools' } as Model;
      const result = await new Agent({ model, tools, middleware: [output] }).run('go');
      expect(result.output).toEqual({ x: 1, y: 2 });
      const { tools: offered, settings } = script.requests[0]!;
      expect(offered.map(({ name }) => name)).toEqual(tools.length > 0 ? ['look', 'final_answer'] : []);
      expect('responseSchema' in settings).toBe(tools.length === 0);
    }
  });

  it('comes out the same from a cache on either side, in a session, and after a resume', async () => {
    const output = structuredOutput({ schema: point, mode: 'tool' });
    for (const middleware of [
      [cache(), output],
      [output, cache()],
    ]) {
      const agent = new Agent({ model: scriptedModel([answer({ x: 1, y: 2 })]), middleware });
      expect((await agent.run('go')).output).toEqual({ x: 1, y: 2 });
      expect((await agent.run('go')).output).toEqual({ x: 1, y: 2 });
    }
    const ask = tool({
      name: 'ask',
      description: '',
      input: z.object({}),
      execute: (_, ctx) => ctx.suspend({ title: 'Sure?' }).then(() => 'yes'),
    });
    const model = scriptedModel([toolCalls({ name: 'ask', args: {}, id: 'a' }), answer({ x: 3, y: 4 })]);
    const make = () => new Agent({ model, tools: [ask], middleware: [output], store });
    const store = memoryStore();
    const { pending } = await make().session('s').run('go');
    const done = await make()
      .session('s')
      .resume({ answers: { [pending[0]!.id]: { type: 'approve' } } });
    expect(output.outputOf(done)).toEqual({ x: 3, y: 4 });
  });

  it('works in a sub-agent, whose answer its caller reads as JSON', async () => {
    const { agent: clerk } = setup([answer({ x: 1, y: 2 })]);
    const boss = new Agent({
      model: scriptedModel([toolCalls({ name: 'clerk', args: { prompt: 'go' }, id: 'c' }), text('done')]),
      tools: [clerk.asTool({ name: 'clerk', description: '' })],
    });
    expect(textOf((await boss.run('go')).messages[2]!)).toBe('{"x":1,"y":2}');
  });
});

describe('an answer that is not an object, from a model with a JSON mode', () => {
  const list = (more: object = {}) => structuredOutput({ schema: z.array(z.number()), ...more });
  const run = (model: Model, middleware: readonly object[]) =>
    new Agent({ model, tools: [look], middleware: middleware as never }).run('go');

  // OpenAI and others refuse a response schema that isn't of an object.
  it('is asked for in an object, and shown without it', async () => {
    const model = scriptedModel(['{"value":[1,2]}']);
    expect(await run(model, [list()])).toMatchObject({ output: [1, 2], text: '[1,2]' });
    expect(model.requests[0]!.settings.responseSchema).toEqual({
      type: 'object',
      properties: { value: expect.objectContaining({ type: 'array' }) },
      required: ['value'],
      additionalProperties: false,
    });
  });

  it('is unwrapped however it is cut into pieces and blocks', async () => {
    const whole = ' { "value" : [ {"a":"}"}, {} ] } ';
    const schema = z.array(z.object({ a: z.string().optional() }));
    for (let at = 0; at <= whole.length; at++) {
      const pieces = [whole.slice(0, at), ...whole.slice(at)];
      for (const ends of [true, false]) {
        const model: Model = {
          provider: 'p',
          id: 'm',
          *stream() {
            for (const text of pieces) yield { type: 'text', text, block: 0 };
            if (ends) yield { type: 'text', text: '', block: 0, end: true };
            yield { type: 'finish', reason: 'stop' };
          },
        };
        const { output, text } = await run(model, [structuredOutput({ schema, mode: 'json' })]);
        expect(output).toEqual([{ a: '}' }, {}]);
        expect(text).toBe('[ {"a":"}"}, {} ]');
      }
    }
  });

  it('may come without the object, too, or in a fence', async () => {
    for (const given of ['[1,2]', '```json\n[1,2]\n```', '```json\n{"value":[1,2]}\n```'])
      expect((await run(scriptedModel([given]), [list({ maxRepairs: 0 })])).output).toEqual([1, 2]);
  });

  it('may itself look like the object', async () => {
    const schema = z.union([z.object({ value: z.array(z.number()) }), z.object({ other: z.number() })]);
    for (const given of ['{"value":{"value":[1]}}', '```json\n{"value":[1]}\n```'])
      expect(
        (await run(scriptedModel([given]), [structuredOutput({ schema, maxRepairs: 0 })])).output,
      ).toEqual({ value: [1] });
  });

  it('leaves prose before calls as it is, even if it looks like a wrapper for a while', async () => {
    for (const prose of ['Let me see.', '{', ' {"v', '{"value": ', '{"values":1}', '  ']) {
      const model = scriptedModel([
        chunks(prose, { type: 'tool-call', id: 'l', name: 'look', arguments: '{}' }),
        '{"value":[3]}',
      ]);
      const { messages, output } = await run(model, [list()]);
      expect(textOf(messages[1]!)).toBe(prose);
      expect(output).toEqual([3]);
    }
  });

  it('is told what is wrong inside of it', async () => {
    const model = scriptedModel(['{"value":["x"]}', '{"value":[1]}']);
    expect((await run(model, [list()])).output).toEqual([1]);
    expect(textOf(model.requests[1]!.messages.at(-1)!)).toContain('0: ');
  });

  it('is the same from a cache on either side, and in partials', async () => {
    for (const middleware of [
      [cache(), list()],
      [list(), cache()],
    ]) {
      const agent = new Agent({ model: scriptedModel([chunks('{"value":', '[1,2', ',3]}')]), middleware });
      for (let i = 0; i < 2; i++) {
        const stream = agent.stream('go');
        const seen = [];
        for await (const one of stream.partials) seen.push(one);
        expect(seen.at(-1)).toEqual([1, 2, 3]);
        expect(seen.every(Array.isArray)).toBe(true);
        expect(await stream.result).toMatchObject({ output: [1, 2, 3], text: '[1,2,3]' });
      }
    }
  });

  it('keeps references in place', async () => {
    const own = { type: 'array', items: { anyOf: [{ type: 'number' }, { $ref: '#' }] } };
    const named = { anyOf: [{ $ref: '#/$defs/n' }, { type: 'null' }], $defs: { n: { type: 'number' } } };
    const anchored = {
      $id: 'https://example.com/a',
      anyOf: [{ $ref: '#n' }, { $anchor: 'n', type: 'null' }],
    };
    const model = scriptedModel(['{"value":[1,[2]]}', '{"value":null}', '{"value":null}']);
    expect((await run(model, [structuredOutput({ schema: own })])).output).toEqual([1, [2]]);
    expect((await run(model, [structuredOutput({ schema: named })])).output).toBe(null);
    expect((await run(model, [structuredOutput({ schema: anchored })])).output).toBe(null);
    const [first, second, third] = model.requests.map(({ settings }) => settings.responseSchema as never);
    expect(first).toMatchObject({
      properties: { value: { items: { anyOf: [{}, { $ref: '#/properties/value' }] } } },
    });
    expect(second).toMatchObject({
      properties: { value: { anyOf: [{ $ref: '#/$defs/n' }, {}] } },
      $defs: { n: { type: 'number' } },
    });
    const { $id, ...rest } = anchored;
    expect(third).toMatchObject({ $id, properties: { value: rest } });
    expect(third).not.toHaveProperty('properties.value.$id');
  });
});

describe('stream.partials', () => {
  const take = async (partials: AsyncIterable<unknown>) => {
    const all: unknown[] = [];
    for await (const one of partials) all.push(structuredClone(one));
    return all;
  };
  const city = structuredOutput({
    schema: z.object({ name: z.string(), people: z.number().transform(String) }),
  });

  it('gives the object as it grows, and the output last', async () => {
    const model = scriptedModel([chunks('{"name":"B', 'onn","people":3', '3}')]);
    const stream = new Agent({ model, middleware: [city] }).stream('go');
    const all = [];
    for await (const one of city.partialsOf(stream)) all.push(one.name, one.people);
    expect(all).toEqual(['B', undefined, 'Bonn', undefined, 'Bonn', 33, 'Bonn', '33']);
    expect((await stream.result).output).toEqual({ name: 'Bonn', people: '33' });
  });

  it('starts over with a repair', async () => {
    const model = scriptedModel([chunks('{"name":', '"Bo"}'), chunks('{"name":"Bonn",', '"people":1}')]);
    const agent = new Agent({ model, middleware: [city] });
    expect(await take(agent.stream('go').partials)).toEqual([
      {},
      { name: 'Bo' },
      { name: 'Bonn' },
      { name: 'Bonn', people: 1 },
      { name: 'Bonn', people: '1' },
    ]);
  });

  it('starts over when a retry takes the answer back', async () => {
    let calls = 0;
    const model: Model = {
      provider: 'p',
      id: 'm',
      *stream() {
        yield { type: 'text', text: calls === 0 ? '{"name":"Wrong' : '{"name":"Bonn","people":1}' };
        if (calls++ === 0) throw new Error('cut');
        yield { type: 'finish', reason: 'stop' };
      },
    };
    const again = { name: 'again', onError: () => (calls === 1 ? ('retry' as const) : undefined) };
    const agent = new Agent({ model, middleware: [city, again] });
    expect(await take(agent.stream('go').partials)).toEqual([
      { name: 'Wrong' },
      { name: 'Bonn', people: 1 },
      { name: 'Bonn', people: '1' },
    ]);
  });

  it('has only what guards let through, also through a tool and from a cache', async () => {
    const secret = {
      name: 'no-bonn',
      guard: {
        on: ['output' as const],
        find: (given: string) =>
          [...given.matchAll(/Bonn/g)].map(({ index }) => ({ start: index, end: index + 4 })),
        action: 'redact' as const,
      },
    };
    const byTool = structuredOutput({ schema: z.object({ name: z.string() }), mode: 'tool' });
    const agent = new Agent({
      model: scriptedModel([answer({ name: 'Bonn am Rhein' })]),
      middleware: [secret, cache(), byTool],
    });
    for (let i = 0; i < 2; i++) {
      const all = await take(agent.stream('go').partials);
      expect(JSON.stringify(all)).not.toContain('Bonn');
      expect(all.at(-1)).toMatchObject({ name: expect.stringContaining(' am Rhein') });
    }
  });

  it('is another way to read a stream, and leaving it aborts the run', async () => {
    const model = scriptedModel([hang('{"name":"B')], { repeat: true });
    const agent = new Agent({ model, middleware: [city] });
    const stream = agent.stream('go');
    const ended = expect(stream.result).rejects.toMatchObject({ code: 'ABORTED' });
    for await (const one of stream.partials) {
      expect(one).toEqual({ name: 'B' });
      break;
    }
    await ended;
    const taken = agent.stream('go');
    const settled = taken.result.catch(() => {});
    const reader = taken[Symbol.asyncIterator]();
    await expect(take(taken.partials)).rejects.toMatchObject({ code: 'STREAM_TAKEN' });
    await reader.return?.();
    await settled;
  });
});
