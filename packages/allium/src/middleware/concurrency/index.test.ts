import { Agent, defineMiddleware, type GuardPoint, type Model, tool, userMessage } from 'allium';
import { auditLog } from 'allium/middleware/audit-log';
import { type ConcurrencyOptions, concurrency } from 'allium/middleware/concurrency';
import { fallback } from 'allium/middleware/fallback';
import { retry } from 'allium/middleware/retry';
import {
  collect,
  failWith,
  fakeClock,
  hang,
  scriptedModel,
  testMiddleware,
  text,
  toolCalls,
} from 'allium/testing';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';

testMiddleware(({ clock }) => concurrency({ max: 1000, clock }), { name: 'concurrency', describe, it });
for (const scope of ['model', 'tool', 'run'] as const)
  testMiddleware(({ clock }) => concurrency({ max: 1, scope, clock, maxWaitMs: 1e9 }), {
    name: `concurrency of one ${scope}`,
    neutral: ({ clock }) => concurrency({ max: 1000, scope, clock }),
    describe,
    it,
  });

/** Timers are counted, and those of the agent are none of its business. */
const UNTIMED = { modelIdleMs: 'none', modelMs: 'none' } as const;

/** An agent whose model answers when told to, and notes how many calls were under way. */
function setup(options: Partial<ConcurrencyOptions> = {}) {
  const clock = fakeClock();
  const open: (() => void)[] = [];
  const seen = { now: 0, most: 0, order: [] as string[] };
  const model = {
    provider: 'test',
    id: 'gated',
    async *stream({ messages }: { messages: readonly { content: unknown }[] }) {
      seen.order.push(/n\d+/.exec(JSON.stringify(messages.at(-1)?.content))?.[0] ?? '?');
      seen.most = Math.max(seen.most, ++seen.now);
      await new Promise<void>((resolve) => open.push(resolve));
      seen.now--;
      yield { type: 'text' as const, text: 'ok' };
      yield { type: 'finish' as const, reason: 'stop' as const };
    },
  };
  const middleware = concurrency({ max: 2, ...options });
  const agentOf = (tenant?: string) =>
    new Agent({ model, clock, limits: UNTIMED, middleware: [middleware], ...(tenant && { tenant }) });
  /** Lets everything that is ready run, and answers one call after the other until none is left. */
  const drain = async () => {
    for (await clock.advance(0); open.length > 0; await clock.advance(0)) open.shift()!();
  };
  return { agent: agentOf(), agentOf, clock, open, seen, drain };
}

const many = (agent: Agent, count: number) => Array.from({ length: count }, (_, i) => agent.run(`n${i}`));

describe('concurrency', () => {
  it('lets at most the limit of calls run at once, in the order they came', async () => {
    const { agent, seen, drain } = setup();
    const runs = Promise.all(many(agent, 100));
    await drain();
    expect((await runs).every(({ text: answer }) => answer === 'ok')).toBe(true);
    expect(seen.most).toBe(2);
    expect(seen.order).toEqual(Array.from({ length: 100 }, (_, i) => `n${i}`));
  });

  it('counts each tenant by itself, and whatever `key` says', async () => {
    const tenants = setup({ max: 1 });
    const runs = Promise.all(['a', 'b', 'c'].map((tenant) => tenants.agentOf(tenant).run('hi')));
    await tenants.drain();
    await runs;
    expect(tenants.seen.most).toBe(3);
    const all = setup({ max: 1, key: () => 'all' });
    const one = Promise.all(['a', 'b', 'c'].map((tenant) => all.agentOf(tenant).run('hi')));
    await all.drain();
    await one;
    expect(all.seen.most).toBe(1);
  });

  it.each([
    ['tenant', 3],
    ['session', 3],
    ['agent', 1],
  ] as const)('counts by %s, as a file can say it', async (key, most) => {
    const { agentOf, seen, drain } = setup({ max: 1, key });
    const runs = ['a', 'b', 'c'].map((name) =>
      agentOf(key === 'session' ? 'one' : name)
        .session(name)
        .run('hi'),
    );
    await drain();
    await Promise.all(runs);
    expect(seen.most).toBe(most);
  });

  it('gives the place back after an error, a stop and a suspension', async () => {
    const ask = tool({
      name: 'ask',
      description: 'Asks.',
      input: z.object({}),
      execute: (_, ctx) => ctx.suspend({ title: 'May I?' }),
    });
    const stop = tool({
      name: 'stop',
      description: 'Stops.',
      input: z.object({}),
      execute: (_, ctx) => ctx.stop(),
    });
    for (const scope of ['run', 'model', 'tool'] as const) {
      const script = [
        failWith(new Error('oh')),
        toolCalls({ name: 'stop' }),
        toolCalls({ name: 'ask' }),
        text('ok'),
      ];
      const middleware = [concurrency({ max: 1, maxWaitMs: 0, scope })];
      const agent = new Agent({ model: scriptedModel(script), tools: [ask, stop], middleware });
      const ends: string[] = [];
      for (const _ of script)
        ends.push(
          await agent.run('hi').then(
            (result) => result.status,
            ({ code }) => code,
          ),
        );
      expect(ends).toEqual(['MODEL_ERROR', 'stopped', 'suspended', 'done']);
    }
  });

  describe('an abort', () => {
    it('of a call that waits frees its place in the line, and leaves no timer', async () => {
      const { agent, clock, seen, drain } = setup({ max: 1, maxWaitMs: 10_000 });
      const first = agent.run('n0');
      await clock.advance(0);
      const abort = new AbortController();
      const second = agent.run('n1', { signal: abort.signal }).catch((error) => error);
      const third = agent.run('n2');
      await clock.advance(1);
      expect(clock.pending).toBe(2);
      abort.abort();
      expect(await second).toMatchObject({ code: 'ABORTED' });
      expect(clock.pending).toBe(1);
      await drain();
      await Promise.all([first, third]);
      expect(seen.order).toEqual(['n0', 'n2']);
      expect(clock.pending).toBe(0);
    });

    it('of a call under way gives its place to the next', async () => {
      const clock = fakeClock();
      const agent = new Agent({
        model: scriptedModel([hang('Hel'), text('ok')]),
        clock,
        middleware: [concurrency({ max: 1 })],
      });
      const abort = new AbortController();
      const first = agent.run('hi', { signal: abort.signal }).catch(({ code }) => code);
      const second = agent.run('hi');
      await clock.advance(0);
      abort.abort();
      expect([await first, (await second).text]).toEqual(['ABORTED', 'ok']);
    });
  });

  describe('a refusal', () => {
    it('comes after the longest wait', async () => {
      const { agent, clock, drain } = setup({ max: 1, maxWaitMs: 500 });
      const first = agent.run('n0');
      const second = agent.run('n1').catch((error) => error);
      await clock.advance(499);
      expect(clock.pending).toBe(1);
      await clock.advance(1);
      expect((await second).cause).toMatchObject({
        code: 'CONCURRENCY_LIMITED',
        message: 'All 1 places are taken. There was no place within 500 ms.',
        data: { key: '', max: 1, waitedMs: 500 },
      });
      await drain();
      expect((await first).text).toBe('ok');
    });

    it('comes at once with maxWaitMs: 0, and is not retried', async () => {
      const clock = fakeClock();
      const limit = concurrency({ max: 1, maxWaitMs: 0, key: () => 'acme' });
      const model = scriptedModel([hang(), text('never')]);
      const agent = new Agent({ model, clock, limits: UNTIMED, middleware: [retry({ clock }), limit] });
      const abort = new AbortController();
      const first = agent.run('hi', { signal: abort.signal }).catch(() => {});
      await clock.advance(0);
      const error = await agent.run('hi').catch((thrown) => thrown);
      expect(error).toMatchObject({
        code: 'CONCURRENCY_LIMITED',
        cause: { message: 'All 1 places of "acme" are taken.' },
      });
      expect(clock.pending).toBe(0);
      abort.abort();
      await first;
    });

    it('sends a fallback to the next model', async () => {
      const clock = fakeClock();
      const byModel = concurrency({
        max: 1,
        maxWaitMs: 0,
        key: (ctx) => (ctx.seam === 'model' ? ctx.model.id : ''),
      });
      const middleware = [fallback({ models: [scriptedModel(['spare'], { id: 'b' })] }), byModel];
      const agent = new Agent({ model: scriptedModel([hang()], { id: 'a' }), clock, middleware });
      const abort = new AbortController();
      const first = agent.run('hi', { signal: abort.signal }).catch(() => {});
      await clock.advance(0);
      expect((await agent.run('hi')).text).toBe('spare');
      abort.abort();
      await first;
    });
  });

  it('says in an event that a call waits', async () => {
    const { agent, drain } = setup({ max: 1, key: () => 'k' });
    const first = agent.run('n0');
    const second = collect(agent.stream('n1'));
    await drain();
    await first;
    expect((await second).events.find(({ type }) => type === 'custom')).toMatchObject({
      name: 'concurrency',
      data: { key: 'k' },
    });
  });

  it("with scope: 'tool' limits the calls of one batch too", async () => {
    let [now, most] = [0, 0];
    const work = tool({
      name: 'work',
      description: 'Works.',
      input: z.object({}),
      async execute() {
        most = Math.max(most, ++now);
        await fakeClock().advance(0);
        now--;
        return 'done';
      },
    });
    const batch = toolCalls(...['a', 'b', 'c', 'd'].map((id) => ({ name: 'work', id })));
    const middleware = [
      concurrency({ max: 2, scope: 'tool', key: (ctx) => (ctx.seam === 'tool' ? ctx.toolCall.name : '') }),
    ];
    await new Agent({ model: scriptedModel([batch, 'ok']), tools: [work], middleware }).run('hi');
    expect(most).toBe(2);
  });

  it.each(['model', 'run', 'tool'] as const)(
    'does not wait for itself where a tool runs another agent (%s)',
    async (scope) => {
      const middleware = [concurrency({ max: 1, scope })];
      const empty = z.object({});
      const dig = tool({ name: 'dig', description: 'Digs.', input: empty, execute: () => 'dug' });
      const inner = new Agent({
        model: scriptedModel([toolCalls({ name: 'dig' }), 'inner']),
        tools: [dig],
        middleware,
      });
      const delegate = tool({
        name: 'delegate',
        description: 'Delegates.',
        input: empty,
        execute: async (_, ctx) => (await inner.run('go', { parent: ctx })).text,
      });
      const outer = new Agent({
        model: scriptedModel([toolCalls({ name: 'delegate' }), 'outer']),
        tools: [delegate],
        middleware,
      });
      expect((await outer.run('hi')).text).toBe('outer');
    },
  );

  it('twice in one list keeps both limits', async () => {
    const { agentOf, seen, drain } = setup({ max: 3 });
    const agent = agentOf();
    const all = concurrency({ max: 1, scope: 'run' });
    const runs = Promise.all(Array.from({ length: 4 }, () => agent.run('hi', { middleware: [all] })));
    await drain();
    await runs;
    expect(seen.most).toBe(1);
  });

  describe('with a guard that asks a model', () => {
    /** Asks about whatever it judges. */
    const asking = (on: GuardPoint, judge: Model) =>
      defineMiddleware({
        name: 'asking',
        guard: {
          on: [on],
          judge: async (_, { context }) => {
            await context.generate(judge, { messages: [userMessage('May it?')] });
            return { type: 'allow' };
          },
        },
      });
    /** Answers a little later, and notes how many calls of it were under way. */
    const counting = () => {
      const seen = { now: 0, most: 0, calls: 0 };
      const model: Model = {
        provider: 'test',
        id: 'counting',
        async *stream() {
          seen.calls++;
          seen.most = Math.max(seen.most, ++seen.now);
          for (let i = 0; i < 20; i++) await Promise.resolve();
          seen.now--;
          yield { type: 'text', text: 'ok' };
          yield { type: 'finish', reason: 'stop' };
        },
      };
      return { model, seen };
    };

    it.each([
      ['request', 1],
      ['request', 3],
      ['output', 1],
      ['output', 3],
    ] as const)('at %s, every run ends and at most %i calls are under way', async (on, max) => {
      const { model, seen } = counting();
      // A sink inside has the answer judged while the call still has its place.
      const inside = auditLog({ sink() {} });
      const middleware = [asking(on, model), concurrency({ max }), inside];
      const results = await Promise.all(many(new Agent({ model, middleware }), 10));
      expect(results.every(({ text: answer }) => answer === 'ok')).toBe(true);
      expect(seen.calls).toBe(20);
      expect(seen.most).toBe(max);
    });

    it('judges several messages at once in the places that are free, and by turns when none is', async () => {
      const { model, seen } = counting();
      const middleware = [asking('request', model), concurrency({ max: 2 })];
      const input = Array.from({ length: 6 }, (_, i) => userMessage(`n${i}`));
      const runs = [1, 2].map(() => new Agent({ model, middleware }).run(input));
      expect((await Promise.all(runs)).every(({ text: answer }) => answer === 'ok')).toBe(true);
      expect(seen.calls).toBe(14);
      expect(seen.most).toBe(2);
    });

    it('gives the place back when the question fails, and refuses it when nobody may wait', async () => {
      const failing = scriptedModel([failWith(new Error('oh'))], { repeat: true });
      const limit = concurrency({ max: 1, maxWaitMs: 0 });
      const agent = (judge: Model) =>
        new Agent({ model: counting().model, middleware: [asking('request', judge), limit] });
      await expect(agent(failing).run('hi')).rejects.toMatchObject({ code: 'GUARD_FAILED' });
      expect((await agent(counting().model).run('hi')).text).toBe('ok');
      const two = [userMessage('one'), userMessage('two')];
      await expect(agent(counting().model).run(two)).rejects.toMatchObject({
        cause: { code: 'CONCURRENCY_LIMITED' },
      });
      expect((await agent(counting().model).run('hi')).text).toBe('ok');
    });
  });

  it('needs only one place if one instance stands twice in a list', async () => {
    const limit = concurrency({ max: 1 });
    const { text: answer } = await new Agent({
      model: scriptedModel(['ok']),
      middleware: [limit, limit],
    }).run('hi');
    expect(answer).toBe('ok');
  });

  it('counts a call that a layer makes beside its own one', async () => {
    let now = 0;
    let most = 0;
    const model: Model = {
      provider: 'test',
      id: 'beside',
      async *stream() {
        most = Math.max(most, ++now);
        for (let i = 0; i < 20; i++) await Promise.resolve();
        now--;
        yield { type: 'text', text: 'ok' };
        yield { type: 'finish', reason: 'stop' };
      },
    };
    const beside = defineMiddleware({
      name: 'beside',
      async wrapModel(ctx, next) {
        await Promise.all([next(), ctx.generate(model, { messages: 'Beside?' })]);
      },
    });
    await new Agent({ model, middleware: [beside, concurrency({ max: 1 })] }).run('hi');
    expect(most).toBe(1);
  });

  it('outside a retry keeps the place during back-off, and inside gives it back', async () => {
    const down = failWith(Object.assign(new Error('down'), { status: 503 }));
    for (const [place, expected] of [
      ['outside', ['down', 'n0', 'n1']],
      ['inside', ['down', 'n1', 'n0']],
    ] as const) {
      const clock = fakeClock();
      const order: string[] = [];
      const note = (name: string) => {
        order.push(name);
        return name === 'down' ? down : text(name);
      };
      const model = scriptedModel(
        [
          ({ messages }, call) =>
            note(call === 1 ? 'down' : /n\d/.exec(JSON.stringify(messages.at(-1)?.content))![0]),
        ],
        { repeat: true },
      );
      const [limit, again] = [concurrency({ max: 1 }), retry({ clock })];
      const agent = new Agent({
        model,
        clock,
        middleware: place === 'outside' ? [limit, again] : [again, limit],
      });
      const runs = Promise.all([agent.run('n0'), agent.run('n1')]);
      await clock.advance(10_000);
      await runs;
      expect(order).toEqual(expected);
    }
  });

  it('fails the call if the key is not text', async () => {
    const middleware = [
      concurrency({ max: 1, key: () => 5 as never }),
      defineMiddleware({ name: 'other', beforeModel() {} }),
    ];
    await expect(new Agent({ model: scriptedModel([]), middleware }).run('hi')).rejects.toThrow(
      'Expected `key()` to be a function that returns text, got 5.',
    );
  });

  it.each([
    [undefined, 'Expected `options` to be an object with max, key,'],
    [{}, 'Expected `max` to be an integer ≥ 1, got undefined.'],
    [{ max: 0 }, 'Expected `max` to be an integer ≥ 1, got 0.'],
    [
      { max: 1, key: 'user' },
      "Expected `key` to be 'tenant', 'session', 'agent' or a function, got \"user\".",
    ],
    [{ max: 1, maxWaitMs: -1 }, 'Expected `maxWaitMs` to be a number ≥ 0, got -1.'],
    [{ max: 1, scope: 'turn' }, "Expected `scope` to be 'model', 'run' or 'tool', got \"turn\"."],
    [{ max: 1, clock: {} }, 'Expected `clock` to be an object with now(), setTimer(), got {}.'],
    [{ limit: 1 }, 'Unknown option `limit` of concurrency().'],
  ])('refuses %j', (options, message) => {
    expect(() => concurrency(options as never)).toThrow(message);
  });
});
