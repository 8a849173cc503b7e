/** A model that stalls, drips or never ends holds no run for ever. */
import { Agent, type Limits, type Middleware, type Model, type ModelPart, memoryStore, tool } from 'allium';
import { fallback } from 'allium/middleware/fallback';
import { retry } from 'allium/middleware/retry';
import { timeout } from 'allium/middleware/timeout';
import { type FakeClock, fakeClock, scriptedModel, toolCalls } from 'allium/testing';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';

const MINUTE = 60_000;

/** Sends what `pieces` say: a number is a pause in milliseconds. Then it stalls, unless it is told to finish. */
function model(clock: FakeClock, pieces: Iterable<number | string>, finishes = false) {
  const seen: { signal: AbortSignal | undefined; calls: number } = { signal: undefined, calls: 0 };
  const made: Model = {
    provider: 'test',
    id: 'staller',
    async *stream(_request, { signal }) {
      seen.signal = signal;
      seen.calls++;
      for (const piece of pieces) {
        if (typeof piece === 'string') yield { type: 'text', text: piece };
        else await new Promise<void>((resolve) => void clock.setTimer(resolve, piece));
      }
      if (!finishes) await new Promise(() => {});
      yield { type: 'finish', reason: 'stop' } satisfies ModelPart;
    },
  };
  return { model: made, seen };
}

function* drip(everyMs: number): Generator<number | string> {
  for (;;) {
    yield everyMs;
    yield 'drip ';
  }
}

/** The minute in which a run ends, if it does within 40, and how. */
async function minuteOf(clock: FakeClock, run: Promise<unknown>): Promise<[number, unknown]> {
  let ended: { how: unknown } | undefined;
  run.then(
    (how) => {
      ended = { how };
    },
    (how) => {
      ended = { how };
    },
  );
  for (let minute = 0; minute <= 40; minute += 0.25) {
    await clock.advance(minute === 0 ? 0 : MINUTE / 4);
    if (ended) return [minute, ended.how];
  }
  return [Number.POSITIVE_INFINITY, undefined];
}

describe('a model call without time limits of its own', () => {
  it.each([
    ['never answers', []],
    ['stalls in the middle', ['half', 100, 'of it']],
  ])('fails after two minutes of silence when the model %s', async (_, pieces) => {
    for (const how of ['run', 'stream', 'session'] as const) {
      const clock = fakeClock();
      const { model: slow, seen } = model(clock, pieces);
      const agent = new Agent({ model: slow, clock, store: memoryStore() });
      const run =
        how === 'run'
          ? agent.run('hi')
          : how === 'stream'
            ? agent.stream('hi').result
            : agent.session('s').run('hi');
      const [minute, error] = await minuteOf(clock, run);
      expect(minute).toBeGreaterThanOrEqual(2);
      expect(minute).toBeLessThanOrEqual(2.5);
      expect(error).toMatchObject({ code: 'MODEL_TIMEOUT' });
      expect((error as Error).message).toContain('test/staller sent nothing for 120000 ms');
      expect(seen.signal?.aborted).toBe(true);
      expect(clock.pending).toBe(0);
    }
  });

  it('fails after ten minutes when the model drips for ever', async () => {
    const clock = fakeClock();
    const [minute, error] = await minuteOf(
      clock,
      new Agent({ model: model(clock, drip(20_000)).model, clock }).run('hi'),
    );
    expect(minute).toBe(10);
    expect(error).toMatchObject({ code: 'MODEL_TIMEOUT' });
    expect((error as Error).message).toContain('did not finish within 600000 ms. Raise `limits.modelMs`');
  });

  it('may take its time', async () => {
    const clock = fakeClock();
    const pieces = Array.from({ length: 5 }, () => [100_000, 'a']).flat();
    const [, result] = await minuteOf(
      clock,
      new Agent({ model: model(clock, pieces, true).model, clock }).run('hi'),
    );
    expect(result).toMatchObject({ status: 'done', text: 'aaaaa' });
  });

  it('is timed by itself: each call of a run has the full time', async () => {
    const clock = fakeClock();
    const nap = tool({
      name: 'nap',
      description: 'Sleeps.',
      input: z.any(),
      execute: async () => {
        await new Promise<void>((resolve) => void clock.setTimer(resolve, 15 * MINUTE));
        return 'rested';
      },
    });
    const agent = new Agent({
      model: scriptedModel([toolCalls({ name: 'nap' }), 'ok']),
      tools: [nap],
      clock,
    });
    const [, result] = await minuteOf(clock, agent.run('hi'));
    expect(result).toMatchObject({ text: 'ok' });
  });

  it('is not charged for a consumer that does not read', async () => {
    const clock = fakeClock();
    const pieces = [...Array.from({ length: 200 }, () => 'x'.repeat(1000)), 1000, 'end'];
    const stream = new Agent({ model: model(clock, pieces, true).model, clock }).stream('hi');
    const reader = stream[Symbol.asyncIterator]();
    await reader.next();
    for (let minute = 0; minute < 30; minute++) await clock.advance(MINUTE);
    let last: unknown;
    const read = (async () => {
      for (let step = await reader.next(); !step.done; step = await reader.next()) last = step.value;
    })();
    await clock.advance(1000);
    await read;
    expect(last).toMatchObject({ type: 'agent_end', result: { status: 'done' } });
  });
});

describe('limits.modelIdleMs and limits.modelMs', () => {
  const cases: [Limits, Iterable<number | string>, number][] = [
    [{ modelIdleMs: 5 * MINUTE }, [], 5],
    [{ modelIdleMs: 'none' }, [], 10],
    [{ modelIdleMs: Number.POSITIVE_INFINITY }, [], 10],
    [{ modelMs: 15 * MINUTE }, drip(60_000), 15],
    [{ modelMs: 'none' }, drip(60_000), Number.POSITIVE_INFINITY],
    [{ modelMs: 'none', modelIdleMs: 'none' }, [], Number.POSITIVE_INFINITY],
    [{ modelMs: MINUTE }, [], 1],
  ];
  it.each(cases)('%j', async (limits, pieces, minute) => {
    const clock = fakeClock();
    const agent = new Agent({ model: model(clock, pieces).model, clock, limits });
    const [ended] = await minuteOf(clock, agent.run('hi'));
    expect(ended).toBe(minute);
  });

  it('hold for one run, and for the rest of it after a resume', async () => {
    const clock = fakeClock();
    const store = memoryStore();
    const ask = tool({
      name: 'ask',
      description: 'Asks.',
      input: z.any(),
      execute: async (_, ctx) => (await ctx.suspend({ title: 'Sure?' })).type,
    });
    const script = scriptedModel([toolCalls({ name: 'ask' })]);
    const limits = { modelIdleMs: 'none', modelMs: MINUTE } as const;
    const first = await new Agent({ model: script, tools: [ask], store, clock })
      .session('s')
      .run('hi', { limits });
    const agent = new Agent({ model: model(clock, []).model, tools: [ask], store, clock });
    const run = agent.session('s').resume({ answers: { [first.pending[0]!.id]: { type: 'approve' } } });
    const [minute, error] = await minuteOf(clock, run);
    expect([minute, (error as { code: string }).code]).toEqual([1, 'MODEL_TIMEOUT']);
  });

  it.each([0, -1, Number.NaN, 'off', null])('refuse %j', (value) => {
    expect(() => new Agent({ model: scriptedModel([]), limits: { modelMs: value as never } })).toThrow(
      "Expected `limits.modelMs` to be a number ≥ 1 or 'none', got ",
    );
  });
});

describe('a stalled call', () => {
  const lists: [string, (clock: FakeClock) => Middleware[]][] = [
    ['retry', () => [retry({ attempts: 2, minDelayMs: 1 })]],
    ['fallback', () => [fallback({ models: [scriptedModel(['there'])] })]],
  ];
  it.each(lists)('is worth another try: %s', async (name, list) => {
    const clock = fakeClock();
    const slow = model(clock, ['half']);
    let calls = 0;
    const first: Model = {
      provider: 'test',
      id: 'first',
      stream: (request, options) =>
        name === 'retry' && ++calls === 2
          ? scriptedModel(['there']).stream(request, options)
          : slow.model.stream(request, options),
    };
    const run = new Agent({ model: first, clock, middleware: list(clock) }).run('hi');
    const [minute, result] = await minuteOf(clock, run);
    expect(result).toMatchObject({ status: 'done', text: 'there' });
    expect(minute).toBeLessThanOrEqual(2.5);
  });

  it.each([
    ['outside', (limit: Middleware, other: Middleware) => [limit, other]],
    ['inside', (limit: Middleware, other: Middleware) => [other, limit]],
  ])('a shorter time of timeout() comes first, with retry %s', async (_, order) => {
    const clock = fakeClock();
    const slow = model(clock, ['half']);
    const list = order(timeout({ idleMs: 1000 }), retry({ attempts: 2, minDelayMs: 1 }));
    const [minute, error] = await minuteOf(
      clock,
      new Agent({ model: slow.model, clock, middleware: list }).run('hi'),
    );
    expect(minute).toBeLessThanOrEqual(0.25);
    expect(error).toMatchObject({ code: 'MODEL_TIMEOUT' });
  });

  it.each([
    [{ modelMs: 20 * MINUTE }, drip(MINUTE), 20],
    [{ idleMs: 5 * MINUTE }, ['half'], 5],
    [{ firstTokenMs: 5 * MINUTE }, [], 5],
    // What it does not mention stays as it is.
    [{ idleMs: 5 * MINUTE }, drip(MINUTE), 10],
  ])('a longer time of timeout(%j) is not cut short by the defaults', async (options, pieces, minute) => {
    const clock = fakeClock();
    const agent = new Agent({ model: model(clock, pieces).model, clock, middleware: [timeout(options)] });
    const [ended, error] = await minuteOf(clock, agent.run('hi'));
    expect([ended, (error as { code: string }).code]).toEqual([minute, 'MODEL_TIMEOUT']);
  });

  it('needs no timer per part', async () => {
    const clock = fakeClock();
    let timers = 0;
    const counting = {
      ...clock,
      setTimer(fn: () => void, ms: number) {
        timers++;
        return clock.setTimer(fn, ms);
      },
    };
    const parts = 5000;
    const many: Model = {
      provider: 'test',
      id: 'many',
      async *stream() {
        for (let i = 0; i < parts; i++) {
          if (i % 100 === 0) await new Promise((resolve) => setImmediate(resolve));
          yield { type: 'text', text: 'x' };
        }
        yield { type: 'finish', reason: 'stop' };
      },
    };
    const { text } = await new Agent({ model: many, clock: counting }).run('hi');
    expect(text).toHaveLength(parts);
    expect(timers).toBe(1);
    expect(clock.pending).toBe(0);
  });
});
