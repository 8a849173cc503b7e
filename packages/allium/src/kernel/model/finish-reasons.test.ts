/** How a run goes on after an answer that its model did not end by itself. */
import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import {
  Agent,
  defineMiddleware,
  type FinishReason,
  type Middleware,
  memoryStore,
  type RunResult,
  textOf,
  tool,
} from 'allium';
import { cache, fallback, record, replay, retry, structuredOutput, todoList } from 'allium/middleware';
import { collect, scriptedModel, text, toolCalls } from 'allium/testing';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { expectValidHistory } from '../../../../../test/run-checks.js';

let ran: string[] = [];
const pay = tool({
  name: 'pay',
  description: 'Pays.',
  input: z.object({ amount: z.number().default(1) }),
  onInDoubt: 'fail',
  execute: ({ amount }) => {
    ran.push(`pay ${amount}`);
    return 'paid';
  },
});

/** An answer that ends for this reason. */
function ending(reason: FinishReason, { calls = 0, said = 'half' } = {}) {
  const made = Array.from({ length: calls }, (_, i) => {
    const args = JSON.stringify({ amount: i + 1 });
    return { type: 'tool-call' as const, id: `c${Math.random()}`, name: 'pay', arguments: args };
  });
  const usage = { inputTokens: 10, outputTokens: 5 };
  return {
    parts: [{ type: 'text' as const, text: said }, ...made, { type: 'finish' as const, reason, usage }],
  };
}

function setup(script: Parameters<typeof scriptedModel>[0], more: object = {}) {
  ran = [];
  const model = scriptedModel(script);
  return { model, agent: new Agent({ model, tools: [pay], ...more }) };
}

const layer: Middleware = { name: 'layer', wrapModel: (_, next) => next(), wrapTool: (_, next) => next() };
const asks: Middleware = { name: 'asks', beforeToolCall: () => ({ ask: { title: 'Pay?' } }) };

describe.each([
  ['without middleware', []],
  ['with layers', [layer]],
  ['with approvals', [asks]],
])('an answer that is cut off, %s', (_, middleware) => {
  it.each([1, 2])('runs none of its %i calls, tells the model, and asks again', async (calls) => {
    const { agent, model } = setup([ending('length', { calls }), 'done'], {
      middleware,
      settings: { maxOutputTokens: 64 },
    });
    const { result, events } = await collect(agent.stream('pay'));
    expect(ran).toEqual([]);
    expect(result).toMatchObject({ status: 'done', stop: { reason: 'final' }, text: 'done', turns: 2 });
    expectValidHistory(result!.messages);
    const told = model.requests[1]!.messages.filter(({ role }) => role === 'tool');
    expect(told).toHaveLength(calls);
    for (const message of told) {
      expect(message).toMatchObject({ isError: true });
      expect(textOf(message)).toMatch(/^Not run: the answer was cut off at its limit of 64 output tokens/);
    }
    expect(events.filter(({ type }) => type === 'tool_execution_end')).toHaveLength(calls);
  });

  it('twice in a row ends the run', async () => {
    const { agent, model } = setup(
      [ending('length', { calls: 1 }), ending('length', { calls: 1 }), 'never'],
      {
        middleware,
      },
    );
    const result = await agent.run('pay');
    expect(result).toMatchObject({ status: 'stopped', stop: { reason: 'cut_off', by: 'kernel' }, turns: 2 });
    expect(result.stop.message).toContain(
      'Two answers in a row were cut off, the last one after 5 output tokens.',
    );
    expectValidHistory(result.messages);
    expect([ran, model.requests.length]).toEqual([[], 2]);
  });

  it('counts from the start after a whole answer', async () => {
    const cut = () => ending('length', { calls: 1 });
    const { agent } = setup([cut(), ending('tool-calls', { calls: 0, said: 'x' }), cut(), 'done'], {
      middleware: [
        ...middleware,
        { name: 'on', onRunEnd: (ctx: { turn: number }) => (ctx.turn === 2 ? [more()] : undefined) },
      ],
    });
    expect(await agent.run('pay')).toMatchObject({ status: 'done', turns: 4 });
  });

  const more = () => ({ id: '', role: 'user' as const, content: [{ type: 'text' as const, text: 'more' }] });

  it('without calls is not a final answer, but its text is kept', async () => {
    const { agent } = setup([ending('length')], { middleware });
    const result = await agent.run('write');
    expect(result).toMatchObject({
      status: 'stopped',
      stop: { reason: 'cut_off', by: 'kernel' },
      text: 'half',
      turns: 1,
    });
  });

  it('does not end a run that a queue or onRunEnd keeps going', async () => {
    const { agent } = setup([ending('length'), 'whole'], { middleware, store: memoryStore() });
    const session = agent.session('s');
    await session.followUp('go on');
    expect(await session.run('write')).toMatchObject({ status: 'done', text: 'whole' });
  });

  it('a content filter ends the run, its calls do not run', async () => {
    const onRunEnd = () => {
      throw new Error('not asked');
    };
    const { agent } = setup([ending('content-filter', { calls: 2 })], {
      middleware: [...middleware, { name: 'end', onRunEnd }],
    });
    const result = await agent.run('pay');
    expect(result).toMatchObject({
      status: 'stopped',
      stop: { reason: 'content_filter', by: 'kernel' },
      text: 'half',
    });
    expectValidHistory(result.messages);
    expect(textOf(result.messages.at(-1)!)).toMatch(/^Not run: a content filter/);
    expect(ran).toEqual([]);
  });
});

it('a cut-off names the limit that a layer or a budget set', async () => {
  const caps = defineMiddleware({
    name: 'caps',
    beforeModel(ctx) {
      ctx.settings = { ...ctx.settings, maxOutputTokens: 32 };
    },
  });
  const { agent, model } = setup([ending('length', { calls: 1 }), 'done'], { middleware: [caps] });
  await agent.run('pay');
  expect(textOf(model.requests[1]!.messages.at(-1)!)).toContain('its limit of 32 output tokens');
});

it('a middleware may ask again after a content filter', async () => {
  const again = defineMiddleware({
    name: 'again',
    afterModelResponse: ({ stopReason }) =>
      stopReason === 'content-filter' ? { decision: 'loop_to_model' } : undefined,
  });
  const { agent } = setup([ending('content-filter'), 'fine'], { middleware: [again] });
  expect(await agent.run('go')).toMatchObject({ status: 'done', text: 'fine' });
});

it('after a crash the calls of a cut answer are answered, not run', async () => {
  const store = memoryStore();
  const append = store.append.bind(store);
  const { agent } = setup([ending('length', { calls: 2 })], { store });
  store.append = (id, seq, entries) => {
    if (entries.some(({ type }) => type === 'tool_finished')) throw new Error('disk');
    return append(id, seq, entries);
  };
  await expect(agent.session('s').run('pay')).rejects.toMatchObject({ code: 'STORE_FAILED' });
  store.append = append;
  const next = setup([ending('length', { calls: 1 })], { store });
  const result = await next.agent.session('s').resume();
  expect(result.stop).toMatchObject({ reason: 'cut_off', message: expect.stringContaining('Two answers') });
  expectValidHistory(result.messages);
  expect(ran).toEqual([]);
});

describe('an answer that ends with an error', () => {
  const failing = () => ending('error', { calls: 1 });

  it('is a failed model call: nothing of it is kept, its tokens are counted', async () => {
    const { agent } = setup([failing()], { store: memoryStore() });
    const { error, events } = await collect(agent.session('s').stream('pay'));
    expect(error).toMatchObject({ code: 'MODEL_STREAM_FAILED', result: { status: 'error', turns: 0 } });
    expect(error!.result.usage).toMatchObject({ inputTokens: 10, outputTokens: 5 });
    expect(error!.result.messages.map(({ role }) => role)).toEqual(['user']);
    expect(events.findLast(({ type }) => type === 'message_end')).toMatchObject({ discarded: true });
    expect(ran).toEqual([]);
  });

  it('is tried again by retry', async () => {
    const { agent } = setup([failing(), 'fine'], { middleware: [retry({ minDelayMs: 1 })] });
    expect(await agent.run('go')).toMatchObject({ status: 'done', text: 'fine' });
  });

  it('falls back', async () => {
    const other = scriptedModel([text('from the other')]);
    const { agent } = setup([failing()], { middleware: [fallback({ models: [other] })] });
    expect(await agent.run('go')).toMatchObject({ status: 'done', text: 'from the other' });
  });

  it('is a failed call too if a layer made it', async () => {
    const made = { role: 'assistant', content: [], stopReason: 'error' } as const;
    for (const middleware of [
      { name: 'presets', wrapModel: () => made },
      { name: 'replaces', afterModelResponse: () => ({ response: made }) },
    ] as Middleware[]) {
      const { agent } = setup(['never'], { middleware: [middleware] });
      await expect(agent.run('go')).rejects.toMatchObject({ code: 'MODEL_STREAM_FAILED' });
    }
  });
});

describe('together with middleware', () => {
  it('structuredOutput asks again once, and a second cut ends the run', async () => {
    const middleware = [structuredOutput({ schema: z.object({ x: z.number() }) })];
    const cut = () => ending('length', { said: '{"x":' });
    const fine = setup([cut(), '{"x":1}'], { middleware });
    expect(await fine.agent.run('go')).toMatchObject({ status: 'done', output: { x: 1 } });
    const short = setup([cut(), cut(), '{"x":1}'], { middleware });
    expect(await short.agent.run('go')).toMatchObject({ status: 'stopped', stop: { reason: 'cut_off' } });
  });

  it('structuredOutput and todoList leave a run alone that a content filter ended', async () => {
    const filtered = () => ending('content-filter', { said: '{"x":' });
    const output = setup([filtered(), '{"x":1}'], {
      middleware: [structuredOutput({ schema: z.object({ x: z.number() }) })],
    });
    expect((await output.agent.run('go')).stop).toMatchObject({ reason: 'content_filter', by: 'kernel' });
    const list = { todos: [{ content: 'Pay', status: 'in_progress' }] };
    const todos = setup([toolCalls({ name: 'write_todos', args: list }), filtered(), 'never'], {
      middleware: [todoList()],
    });
    expect((await todos.agent.run('go')).stop).toMatchObject({ reason: 'content_filter', by: 'kernel' });
    expect([output.model.requests.length, todos.model.requests.length]).toEqual([1, 2]);
  });

  it('cache keeps no answer that was cut off', async () => {
    const { agent, model } = setup([ending('length'), 'whole', 'never'], { middleware: [cache()] });
    expect((await agent.run('go')).stop.reason).toBe('cut_off');
    expect(await agent.run('go')).toMatchObject({ status: 'done', text: 'whole' });
    expect(await agent.run('go')).toMatchObject({ status: 'done', text: 'whole' });
    expect(model.requests).toHaveLength(2);
  });

  it.each(['length', 'content-filter', 'error'] as const)(
    'a replay ends as the recorded run: %s',
    async (reason) => {
      const to = join(mkdtempSync(join(tmpdir(), 'allium-finish-')), 'cassette.jsonl');
      const ends = (result: Promise<RunResult>) =>
        result.then(
          ({ stop }) => stop.reason,
          ({ code }) => code,
        );
      const recorded = await ends(setup([ending(reason)], { middleware: [record({ to })] }).agent.run('go'));
      expect(['cut_off', 'content_filter', 'MODEL_STREAM_FAILED']).toContain(recorded);
      expect(await ends(setup([], { middleware: [replay({ from: to })] }).agent.run('go'))).toBe(recorded);
    },
  );

  it('a sub-agent that was cut off is an error result that says so', async () => {
    const { agent: child } = setup([ending('length')]);
    const boss = new Agent({
      model: scriptedModel([
        {
          parts: [
            { type: 'tool-call', id: 'c', name: 'ask', arguments: '{"prompt":"x"}' },
            { type: 'finish', reason: 'tool-calls' },
          ],
        },
        'done',
      ]),
      tools: [child.asTool({ name: 'ask', description: 'Asks.' })],
    });
    const { messages } = await boss.run('go');
    expect(messages[2]).toMatchObject({ role: 'tool', isError: true });
    expect(textOf(messages[2]!)).toContain('cut_off');
  });
});
