import { Agent, defineMiddleware, type ModelPart, textOf, tool } from 'allium';
import { retry } from 'allium/middleware/retry';
import { type TimeoutOptions, timeout } from 'allium/middleware/timeout';
import {
  chunks,
  collect,
  failWith,
  fakeClock,
  hang,
  type Script,
  scriptedModel,
  testMiddleware,
  text,
  toolCalls,
} from 'allium/testing';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';

const all = { modelMs: 60_000, toolMs: 60_000, firstTokenMs: 60_000, idleMs: 60_000 };
testMiddleware(({ clock }) => timeout({ ...all, clock }), { name: 'timeout', describe, it });
testMiddleware(({ clock }) => timeout({ modelMs: 5, tools: { kit_hang: 5 }, clock }), {
  name: 'timeout of a model and a tool that hang',
  scenarios: [
    { name: 'a model that hangs', answers: [hang('Hel')] },
    { name: 'a tool that hangs', answers: [toolCalls({ name: 'kit_hang' }), text('So be it.')] },
  ],
  describe,
  it,
});

/** An agent and the clock that drives both it and its timeouts. */
function setup(script: readonly Script[], options: TimeoutOptions, tools = [stuck]) {
  const clock = fakeClock();
  const model = scriptedModel(script);
  const agent = new Agent({ model, tools, clock, middleware: [timeout(options)] });
  return { agent, clock, model };
}

let cancelled = 0;
const stuck = tool({
  name: 'stuck',
  description: 'Hangs.',
  input: z.object({}),
  execute: (_, ctx) =>
    new Promise((_resolve, reject) => {
      ctx.signal.addEventListener('abort', () => {
        cancelled++;
        reject(ctx.signal.reason);
      });
    }),
});

/** A model whose pieces come at these milliseconds. */
function timed(
  clock: ReturnType<typeof fakeClock>,
  pieces: readonly (readonly [number, ModelPart | string])[],
) {
  return {
    provider: 'test',
    id: 'timed',
    async *stream(): AsyncGenerator<ModelPart> {
      const start = clock.now();
      for (const [at, piece] of pieces) {
        await new Promise<void>((resolve) => void clock.setTimer(resolve, start + at - clock.now()));
        yield typeof piece === 'string' ? { type: 'text', text: piece } : piece;
      }
    },
  };
}
const finish = { type: 'finish', reason: 'stop' } as const;

describe('timeout', () => {
  it('cancels a model that does not finish in time, through its signal', async () => {
    const { agent, clock, model } = setup([hang('Hel')], { modelMs: 100 });
    const run = agent.run('hi').catch((error) => error);
    await clock.advance(99);
    expect(model.aborted).toBe(0);
    await clock.advance(1);
    const error = await run;
    expect(error).toMatchObject({ code: 'MODEL_TIMEOUT' });
    // The call that it cut off is no error that it was handling.
    expect((error as Error).message).toMatch(/\(in wrapModel of "timeout"\)$/);
    expect(error.cause.message).toBe('test/scripted did not finish within 100 ms.');
    expect(error.cause.data).toEqual({ model: 'test/scripted', limit: 'modelMs', ms: 100 });
    expect(model.aborted).toBe(1);
    expect(clock.pending).toBe(0);
  });

  it('leaves a model alone that answers in time, and no timer behind', async () => {
    const { agent, clock } = setup([chunks('Hel', 'tick', 'lo')], all);
    expect((await agent.run('hi')).text).toBe('Hello');
    expect(clock.pending).toBe(0);
  });

  it('shows and keeps the same, streamed or not', async () => {
    for (const script of [[chunks('Hel', 'tick', 'lo')], [hang('Hel', 'lo')]]) {
      const [one, other] = [setup(script, { idleMs: 50 }), setup(script, { idleMs: 50 })];
      const plain = one.agent.run('hi').catch(({ code, result }) => ({ code, ...result }));
      const streamed = collect(other.agent.stream('hi'));
      await one.clock.advance(100);
      await other.clock.advance(100);
      const { result, error, shown } = await streamed;
      const { status, text: answer, code } = await plain;
      expect({
        status: (result ?? error!.result).status,
        text: (result ?? error!.result).text,
        code: error?.code,
      }).toEqual({ status, text: answer, code });
      expect([...shown.values()].join('')).toBe(answer);
    }
  });

  describe('firstTokenMs', () => {
    it('cancels a model that sends nothing', async () => {
      const { agent, clock, model } = setup([hang()], { firstTokenMs: 100 });
      const run = agent.run('hi').catch((error) => error);
      await clock.advance(100);
      expect((await run).cause).toMatchObject({
        code: 'MODEL_TIMEOUT',
        message: 'test/scripted sent nothing within 100 ms.',
        data: { limit: 'firstTokenMs' },
      });
      expect(model.aborted).toBe(1);
    });

    it('is over with the first piece, whatever it is', async () => {
      const clock = fakeClock();
      const model = timed(clock, [
        [90, { type: 'thinking', text: 'Hm.' }],
        [500, 'Hello'],
        [500, finish],
      ]);
      const run = new Agent({ model, clock, middleware: [timeout({ firstTokenMs: 100 })] }).run('hi');
      await clock.advance(1000);
      expect((await run).text).toBe('Hello');
      expect(clock.pending).toBe(0);
    });

    it('does not count waits further in', async () => {
      const clock = fakeClock();
      const queue = defineMiddleware({
        name: 'queue',
        beforeModel: () => new Promise<void>((resolve) => void clock.setTimer(resolve, 5000)),
      });
      const model = scriptedModel(['hello']);
      const run = new Agent({ model, clock, middleware: [timeout({ firstTokenMs: 100 }), queue] }).run('hi');
      await clock.advance(5000);
      expect((await run).text).toBe('hello');
    });
  });

  describe('idleMs', () => {
    it('cancels a model that falls silent in the middle', async () => {
      const { agent, clock } = setup([hang('Hel')], { idleMs: 100 });
      const run = agent.run('hi').catch((error) => error);
      await clock.advance(100);
      expect((await run).cause).toMatchObject({
        code: 'MODEL_TIMEOUT',
        message: 'test/scripted stopped in the middle of its answer for 100 ms.',
      });
      expect(clock.pending).toBe(0);
    });

    it('starts again with every piece', async () => {
      const clock = fakeClock();
      const slow = timed(clock, [
        [300, 'a'],
        [399, 'b'],
        [498, 'c'],
        [597, finish],
      ]);
      const run = new Agent({ model: slow, clock, middleware: [timeout({ idleMs: 100 })] }).run('hi');
      await clock.advance(1000);
      expect((await run).text).toBe('abc');
      const silent = timed(clock, [
        [10, 'a'],
        [100, 'b'],
        [201, 'c'],
        [201, finish],
      ]);
      const late = new Agent({ model: silent, clock, middleware: [timeout({ idleMs: 100 })] })
        .run('hi')
        .catch((error) => error);
      await clock.advance(1000);
      expect(await late).toMatchObject({ code: 'MODEL_TIMEOUT' });
    });

    it('does not count the time a slow consumer takes', async () => {
      const clock = fakeClock();
      const words = Array.from({ length: 5000 }, (_, i) => `w${i} `);
      const model = scriptedModel([chunks(...words)]);
      const agent = new Agent({ model, clock, middleware: [timeout({ idleMs: 100, modelMs: 1000 })] });
      const stream = agent.stream('hi');
      let seen = 0;
      for await (const event of stream)
        if (event.type === 'message_update' && ++seen % 1000 === 0) await clock.advance(60_000);
      expect((await stream.result).text).toBe(words.join(''));
    });
  });

  describe('tools', () => {
    it('are cancelled through their signal, and the model is told', async () => {
      const { agent, clock, model } = setup([toolCalls({ name: 'stuck' }), 'ok'], { toolMs: 100 });
      cancelled = 0;
      const run = agent.run('hi');
      await clock.advance(100);
      expect((await run).text).toBe('ok');
      expect(cancelled).toBe(1);
      expect(model.requests[1]?.messages.at(-1)).toMatchObject({ isError: true });
      expect(JSON.stringify(model.requests[1]?.messages.at(-1)?.content)).toContain(
        'did not finish within 100 ms',
      );
      expect(clock.pending).toBe(0);
    });

    it('do not take their siblings with them', async () => {
      const quick = tool({
        name: 'quick',
        description: 'Quick.',
        input: z.object({}),
        execute: () => 'here',
      });
      const script = [toolCalls({ name: 'stuck', id: 'a' }, { name: 'quick', id: 'b' }), 'ok'];
      const { agent, clock } = setup(script, { toolMs: 100 }, [stuck, quick] as never);
      const run = agent.run('hi');
      await clock.advance(100);
      const results = (await run).messages.filter(({ role }) => role === 'tool');
      expect(results.map((message) => 'isError' in message && message.isError)).toEqual([true, false]);
    });

    it('may have a time of their own, or none', async () => {
      const named = (name: string) => ({ ...stuck, name });
      const tools = [stuck, named('slow'), named('free')];
      const script = [
        toolCalls({ name: 'stuck', id: 'a' }, { name: 'slow', id: 'b' }, { name: 'free', id: 'c' }),
        'ok',
      ];
      const { agent, clock } = setup(
        script,
        { toolMs: 10, tools: { slow: 500, free: Number.POSITIVE_INFINITY } },
        tools,
      );
      cancelled = 0;
      const abort = new AbortController();
      const run = agent.run('hi', { signal: abort.signal }).catch((error) => error);
      await clock.advance(10);
      expect(cancelled).toBe(1);
      await clock.advance(490);
      expect(cancelled).toBe(2);
      await clock.advance(100_000);
      expect(cancelled).toBe(2);
      abort.abort();
      expect(await run).toMatchObject({ code: 'ABORTED' });
    });

    it('may ask a person who takes longer, and have their time to themselves after that', async () => {
      const asking = tool({
        name: 'asking',
        description: 'Asks.',
        input: z.object({}),
        async execute(_, ctx) {
          await ctx.suspend({ title: 'Sure?' });
          return new Promise<string>(() => {});
        },
      });
      const clock = fakeClock();
      const agent = new Agent({
        model: scriptedModel([toolCalls({ name: 'asking' }), 'ok']),
        tools: [asking],
        clock,
        middleware: [timeout({ toolMs: 100 })],
        onRequest: () =>
          new Promise((resolve) => void clock.setTimer(() => resolve({ type: 'approve' }), 1000)),
      });
      let ended = false;
      const run = agent.run('hi').finally(() => {
        ended = true;
      });
      await clock.advance(1099);
      expect(ended).toBe(false);
      await clock.advance(1);
      expect((await run).messages[2]).toMatchObject({ isError: true, toolName: 'asking' });
    });

    it('are not polled while a person is asked', async () => {
      const clock = fakeClock();
      let timers = 0;
      const asking = tool({
        name: 'asking',
        description: 'Asks.',
        input: z.object({}),
        async execute(_, ctx) {
          await new Promise<void>((resolve) => void clock.setTimer(resolve, 99));
          await ctx.suspend({ title: 'Sure?' });
          return 'sure';
        },
      });
      const agent = new Agent({
        model: scriptedModel([toolCalls({ name: 'asking' }), 'ok']),
        tools: [asking],
        clock: {
          now: clock.now,
          setTimer(fn, ms) {
            timers++;
            return clock.setTimer(fn, ms);
          },
        },
        middleware: [timeout({ toolMs: 100 })],
        onRequest: () =>
          new Promise((resolve) => void clock.setTimer(() => resolve({ type: 'approve' }), 10_000)),
      });
      const run = agent.run('hi');
      await clock.advance(10_099);
      expect(textOf((await run).messages[2]!)).toBe('sure');
      expect(timers).toBeLessThan(300);
    });

    it('may stand inside a layer that asks a person who takes longer, of which explain() does not warn', async () => {
      const clock = fakeClock();
      const asking = defineMiddleware({
        name: 'asking',
        suspends: true,
        async wrapTool(ctx, next) {
          await ctx.suspend({ title: 'Sure?' });
          return next();
        },
      });
      const quick = tool({
        name: 'quick',
        description: 'Is quick.',
        input: z.object({}),
        execute: () => 'ran',
      });
      const agent = new Agent({
        model: scriptedModel([toolCalls({ name: 'quick' }), 'ok']),
        tools: [quick],
        clock,
        middleware: [timeout({ toolMs: 100 }), asking],
        onRequest: () =>
          new Promise((resolve) => void clock.setTimer(() => resolve({ type: 'approve' }), 1000)),
      });
      expect(agent.explain().hazards).toEqual([]);
      const run = agent.run('hi');
      await clock.advance(1000);
      expect(textOf((await run).messages[2]!)).toBe('ran');
    });

    it('that are not named have no limit when only others are', async () => {
      const { agent, clock } = setup([toolCalls({ name: 'stuck' }), 'ok'], { tools: { other: 10 } });
      const abort = new AbortController();
      const run = agent.run('hi', { signal: abort.signal }).catch((error) => error);
      await clock.advance(100_000);
      abort.abort();
      expect(await run).toMatchObject({ code: 'ABORTED' });
    });
  });

  describe('with retry', () => {
    it('inside, gives each attempt its time', async () => {
      const clock = fakeClock();
      const model = scriptedModel([hang('Hel'), hang(), text('Hello')]);
      const middleware = [retry({ clock, jitter: 'none' }), timeout({ modelMs: 100 })];
      const run = collect(new Agent({ model, clock, middleware }).stream('hi'));
      await clock.advance(100 + 500 + 100 + 1000);
      const { result, shown } = await run;
      expect(result?.text).toBe('Hello');
      expect([...shown.values()]).toEqual(['Hello']);
      expect(model.aborted).toBe(2);
    });

    it('outside, limits all attempts and the waits between them', async () => {
      const clock = fakeClock();
      const down = failWith(Object.assign(new Error('down'), { status: 503 }));
      const model = scriptedModel([down], { repeat: true });
      const middleware = [timeout({ modelMs: 1000 }), retry({ attempts: 50, clock, jitter: 'none' })];
      const run = new Agent({ model, clock, middleware }).run('hi').catch((error) => error);
      await clock.advance(1000);
      expect(await run).toMatchObject({ code: 'MODEL_TIMEOUT' });
      expect(model.requests).toHaveLength(2);
      expect(clock.pending).toBe(0);
    });
  });

  it('counts the time of each call from its own beginning', async () => {
    const clock = fakeClock();
    const slow = tool({
      name: 'slow',
      description: 'Takes 60 ms.',
      input: z.object({}),
      execute: () => new Promise<string>((resolve) => void clock.setTimer(() => resolve('done'), 60)),
    });
    const model = scriptedModel([toolCalls({ name: 'slow' }), toolCalls({ name: 'slow' }), hang()]);
    const middleware = [timeout({ modelMs: 100, toolMs: 100 })];
    const agent = new Agent({ model, tools: [slow], clock, middleware });
    let ended = false;
    const run = agent.run('hi').catch((error) => {
      ended = true;
      return error;
    });
    await clock.advance(219);
    expect(ended).toBe(false);
    await clock.advance(1);
    expect(await run).toMatchObject({ code: 'MODEL_TIMEOUT' });
    expect(clock.pending).toBe(0);
  });

  it('gives calls side by side each its own limit, whichever began first', async () => {
    const clock = fakeClock();
    const ended: string[] = [];
    const waits = (name: string) =>
      tool({
        name,
        description: 'Hangs.',
        input: z.object({}),
        execute: (_, ctx) =>
          new Promise((_resolve, reject) => {
            ctx.signal.addEventListener('abort', () => {
              ended.push(`${name} at ${clock.now() - start}`);
              reject(ctx.signal.reason);
            });
          }),
      });
    const start = clock.now();
    const names = ['long', 'short', 'middle'];
    const model = scriptedModel([toolCalls(...names.map((name) => ({ name }))), text('So be it.')]);
    const middleware = [timeout({ toolMs: 50, tools: { long: 90, short: 10 } })];
    const run = new Agent({ model, tools: names.map(waits), clock, middleware }).run('hi');
    await clock.advance(100);
    expect((await run).text).toBe('So be it.');
    expect(ended).toEqual(['short at 10', 'middle at 50', 'long at 90']);
    expect(clock.pending).toBe(0);
  });

  it('limits calls that others make before and after the run, and leaves no timer behind', async () => {
    const clock = fakeClock();
    const model = scriptedModel([hang(), text('Hello'), text('A title')]);
    const codes: unknown[] = [];
    const outer = defineMiddleware({
      name: 'outer',
      async wrapRun(ctx, next) {
        await ctx.generate(model, { messages: 'Before?' }).catch((error) => codes.push(error.code));
        await next();
        const { content } = await ctx.generate(model, { messages: 'After?' });
        codes.push(textOf({ content }));
      },
    });
    const run = new Agent({ model, clock, middleware: [outer, timeout({ modelMs: 100 })] }).run('hi');
    await clock.advance(100);
    expect((await run).text).toBe('Hello');
    expect(codes).toEqual(['MODEL_TIMEOUT', 'A title']);
    expect(clock.pending).toBe(0);
  });

  it('leaves no timer when the run is aborted', async () => {
    const { agent, clock } = setup([hang('Hel')], all);
    const abort = new AbortController();
    const run = agent.run('hi', { signal: abort.signal }).catch((error) => error);
    await clock.advance(5);
    expect(clock.pending).toBeGreaterThan(0);
    abort.abort();
    expect(await run).toMatchObject({ code: 'ABORTED' });
    expect(clock.pending).toBe(0);
  });

  it('keeps two of them apart, and the shorter one counts', async () => {
    const clock = fakeClock();
    const middleware = [timeout({ modelMs: 200 }), timeout({ modelMs: 100 })];
    const run = new Agent({ model: scriptedModel([hang()]), clock, middleware })
      .run('hi')
      .catch((error) => error);
    await clock.advance(100);
    expect((await run).cause.data.ms).toBe(100);
  });

  it('takes its own clock before that of the agent', async () => {
    const [own, other] = [fakeClock(), fakeClock()];
    const middleware = [timeout({ modelMs: 100, clock: own })];
    const run = new Agent({ model: scriptedModel([hang()]), clock: other, middleware })
      .run('hi')
      .catch((error) => error);
    await other.advance(500);
    await own.advance(100);
    expect(await run).toMatchObject({ code: 'MODEL_TIMEOUT' });
  });

  it('serves 100 concurrent runs, half of which hang', async () => {
    const clock = fakeClock();
    const model = scriptedModel(
      [
        ({ messages }) =>
          JSON.stringify(messages.at(-1)?.content).includes('odd') ? hang('Hel') : text('Hello'),
      ],
      { repeat: true },
    );
    const agent = new Agent({ model, clock, middleware: [timeout({ modelMs: 100, idleMs: 90 })] });
    const runs = Promise.allSettled(Array.from({ length: 100 }, (_, i) => agent.run(i % 2 ? 'odd' : 'even')));
    await clock.advance(100);
    expect((await runs).map(({ status }) => status)).toEqual(
      Array.from({ length: 100 }, (_, i) => (i % 2 ? 'rejected' : 'fulfilled')),
    );
    expect(clock.pending).toBe(0);
  });

  it.each([
    [undefined, 'Expected `options` to be an object with modelMs, toolMs,'],
    [
      {},
      'Expected `options` to be an object with at least one of modelMs, toolMs, firstTokenMs, idleMs or tools, got {}.',
    ],
    [{ modelMs: 0 }, 'Expected `modelMs` to be a number ≥ 1, got 0.'],
    [{ toolMs: '5s' }, 'Expected `toolMs` to be a number ≥ 1, got "5s".'],
    [{ idleMs: Number.NaN }, 'Expected `idleMs` to be a number ≥ 1, got NaN.'],
    [{ tools: { crawl: 0 } }, 'Expected `tools.crawl` to be a number ≥ 1, got 0.'],
    [{ tools: ['crawl'] }, 'Expected `tools` to be an object of milliseconds by tool name, got ["crawl"].'],
    [
      { modelMs: 5, clock: Date },
      'Expected `clock` to be an object with now(), setTimer(), got a function (Date).',
    ],
    [{ modelMS: 5 }, 'Unknown option `modelMS` of timeout(). Did you mean `modelMs`?'],
  ])('refuses %j', (options, message) => {
    expect(() => timeout(options as never)).toThrow(message);
  });
});
