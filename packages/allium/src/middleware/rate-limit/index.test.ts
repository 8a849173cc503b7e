import { Agent, attribution, tool } from 'allium';
import { type RateLimitOptions, rateLimit, type SharedLimiter } from 'allium/middleware/rate-limit';
import { retry } from 'allium/middleware/retry';
import {
  collect,
  type FakeClock,
  failWith,
  fakeClock,
  scriptedModel,
  testMiddleware,
  text,
  toolCalls,
} from 'allium/testing';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { Windows } from './windows.js';

testMiddleware(({ clock }) => rateLimit({ limit: 1000, perMs: 1000, clock }), {
  name: 'rate-limit',
  describe,
  it,
});
testMiddleware(({ clock }) => rateLimit({ limit: 1, perMs: 1000, clock }), {
  name: 'rate-limit that makes calls wait',
  changes: ['custom-events'],
  describe,
  it,
});
for (const scope of ['tool', 'run'] as const)
  testMiddleware(({ clock }) => rateLimit({ limit: 1, perMs: 1000, scope, clock }), {
    name: `rate-limit of ${scope}s`,
    neutral: ({ clock }) => rateLimit({ limit: 1000, perMs: 1000, scope, clock }),
    describe,
    it,
  });
testMiddleware(({ clock }) => rateLimit({ limiter: remote({ points: 1, perMs: 1000, clock }), clock }), {
  name: 'rate-limit with a shared limiter',
  changes: ['custom-events'],
  describe,
  it,
});

/** What rate-limiter-flexible does: a fixed window, and a plain object as the refusal. */
function remote({ points, perMs, clock }: { points: number; perMs: number; clock: Pick<FakeClock, 'now'> }) {
  const windows = new Map<string, { until: number; used: number }>();
  const asked: string[] = [];
  const limiter: SharedLimiter = {
    async consume(key, cost) {
      await Promise.resolve();
      asked.push(key);
      const now = clock.now();
      let window = windows.get(key);
      if (!window || window.until <= now) window = { until: now + perMs, used: 0 };
      windows.set(key, window);
      window.used += cost;
      if (window.used > points) throw { msBeforeNext: window.until - now, consumedPoints: window.used };
      return { remainingPoints: points - window.used };
    },
  };
  return Object.assign(limiter, { asked });
}

/** An agent whose model notes when it was called and with what. */
function setup(options: RateLimitOptions, clock = fakeClock()) {
  const calls: [number, string][] = [];
  const model = scriptedModel(
    [
      ({ messages }) => {
        const said = JSON.stringify(messages.at(-1)?.content);
        calls.push([clock.now(), /n\d+/.exec(said)?.[0] ?? said]);
        return text('ok');
      },
    ],
    { repeat: true },
  );
  const middleware = rateLimit(options);
  const agentOf = (tenant?: string) =>
    new Agent({ model, clock, middleware: [middleware], ...(tenant && { tenant }) });
  return { agent: agentOf(), agentOf, model, clock, calls };
}

const many = (agent: Agent, count: number) =>
  Promise.all(Array.from({ length: count }, (_, i) => agent.run(`n${i}`)));

describe('rate-limit', () => {
  it('lets calls up to the limit begin at once, and the rest in order when their turn comes', async () => {
    const { agent, clock, calls } = setup({ limit: 2, perMs: 1000 });
    const runs = many(agent, 5);
    await clock.advance(0);
    expect(calls).toEqual([
      [0, 'n0'],
      [0, 'n1'],
    ]);
    await clock.advance(999);
    expect(calls).toHaveLength(2);
    await clock.advance(1001);
    await runs;
    expect(calls).toEqual([
      [0, 'n0'],
      [0, 'n1'],
      [1000, 'n2'],
      [1000, 'n3'],
      [2000, 'n4'],
    ]);
    expect(clock.pending).toBe(0);
  });

  it('slides: never more than the limit in any window', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.integer({ min: 1, max: 4 }),
        fc.array(fc.integer({ min: 0, max: 700 }), { minLength: 1, maxLength: 25 }),
        async (limit, gaps) => {
          const { agent, clock, calls } = setup({ limit, perMs: 1000, maxWaitMs: Number.POSITIVE_INFINITY });
          const runs: Promise<unknown>[] = [];
          for (const [i, gap] of gaps.entries()) {
            await clock.advance(gap);
            runs.push(agent.run(`n${i}`));
          }
          await clock.advance(30_000);
          await Promise.all(runs);
          const times = calls.map(([at]) => at);
          expect(calls.map(([, name]) => name)).toEqual(gaps.map((_, i) => `n${i}`));
          for (let i = limit; i < times.length; i++)
            expect(times[i]! - times[i - limit]!).toBeGreaterThanOrEqual(1000);
        },
      ),
      { numRuns: 30 },
    );
  });

  it('serves 100 concurrent runs with one instance', async () => {
    const { agent, clock, calls } = setup({ limit: 10, perMs: 100 });
    const runs = many(agent, 100);
    await clock.advance(900);
    expect((await runs).every(({ status }) => status === 'done')).toBe(true);
    expect(calls.map(([at]) => at)).toEqual(Array.from({ length: 100 }, (_, i) => Math.floor(i / 10) * 100));
  });

  it('counts each tenant by itself, and whatever `key` says', async () => {
    const tenants = setup({ limit: 1, perMs: 1000 });
    await Promise.all(['a', 'b'].map((tenant) => tenants.agentOf(tenant).run('hi')));
    expect(tenants.calls.map(([at]) => at)).toEqual([0, 0]);
    const one = setup({ limit: 1, perMs: 1000, key: () => 'all' });
    const runs = Promise.all(['a', 'b'].map((tenant) => one.agentOf(tenant).run('hi')));
    await one.clock.advance(1000);
    await runs;
    expect(one.calls.map(([at]) => at)).toEqual([0, 1000]);
  });

  it.each([
    ['tenant', [0, 0, 1000, 1000]],
    ['session', [0, 0, 1000, 1000]],
    ['agent', [0, 1000, 2000, 3000]],
  ] as const)('counts by %s, as a file can say it', async (key, times) => {
    const { agentOf, clock, calls } = setup({ limit: 1, perMs: 1000, key });
    const runs = Promise.all(
      ['a', 'b'].map(async (name) => {
        // Tenants differ with `tenant`, sessions with `session`; the agents have one name.
        const session = agentOf(key === 'session' ? 'one' : name).session(name);
        await session.run('hi');
        await session.run('hi');
      }),
    );
    await clock.advance(4000);
    await runs;
    expect(calls.map(([at]) => at)).toEqual(times);
  });

  it('forgets keys that are no longer in use', async () => {
    const clock = fakeClock();
    const windows = new Windows(1, 10);
    const ask = (key: string) => windows.take({ key, clock, patienceMs: 0 } as never);
    for (let i = 0; i < 5000; i++) {
      expect(ask(`k${i}`)).toBeUndefined();
      if (i % 1000 === 500) await clock.advance(10);
    }
    expect(windows.size).toBeLessThan(2000);
  });

  it('counts every attempt inside a retry, and one call outside of it', async () => {
    const down = failWith(Object.assign(new Error('down'), { status: 503 }));
    for (const [place, expected] of [
      ['inside', [0, 10_000]],
      ['outside', [0, 500]],
    ] as const) {
      const clock = fakeClock();
      const times: number[] = [];
      const noting = <T>(step: T): T => {
        times.push(clock.now());
        return step;
      };
      const model = scriptedModel([down, text('ok')].map((step) => () => noting(step)));
      const [limit, again] = [rateLimit({ limit: 1, perMs: 10_000 }), retry({ clock, jitter: 'none' })];
      const run = new Agent({
        model,
        clock,
        middleware: place === 'inside' ? [again, limit] : [limit, again],
      }).run('hi');
      await clock.advance(20_000);
      await run;
      expect(times).toEqual(expected);
    }
  });

  it('says in an event that a call waits', async () => {
    const { agent, clock } = setup({ limit: 1, perMs: 1000, key: () => 'k' });
    await agent.run('n0');
    const run = collect(agent.stream('n1'));
    await clock.advance(1000);
    const event = (await run).events.find(({ type }) => type === 'custom');
    expect(event).toMatchObject({ name: 'rate-limit', by: 'rate-limit', data: { key: 'k', waitMs: 1000 } });
  });

  describe('an abort', () => {
    it('ends the wait at once, frees the place and leaves no timer', async () => {
      const { agent, clock, calls } = setup({ limit: 1, perMs: 1000 });
      await agent.run('n0');
      const abort = new AbortController();
      const aborted = agent.run('n1', { signal: abort.signal }).catch((error) => error);
      await clock.advance(100);
      const next = agent.run('n2');
      await clock.advance(100);
      abort.abort();
      expect(await aborted).toMatchObject({ code: 'ABORTED' });
      await clock.advance(800);
      await next;
      expect(calls).toEqual([
        [0, 'n0'],
        [1000, 'n2'],
      ]);
      expect(clock.pending).toBe(0);
    });

    it('of the only one that waits leaves no timer', async () => {
      const { agent, clock } = setup({ limit: 1, perMs: 1000 });
      await agent.run('n0');
      const abort = new AbortController();
      const run = agent.run('n1', { signal: abort.signal }).catch((error) => error);
      await clock.advance(1);
      expect(clock.pending).toBe(1);
      abort.abort();
      await run;
      expect(clock.pending).toBe(0);
    });

    it('in a wait between two attempts of a retry makes no further call', async () => {
      const clock = fakeClock();
      const model = scriptedModel([
        failWith(Object.assign(new Error('down'), { status: 503 }), 'Hel'),
        text('never'),
      ]);
      const middleware = [retry({ clock, jitter: 'none' }), rateLimit({ limit: 1, perMs: 10_000 })];
      const abort = new AbortController();
      const run = new Agent({ model, clock, middleware })
        .run('hi', { signal: abort.signal })
        .catch((error) => error);
      await clock.advance(600);
      expect(clock.pending).toBe(1);
      abort.abort();
      expect(await run).toMatchObject({ code: 'ABORTED' });
      expect(clock.pending).toBe(0);
      await clock.advance(60_000);
      expect(model.requests).toHaveLength(1);
    });
  });

  describe('a refusal', () => {
    it("comes at once with mode: 'reject', and says when to come back", async () => {
      const { agent, clock, model } = setup({ limit: 1, perMs: 1000, mode: 'reject', key: () => 'acme' });
      await agent.run('n0');
      await clock.advance(200);
      const error = await agent.run('n1').catch((thrown) => thrown);
      expect(error).toMatchObject({ code: 'RATE_LIMITED' });
      expect(error.cause).toMatchObject({
        message: 'The rate limit of "acme" is used up. Try again in 800 ms.',
        data: { key: 'acme', retryAfterMs: 800 },
      });
      expect(attribution(error.cause)).toMatchObject({ middleware: 'rate-limit' });
      expect(model.requests).toHaveLength(1);
      expect(clock.pending).toBe(0);
      await clock.advance(800);
      expect((await agent.run('n2')).text).toBe('ok');
    });

    it('is not retried by default, but can be after as long as it says', async () => {
      for (const [retryOn, calls] of [
        [undefined, 1],
        [() => true, 2],
      ] as const) {
        const clock = fakeClock();
        const model = scriptedModel(['one', 'two']);
        const middleware = [
          retry({ clock, ...(retryOn && { retryOn }) }),
          rateLimit({ limit: 1, perMs: 1000, mode: 'reject' }),
        ];
        const agent = new Agent({ model, clock, middleware });
        await agent.run('hi');
        const run = agent.run('hi').catch(() => {});
        await clock.advance(1000);
        await run;
        expect(model.requests).toHaveLength(calls);
      }
    });

    it('comes at once for a call that would have to wait too long', async () => {
      const { agent, clock } = setup({ limit: 1, perMs: 1000, maxWaitMs: 2000 });
      const runs = Promise.allSettled(Array.from({ length: 5 }, () => agent.run('hi')));
      await clock.advance(0);
      expect(clock.pending).toBe(1);
      await clock.advance(2000);
      const ends = (await runs).map((run) =>
        run.status === 'fulfilled' ? 'ok' : run.reason.cause.data.retryAfterMs,
      );
      expect(ends).toEqual(['ok', 'ok', 'ok', 3000, 3000]);
    });
  });

  describe('scope', () => {
    it("'tool' counts tool calls, and a refusal is told to the model", async () => {
      const clock = fakeClock();
      const look = tool({ name: 'look', description: 'Looks.', input: z.object({}), execute: () => 'seen' });
      const model = scriptedModel([toolCalls({ name: 'look', id: 'a' }, { name: 'look', id: 'b' }), 'done']);
      const byTool = rateLimit({
        limit: 1,
        perMs: 1000,
        scope: 'tool',
        mode: 'reject',
        key: (ctx) => (ctx.seam === 'tool' ? ctx.toolCall.name : ''),
      });
      const { messages } = await new Agent({ model, clock, tools: [look], middleware: [byTool] }).run('hi');
      const results = messages.filter(({ role }) => role === 'tool');
      expect(results.map((result) => 'isError' in result && result.isError)).toEqual([false, true]);
      expect(JSON.stringify(results[1]?.content)).toContain('Try again in 1000 ms.');
    });

    it("'run' counts runs", async () => {
      const { agent, clock, calls } = setup({ limit: 1, perMs: 1000, scope: 'run' });
      const runs = many(agent, 2);
      await clock.advance(1000);
      await runs;
      expect(calls.map(([at]) => at)).toEqual([0, 1000]);
    });
  });

  it('twice in one list keeps both limits', async () => {
    const clock = fakeClock();
    const times: number[] = [];
    const noting = <T>(step: T): T => {
      times.push(clock.now());
      return step;
    };
    const model = scriptedModel([() => noting('ok')], { repeat: true });
    const middleware = [rateLimit({ limit: 2, perMs: 100 }), rateLimit({ limit: 3, perMs: 1000 })];
    const runs = many(new Agent({ model, clock, middleware }), 4);
    await clock.advance(1000);
    await runs;
    expect(times).toEqual([0, 0, 100, 1000]);
  });

  describe('limiter', () => {
    it('is asked with the key, and waited for as long as it says, in order', async () => {
      const clock = fakeClock();
      const limiter = remote({ points: 2, perMs: 1000, clock });
      const { agentOf, calls } = setup({ limiter }, clock);
      const runs = many(agentOf('acme'), 5);
      await clock.advance(2000);
      await runs;
      expect(calls).toEqual([
        [0, 'n0'],
        [0, 'n1'],
        [1000, 'n2'],
        [1000, 'n3'],
        [2000, 'n4'],
      ]);
      expect(new Set(limiter.asked)).toEqual(new Set(['acme']));
      expect(clock.pending).toBe(0);
    });

    it('holds for two instances together', async () => {
      const clock = fakeClock();
      const limiter = remote({ points: 2, perMs: 1000, clock });
      const [one, other] = [setup({ limiter }, clock), setup({ limiter }, clock)];
      const runs = Promise.all([many(one.agent, 3), many(other.agent, 3)]);
      await clock.advance(5000);
      await runs;
      const times = [...one.calls, ...other.calls].map(([at]) => at).sort((a, b) => a - b);
      expect(times).toEqual([0, 0, 1000, 1000, 2000, 2000]);
    });

    it('refuses at once, or when the wait would be too long', async () => {
      for (const more of [{ mode: 'reject' }, { maxWaitMs: 999 }] as const) {
        const clock = fakeClock();
        const { agent } = setup({ limiter: remote({ points: 1, perMs: 1000, clock }), ...more }, clock);
        await agent.run('hi');
        await expect(agent.run('hi')).rejects.toMatchObject({
          code: 'RATE_LIMITED',
          cause: { data: { retryAfterMs: 1000 } },
        });
        expect(clock.pending).toBe(0);
      }
    });

    it('refuses calls behind the first when their longest wait is over', async () => {
      const clock = fakeClock();
      const { agent } = setup({ limiter: remote({ points: 1, perMs: 1000, clock }), maxWaitMs: 1500 }, clock);
      const runs = Promise.allSettled(Array.from({ length: 3 }, () => agent.run('hi')));
      await clock.advance(3000);
      expect((await runs).map(({ status }) => status)).toEqual(['fulfilled', 'fulfilled', 'rejected']);
      expect(clock.pending).toBe(0);
    });

    it('does not keep an aborted run waiting, in the line, in a wait or in the network', async () => {
      const clock = fakeClock();
      const limiter = remote({ points: 1, perMs: 1000, clock });
      for (const given of [limiter, { consume: () => new Promise(() => {}) }]) {
        const { agent } = setup({ limiter: given }, clock);
        const abort = new AbortController();
        const runs = Promise.allSettled(
          Array.from({ length: 3 }, () => agent.run('hi', { signal: abort.signal })),
        );
        await clock.advance(1);
        abort.abort();
        const codes = (await runs).map((run) => (run.status === 'rejected' ? run.reason.code : 'done'));
        expect(codes.filter((code) => code === 'ABORTED').length).toBeGreaterThanOrEqual(2);
        expect(clock.pending).toBe(0);
      }
    });

    it('fails the call when it fails itself: nothing begins uncounted', async () => {
      const lost = new Error('connection lost');
      const { agent, model } = setup({ limiter: { consume: () => Promise.reject(lost) } });
      await expect(agent.run('hi')).rejects.toMatchObject({ cause: lost });
      expect(model.requests).toHaveLength(0);
    });
  });

  it('counts a run once, however often it is suspended and resumed', async () => {
    const clock = fakeClock();
    const ask = tool({
      name: 'ask',
      description: 'Asks.',
      input: z.object({}),
      execute: async (_, ctx) => (await ctx.suspend({})).type,
    });
    const model = scriptedModel([toolCalls({ name: 'ask' }), toolCalls({ name: 'ask' }), text('done')]);
    const middleware = [rateLimit({ limit: 1, perMs: 1000, mode: 'reject', scope: 'run', clock })];
    const agent = new Agent({ model, clock, tools: [ask], middleware });
    const session = agent.session('s');
    let result = await session.run('hi');
    while (result.status === 'suspended')
      result = await session.resume({ answers: { [result.pending[0]!.id]: { type: 'approve' } } });
    expect(result.status).toBe('done');
    expect(model.requests).toHaveLength(3);
    await expect(agent.run('another')).rejects.toMatchObject({ code: 'RATE_LIMITED' });
  });

  it('fails the call if the key is not text', async () => {
    const { agent } = setup({ limit: 1, perMs: 1, key: () => undefined as never });
    await expect(agent.run('hi')).rejects.toThrow(
      'Expected `key()` to be a function that returns text, got undefined.',
    );
  });

  it.each([
    [undefined, 'Expected `options` to be an object with limit, perMs,'],
    [{}, 'Expected `limit` to be an integer ≥ 1, got undefined.'],
    [
      { perMs: 1000 },
      'Expected `limit` to be an integer ≥ 1, because `perMs` means nothing without it, got undefined.',
    ],
    [
      { limit: 5 },
      'Expected `perMs` to be a finite number ≥ 1, because `limit` means nothing without it, got undefined.',
    ],
    [{ limit: 0, perMs: 1000 }, 'Expected `limit` to be an integer ≥ 1, got 0.'],
    [{ limit: 1, perMs: 0 }, 'Expected `perMs` to be a finite number ≥ 1, got 0.'],
    [{ limit: 1, perMs: 1, mode: 'drop' }, "Expected `mode` to be 'wait' or 'reject', got \"drop\"."],
    [
      { limit: 1, perMs: 1, mode: 'reject', maxWaitMs: 5 },
      "Expected `maxWaitMs` to be left out with mode: 'reject', which never waits, got 5.",
    ],
    [
      { limit: 1, perMs: 1, scope: 'agent' },
      "Expected `scope` to be 'model', 'run' or 'tool', got \"agent\".",
    ],
    [
      { limit: 1, perMs: 1, key: 'user' },
      "Expected `key` to be 'tenant', 'session', 'agent' or a function, got \"user\".",
    ],
    [{ limiter: {} }, 'Expected `limiter` to be an object with consume(), got {}.'],
    [
      { limiter: { consume() {} }, limit: 5 },
      'Expected `limit` to be left out when there is a `limiter`, which has its own, got 5.',
    ],
    [{ limit: 1, perMs: 1, maxWaitMs: -1 }, 'Expected `maxWaitMs` to be a number ≥ 0, got -1.'],
    [{ limits: 5 }, 'Unknown option `limits` of rateLimit(). Did you mean `limit`?'],
  ])('refuses %j', (options, message) => {
    expect(() => rateLimit(options as never)).toThrow(message);
  });
});
