/** What guards reach beside the text of messages: provider content, ids, words that end a run, events, errors. */
import {
  Agent,
  type AgentEvent,
  defineMiddleware,
  type GuardPoint,
  type Middleware,
  type ModelPart,
  memoryStore,
  type RunError,
  StopRun,
  textOf,
  tool,
  window,
} from 'allium';
import { chunks, collect, failWith, hang, scriptedModel, text, toolCalls } from 'allium/testing';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';

const MAIL = 'ann@x.org';
const POINTS: GuardPoint[] = ['input', 'request', 'output', 'thinking', 'tool-args', 'tool-result', 'final'];
const guard = (more: Partial<NonNullable<Middleware['guard']>> = {}): Middleware => ({
  name: 'mail',
  guard: {
    on: POINTS,
    hold: window(20),
    find: (given) => [...given.matchAll(/ann@x\.org/g)].map((m) => ({ start: m.index, end: m.index + 9 })),
    ...more,
  },
});
const judging = (judge: NonNullable<NonNullable<Middleware['guard']>['judge']>): Middleware => ({
  name: 'judge',
  guard: { on: ['output'], judge },
});
const found = (value: unknown): ModelPart => ({ type: 'provider', kind: 'search', value });

async function told(
  agent: Agent,
  options = {},
): Promise<{ all: string; events: AgentEvent[]; error: unknown }> {
  const session = agent.session('s');
  const events: AgentEvent[] = [];
  let error: unknown;
  try {
    for await (const event of session.stream('go', options)) events.push(event);
  } catch (thrown) {
    error = thrown;
  }
  const written = await agent.store.read('s', 1);
  const { message, result } = (error ?? {}) as Partial<RunError>;
  return { all: JSON.stringify([events, written, message, result]), events, error };
}

describe('provider content', () => {
  it('of a response without text is judged, and the judge reads its texts', async () => {
    const read: string[] = [];
    const denies = judging(({ text: given }) => {
      read.push(given);
      return given.includes('bad') ? { type: 'deny', reason: 'No.' } : undefined;
    });
    const agent = (value: unknown) =>
      new Agent({ model: scriptedModel([chunks(found(value))]), middleware: [denies] });
    expect(await agent({ title: 'a bad one' }).run('go')).toMatchObject({ stop: { reason: 'guardrail' } });
    expect(await agent({ title: 'fine' }).run('go')).toMatchObject({ status: 'done' });
    expect(read).toEqual(['title\na bad one', 'title\nfine']);
  });

  it('keeps no fields that guards do not see, and neither does a file', async () => {
    const more = { note: MAIL };
    const parts: ModelPart[] = [
      { ...found('fine'), ...more },
      { type: 'file', data: 'aGk=', mimeType: 'text/plain', ...more },
    ];
    const { all } = await told(
      new Agent({ model: scriptedModel([chunks(...parts)]), middleware: [guard()] }),
    );
    expect(all).toContain('fine');
    expect(all).not.toContain(MAIL);
  });

  it.each(['watched', 'unwatched'])('goes when a judge rewrites the response, %s', async (how) => {
    const rewrites = judging(() => ({ type: 'rewrite', text: 'Nothing.' }));
    const step = chunks({ type: 'thinking', text: 'Hm.' }, found({ quote: MAIL }), 'It is ann@x.org.', {
      type: 'tool-call',
      id: 'c',
      name: 'look',
      arguments: '{}',
    });
    const look = tool({ name: 'look', description: '', input: z.object({}), execute: () => 'seen' });
    const model = scriptedModel([step, text('done')]);
    const agent = new Agent({ model, store: memoryStore(), tools: [look], middleware: [rewrites] });
    const { all, events } =
      how === 'watched'
        ? await told(agent)
        : { all: JSON.stringify(await agent.run('go')), events: [] as AgentEvent[] };
    expect(all).not.toContain(MAIL);
    const shown = new Map<number, string>();
    for (const event of events) {
      if (event.type === 'message_reset') shown.clear();
      if (event.type === 'message_end' && event.message?.role === 'assistant') {
        const texts = event.message.content.map((part) => (part.type === 'text' ? part.text : ''));
        for (const [block, given] of shown) expect(given).toBe(texts[block]);
        shown.clear();
      }
      if (event.type === 'message_update' && event.delta.type === 'text')
        shown.set(event.delta.block, (shown.get(event.delta.block) ?? '') + event.delta.text);
    }
    // The call still stands for itself, and was run.
    expect(model.requests[1]!.messages.at(-1)).toMatchObject({ role: 'tool', isError: false });
  });

  it("is replaced by the judge's text if there was no text", async () => {
    const rewrites = judging(() => ({ type: 'rewrite', text: 'Nothing.' }));
    const model = scriptedModel([chunks(found({ quote: MAIL }))]);
    const { result, events } = await collect(new Agent({ model, middleware: [rewrites] }).stream('go'));
    expect(result!.messages[1]!.content).toEqual([{ type: 'text', text: 'Nothing.' }]);
    expect(JSON.stringify(events)).not.toContain(MAIL);
  });
});

describe("ids and names of a model's calls", () => {
  it('do not hold what guards find, in the id or in a name that no tool has', async () => {
    const look = tool({ name: 'look', description: '', input: z.object({}), execute: () => 'seen' });
    const model = scriptedModel([
      chunks(
        { type: 'tool-call', id: `call ${MAIL}`, name: 'look', arguments: '{}' },
        { type: 'tool-call', id: 'c2', name: `send_${MAIL}`, arguments: '{}' },
      ),
      text('done'),
    ]);
    const agent = new Agent({ model, store: memoryStore(), tools: [look], middleware: [guard()] });
    const { all, error } = await told(agent);
    expect(error).toBeUndefined();
    expect(all).not.toContain(MAIL);
    const results = model.requests[1]!.messages.slice(2);
    expect(results.map(textOf)).toEqual(['seen', expect.stringContaining('There is no tool "unknown"')]);
  });
});

describe('what ends a run', () => {
  const stopping: readonly [string, Middleware][] = [
    ['ctx.stop()', { name: 's', beforeModel: (ctx) => ctx.stop('stopped', `because of ${MAIL}`) }],
    [
      'a thrown StopRun',
      {
        name: 's',
        beforeModel: () => {
          throw new StopRun('stopped', `because of ${MAIL}`);
        },
      },
    ],
    [
      'shouldStopAfterTurn',
      { name: 's', shouldStopAfterTurn: () => ({ reason: 'stopped', message: `because of ${MAIL}` }) },
    ],
    [
      'ctx.stop() around a tool',
      { name: 's', beforeTool: (ctx) => ctx.stop('stopped', `because of ${MAIL}`) },
    ],
  ];
  it.each(stopping)('by %s is reported without it', async (_, stop) => {
    const look = tool({ name: 'look', description: '', input: z.object({}), execute: () => 'seen' });
    const model = scriptedModel([toolCalls({ name: 'look', args: {} }), text('done')]);
    const agent = new Agent({ model, store: memoryStore(), tools: [look], middleware: [stop, guard()] });
    const { all, events } = await told(agent);
    expect(all).not.toContain(MAIL);
    expect(events.at(-1)).toMatchObject({
      result: { status: 'stopped', stop: { reason: 'stopped', message: 'because of [redacted]' } },
    });
  });

  it.each(['block', 'stop'] as const)('is reported in fixed words if a guard would %s', async (action) => {
    const stop: Middleware = { name: 's', beforeModel: (ctx) => ctx.stop('stopped', `because of ${MAIL}`) };
    const agent = new Agent({
      model: scriptedModel([]),
      store: memoryStore(),
      middleware: [stop, guard({ action })],
    });
    const { all, events } = await told(agent);
    expect(all).not.toContain(MAIL);
    expect(events.at(-1)).toMatchObject({ result: { stop: { message: 'The run ended: stopped.' } } });
  });

  it('an abort with a reason is reported without it, in the error too', async () => {
    const controller = new AbortController();
    const model = scriptedModel([hang('Well')]);
    const agent = new Agent({ model, store: memoryStore(), middleware: [guard()] });
    const work = told(agent, { signal: controller.signal });
    setImmediate(() => controller.abort(new Error(`${MAIL} left`)));
    const { all, error } = await work;
    expect(error).toMatchObject({ code: 'ABORTED', message: 'The run was aborted: [redacted] left' });
    expect(all).not.toContain(MAIL);
  });

  it('an abort by the session is reported without it', async () => {
    const model = scriptedModel([hang('Well')]);
    const agent = new Agent({ model, store: memoryStore(), middleware: [guard()] });
    const session = agent.session('s');
    const work = told(agent);
    setImmediate(() => void session.abort(`${MAIL} left`));
    expect((await work).all).not.toContain(MAIL);
  });

  it('an error is quoted by RunError without it; the cause is the error itself', async () => {
    const broken = new Error(`cannot write to ${MAIL}`);
    const agent = new Agent({ model: scriptedModel([failWith(broken)]), middleware: [guard()] });
    const error = await agent.run('go').catch((thrown) => thrown);
    expect(error.message).toBe('The run failed: cannot write to [redacted]');
    expect(error.cause).toBe(broken);
  });
});

describe('ctx.emit()', () => {
  it('sends its data without what guards find, and class instances as their JSON', async () => {
    const secret = new Map([['to', MAIL]]);
    const emits = defineMiddleware({
      name: 'emits',
      beforeModel(ctx) {
        ctx.emit('sent', { to: [MAIL], n: 1, when: new Date(0), secret });
      },
    });
    const agent = new Agent({ model: scriptedModel([text('ok')]), middleware: [emits, guard()] });
    const { events } = await collect(agent.stream('go'));
    const data = { to: ['[redacted]'], n: 1, when: '1970-01-01T00:00:00.000Z', secret: {} };
    expect(events.find(({ type }) => type === 'custom')).toMatchObject({ data });
  });

  it('sends no data if a guard would refuse it', async () => {
    const emits = defineMiddleware({ name: 'emits', beforeModel: (ctx) => ctx.emit('sent', { to: MAIL }) });
    const agent = new Agent({
      model: scriptedModel([text('ok')]),
      middleware: [emits, guard({ action: 'block' })],
    });
    const { events, result } = await collect(agent.stream('go'));
    expect(result).toMatchObject({ status: 'done' });
    const event = events.find(({ type }) => type === 'custom');
    expect(event).toMatchObject({ name: 'sent' });
    expect(event).not.toHaveProperty('data');
  });
});

describe('a result', () => {
  it('gives no access to the run and what it holds', async () => {
    const seen: object[] = [];
    const sink = defineMiddleware({
      name: 'sink',
      sink: true,
      afterRun: (ctx) => void seen.push(ctx.result!),
    });
    const agent = new Agent({ model: scriptedModel([text('ok')]), middleware: [sink, guard()] });
    const result = await agent.run(`I am ${MAIL}`);
    for (const one of [result, ...seen]) {
      const keys = Reflect.ownKeys(one);
      expect(keys.filter((key) => typeof key === 'symbol')).toEqual([]);
      expect(JSON.stringify(keys.map((key) => Reflect.get(one, key)))).not.toContain(MAIL);
    }
    expect(seen).toHaveLength(1);
    expect({ ...seen[0] }).toMatchObject({ usage: { inputTokens: 10 }, queued: [] });
  });
});
