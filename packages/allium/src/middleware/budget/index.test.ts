import {
  Agent,
  assistantMessage,
  defineMiddleware,
  type Model,
  type ModelPart,
  memoryStore,
  type Price,
  textOf,
  tool,
  type Usage,
} from 'allium';
import { type BudgetMap, type BudgetOptions, type BudgetStore, budget } from 'allium/middleware/budget';
import { contextEditing } from 'allium/middleware/context-editing';
import { historyTruncator } from 'allium/middleware/history-truncator';
import { retry } from 'allium/middleware/retry';
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

const PRICE: Price = { input: 1, output: 2 };
/** An answer that says it used this many tokens of output, and none of input. */
const uses = (outputTokens: number) => text('ok', { inputTokens: 0, outputTokens });

function setup(
  script: readonly Script[],
  options: BudgetOptions,
  { price, more = [] }: { price?: Price; more?: object[] } = {},
) {
  const model = scriptedModel(script, { repeat: true, ...(price && { price }) });
  const store = memoryStore();
  const make = () => new Agent({ model, store, middleware: [budget(options), ...more] as never });
  return { model, agent: make(), make };
}

/** A store as another process would see it: atomic, and slow. */
function sharedStore(values = new Map<string, number>()): BudgetStore & { values: Map<string, number> } {
  return {
    values,
    async increment(key, by) {
      await new Promise((resolve) => setImmediate(resolve));
      const next = (values.get(key) ?? 0) + by;
      values.set(key, next);
      return next;
    },
  };
}

/** A model that answers no call before so many have come or, as `release` says, are over. */
function waitingModel(calls: number): { readonly model: Model; readonly release: () => void } {
  let open = () => {};
  const gate = new Promise<void>((resolve) => {
    open = resolve;
  });
  const release = () => {
    if (--calls === 0) open();
  };
  const model: Model = {
    provider: 'test',
    id: 'waiting',
    price: PRICE,
    async *stream() {
      release();
      await gate;
      yield* text('ok', { inputTokens: 1, outputTokens: 1 }).parts as ModelPart[];
    },
  };
  return { model, release };
}

for (const per of ['run', 'session', 'tenant'] as const) {
  testMiddleware(() => budget({ tokens: 1e9, per }), {
    name: `budget per ${per}`,
    changes: ['settings', 'state'],
    describe,
    it,
  });
}
testMiddleware(
  () => budget({ tokens: 1e9, usd: 1e9, priceOf: () => PRICE, per: () => 'all', store: sharedStore() }),
  {
    name: 'budget in a store',
    changes: ['settings'],
    describe,
    it,
  },
);
testMiddleware(() => budget({ tokens: 5 }), {
  name: 'budget that is too small',
  neutral: () => budget({ tokens: 1e9 }),
  changes: ['settings', 'state'],
  handles: ['model-errors', 'tool-errors'],
  skip: {
    'control-signals': 'its own stop comes first, so the model and the tools of the kit are never called',
  },
  describe,
  it,
});

describe('budget', () => {
  it('ends a run before a call that does not fit', async () => {
    const { agent, model } = setup([uses(600)], { tokens: 1500, per: 'session' });
    const session = agent.session('s');
    expect((await session.run('one')).status).toBe('done');
    expect((await session.run('two')).status).toBe('done');
    const result = await session.run('three');
    expect(result).toMatchObject({ status: 'stopped', stop: { reason: 'max_tokens', by: 'budget' } });
    expect(result.stop.message).toMatch(
      /^About \d+ input tokens are needed, and 300 of the budget of 1500 are left\.$/,
    );
    expect(model.requests).toHaveLength(2);
  });

  it('a rewind of the session gives nothing back', async () => {
    const { make, model } = setup([uses(600)], { tokens: 1000, per: 'session' });
    const statuses: string[] = [];
    for (let i = 0; i < 3; i++) {
      const session = make().session('s');
      const { status, messages } = await session.run('go');
      statuses.push(status);
      await session.rewind({ before: messages[0]!.id });
    }
    expect(statuses).toEqual(['done', 'done', 'stopped']);
    expect(model.requests).toHaveLength(2);
  });

  it('stops at once when there is nothing to spend', async () => {
    for (const options of [{ tokens: 0 }, { usd: 0, priceOf: () => PRICE }]) {
      const { agent, model } = setup(['hi'], options);
      expect((await agent.run('go')).status).toBe('stopped');
      expect(model.requests).toHaveLength(0);
    }
  });

  it('limits dollars', async () => {
    const { agent, model } = setup([uses(400_000)], { usd: 1.8, per: 'session' }, { price: PRICE });
    const session = agent.session('s');
    await session.run('one');
    expect((await session.run('two')).status).toBe('done');
    expect(await session.run('three')).toMatchObject({ status: 'stopped', stop: { reason: 'max_cost' } });
    expect(model.requests).toHaveLength(2);
  });

  it('sends what is affordable as the limit of the output', async () => {
    const { agent, model } = setup([uses(1)], { tokens: 500 });
    await agent.run('x'.repeat(392));
    expect(model.requests[0]!.settings.maxOutputTokens).toBe(400);
    const dollars = setup([uses(1)], { usd: 0.001 }, { price: PRICE });
    await dollars.agent.run('x'.repeat(392));
    expect(dollars.model.requests[0]!.settings.maxOutputTokens).toBe(450);
  });

  it('sends no limit where the output costs nothing', async () => {
    const { agent, model } = setup([uses(1000)], { usd: 1 }, { price: { input: 1, output: 0 } });
    expect((await agent.run('hi')).status).toBe('done');
    expect(model.requests[0]!.settings).toEqual({});
  });

  it('keeps a smaller limit of the output, and the other settings', async () => {
    const model = scriptedModel([uses(1)]);
    const settings = { maxOutputTokens: 10, temperature: 0 };
    await new Agent({ model, settings, middleware: [budget({ tokens: 500 })] }).run('hi');
    expect(model.requests[0]!.settings).toEqual(settings);
  });

  it('sends the same limit while there is plenty', async () => {
    const { agent, model } = setup([uses(1000)], { tokens: 1e6, per: 'session' });
    const session = agent.session('s');
    await session.run('one');
    await session.run('two');
    expect(model.requests.map(({ settings }) => settings.maxOutputTokens)).toEqual([262_144, 262_144]);
  });

  it('does not size a shortened request by what a longer one used', async () => {
    const long = 'x'.repeat(40_000);
    const read = tool({ name: 'read', description: 'Reads.', input: z.object({}), execute: () => long });
    const model = scriptedModel(
      [
        ({ messages }) => {
          const chars = JSON.stringify(messages.map(({ content }) => content)).length;
          const usage = { inputTokens: Math.ceil(chars / 4), outputTokens: 5 };
          if (messages.length > 1) return text('ok', usage);
          return { parts: [...toolCalls({ name: 'read' }).parts.slice(0, -1), finish(usage)] };
        },
      ],
      { repeat: true },
    );
    const finish = (usage: object) => ({ type: 'finish' as const, reason: 'tool-calls' as const, usage });
    for (const shortens of [
      historyTruncator({ maxMessages: 2 }),
      contextEditing({ clearToolResultsAfterTokens: 100, keep: 0 }),
    ]) {
      const limited = budget({ tokens: 15_000, per: 'session' });
      const store = memoryStore();
      const options = { model, store, tools: [read] };
      const whole = new Agent({ ...options, middleware: [limited] }).session('s');
      const shortened = new Agent({ ...options, middleware: [shortens, limited] }).session('s');
      await whole.run('go');
      expect((await whole.run('on')).stop.reason).toBe('max_tokens');
      expect((await shortened.run('on')).status).toBe('done');
    }
  });

  it('returns unused reservations', async () => {
    const { agent } = setup([uses(1)], { tokens: 2000, per: 'session' });
    const session = agent.session('s');
    for (let i = 0; i < 20; i++) expect((await session.run('x')).status).toBe('done');
  });

  it('holds to both limits where both are given', async () => {
    const { agent } = setup([uses(500)], { usd: 100, tokens: 600, per: 'session' }, { price: PRICE });
    const session = agent.session('s');
    await session.run('one');
    await session.run('two');
    expect((await session.run('three')).stop.reason).toBe('max_tokens');
  });

  it('needs prices made of numbers ≥ 0, and a priceOf that does not throw', async () => {
    for (const priceOf of [
      () => ({ input: -1, output: 1 }),
      () => ({ input: 1 }),
      () => {
        throw new Error('no such row');
      },
    ]) {
      const { agent, model } = setup(['hi'], { usd: 1, priceOf: priceOf as never });
      await expect(agent.run('go')).rejects.toMatchObject({ code: 'INVALID_OPTION' });
      expect(model.requests).toHaveLength(0);
    }
  });
  it('needs prices for dollars, before the first call', async () => {
    const { agent, model } = setup(['hi'], { usd: 1 });
    await expect(agent.run('go')).rejects.toMatchObject({ code: 'PRICE_UNKNOWN' });
    expect(model.requests).toHaveLength(0);
    expect((await setup(['hi'], { usd: 1, priceOf: () => PRICE }).agent.run('go')).status).toBe('done');
  });

  it('counts attempts that broke off, and nothing for answers of a cache', async () => {
    const clock = fakeClock();
    const store = new Map<string, number>();
    const broken = failWith(Object.assign(new Error('cut'), { status: 503 }), 'x'.repeat(4000));
    const { agent } = setup(
      [broken, uses(5)],
      { tokens: 1e6, per: 'tenant', store },
      { more: [retry({ clock })] },
    );
    const run = agent.run('go');
    await clock.advance(10_000);
    await run;
    expect(store.get('budget:tenant::tokens')).toBeGreaterThan(1000);
    const cached = defineMiddleware({
      name: 'cached',
      beforeModel(ctx) {
        ctx.response = assistantMessage('stored', { usage: { ...ctx.usage, totalTokens: 1e5 } });
      },
    });
    const empty = sharedStore();
    await setup([], { tokens: 1e6, per: 'tenant', store: empty }, { more: [cached] }).agent.run('go');
    expect(empty.values.get('budget:tenant::tokens')).toBe(0);
  });

  it('counts an estimate for answers of a model that does not say what it used', async () => {
    const { agent } = setup([text('x'.repeat(4000), {})], { tokens: 1500, per: 'session' });
    const session = agent.session('s');
    expect((await session.run('one')).usage.outputTokens).toBe(1000);
    expect((await session.run('two')).stop.reason).toBe('max_tokens');
  });

  it('gives back everything when a call fails or is aborted', async () => {
    const store = sharedStore();
    const options = { tokens: 1e6, per: 'tenant', store } as const;
    await setup([failWith(new Error('no'))], options)
      .agent.run('go')
      .catch(() => {});
    const { agent, model } = setup([hang()], options);
    const abort = new AbortController();
    const run = agent.run('go', { signal: abort.signal }).catch((error) => error);
    while (model.requests.length === 0) await new Promise((resolve) => setImmediate(resolve));
    expect(store.values.get('budget:tenant::tokens')).toBeGreaterThan(0);
    abort.abort();
    expect(await run).toMatchObject({ code: 'ABORTED' });
    expect(store.values.get('budget:tenant::tokens')).toBe(0);
  });

  it.each(['tokens', 'usd'])('sets nothing aside if the store fails for its %s only', async (broken) => {
    const store = sharedStore();
    let fails = true;
    const flaky: BudgetStore = {
      async increment(key, by) {
        const sum = await store.increment(key, 0);
        if (fails && by > 0 && key.endsWith(broken)) throw new Error('MOVED');
        return by === 0 ? sum : store.increment(key, by);
      },
    };
    const options = { tokens: 1e6, usd: 1, per: 'tenant', store: flaky } as const;
    const { agent } = setup([text('ok', { inputTokens: 0, outputTokens: 1 })], options, { price: PRICE });
    await expect(agent.run('go')).rejects.toThrow('MOVED');
    await new Promise((resolve) => setTimeout(resolve, 5));
    expect([...store.values.values()]).toEqual([0, 0]);
    fails = false;
    expect((await agent.run('go')).status).toBe('done');
  });

  it('keeps the amounts of a session over processes, and of a run over resumes', async () => {
    const { make } = setup([uses(600)], { tokens: 1000, per: 'session' });
    await make().session('s').run('one');
    await make().session('s').run('two');
    expect((await make().session('s').run('three')).status).toBe('stopped');

    const ask = tool({
      name: 'ask',
      description: 'Asks.',
      input: z.object({}),
      execute: async (_, ctx) => (await ctx.suspend({})).type,
    });
    for (const per of ['run', 'session'] as const) {
      const step = toolCalls({ name: 'ask' });
      const model = scriptedModel([
        {
          parts: step.parts.with(-1, { type: 'finish', reason: 'tool-calls', usage: { outputTokens: 1000 } }),
        },
        uses(1),
      ]);
      const store = memoryStore();
      const fresh = () =>
        new Agent({ model, store, tools: [ask], middleware: [budget({ tokens: 1200, per })] });
      const { pending } = await fresh().session('s').run('go');
      const answers = { [pending[0]!.id]: { type: 'approve' as const } };
      expect((await fresh().session('s').resume({ answers })).stop.reason).toBe('max_tokens');
    }
  });

  it('estimates counts that a model leaves out', async () => {
    const cases: [usage: Partial<Usage>, tokens: number, usd: number][] = [
      [{ inputTokens: 4 }, 1004, 4e-6 + 2000e-6],
      [{ outputTokens: 7 }, 107, 100e-6 + 14e-6],
      [{ totalTokens: 1200 }, 1200, 200e-6 + 2000e-6],
    ];
    for (const [usage, tokens, usd] of cases) {
      const store = sharedStore();
      const answer = chunks('x'.repeat(4000), { type: 'finish', reason: 'stop', usage });
      const { agent } = setup([answer], { tokens: 9000, usd: 9, store, per: 'tenant' }, { price: PRICE });
      await agent.run('x'.repeat(392));
      const [booked, paid] = [...store.values].map(([, value]) => value);
      expect(booked).toBe(tokens);
      expect(paid).toBeCloseTo(usd, 12);
    }
  });

  it('does not count a resumed run twice', async () => {
    const ask = tool({
      name: 'ask',
      description: 'Asks.',
      input: z.object({}),
      execute: async (_, ctx) => (await ctx.suspend({})).type,
    });
    const step = toolCalls({ name: 'ask' });
    const model = scriptedModel([
      { parts: step.parts.with(-1, { type: 'finish', reason: 'tool-calls', usage: { outputTokens: 400 } }) },
      uses(1),
    ]);
    const agent = new Agent({ model, tools: [ask], middleware: [budget({ tokens: 1500, per: 'session' })] });
    const session = agent.session('s');
    const { pending } = await session.run('go');
    expect((await session.resume({ answers: { [pending[0]!.id]: { type: 'approve' } } })).status).toBe(
      'done',
    );
  });

  it('keeps tenants apart, and accounts that a function names', async () => {
    const { agent } = setup([uses(900)], { tokens: 1000, per: 'tenant' });
    const statuses = [];
    for (const tenant of ['a', 'a', 'a', 'b']) statuses.push((await agent.run('go', { tenant })).status);
    expect(statuses).toEqual(['done', 'done', 'stopped', 'done']);
    const named = setup([uses(900)], { tokens: 1000, per: (ctx) => String(ctx.runMetadata.plan) });
    const outcome = async (plan: string) => (await named.agent.run('go', { metadata: { plan } })).status;
    expect([
      await outcome('free'),
      await outcome('free'),
      await outcome('free'),
      await outcome('paid'),
    ]).toEqual(['done', 'done', 'stopped', 'done']);
  });

  it.each<[string, () => BudgetOptions['store']]>([
    ['nothing but memory', () => undefined],
    ['a Map', () => new Map()],
    ['a store that increments', () => sharedStore()],
    [
      'a store that only gets and sets, slowly',
      () => {
        const map = new Map<string, number>();
        const slow = () => Promise.resolve();
        return {
          get: (key) => slow().then(() => map.get(key)),
          set: (key, value) => slow().then(() => map.set(key, value)),
        };
      },
    ],
  ])('holds over 100 concurrent runs of one tenant with %s', async (_, store) => {
    // Each answer is as long as it may be.
    const model = scriptedModel(
      [({ settings }) => text('ok', { inputTokens: 1, outputTokens: settings.maxOutputTokens })],
      { repeat: true },
    );
    const agent = new Agent({
      model,
      middleware: [budget({ tokens: 20_000, per: 'tenant', store: store() })],
    });
    const results = await Promise.all(Array.from({ length: 100 }, () => agent.run('go', { tenant: 't' })));
    const spent = results.reduce((sum, { usage }) => sum + usage.totalTokens, 0);
    expect(spent).toBeLessThanOrEqual(20_000);
    expect(spent).toBeGreaterThan(10_000);
    expect(results.some(({ status }) => status === 'stopped')).toBe(true);
  });

  it.each(['session', 'tenant'] as const)(
    'lets calls run side by side while there is plenty, with a slow store (%s)',
    async (per) => {
      const helper = scriptedModel([uses(1)], { repeat: true });
      const asks = defineMiddleware({
        name: 'asks',
        beforeTool: async (ctx) => void (await ctx.generate(helper, { messages: 'how?' })),
      });
      const look = tool({ name: 'look', description: 'Looks.', input: z.object({}), execute: () => 'seen' });
      const calls = Array.from({ length: 20 }, (_, i) => ({ name: 'look', id: `c${i}` }));
      const agent = new Agent({
        model: scriptedModel([toolCalls(...calls), text('done')]),
        tools: [look],
        middleware: [asks, budget({ tokens: 1e6, per, store: sharedStore() })],
      });
      expect((await agent.run('go')).status).toBe('done');
      expect(helper.requests).toHaveLength(20);
    },
  );

  it.each<[string, () => BudgetOptions]>([
    ['in memory', () => ({ tokens: 1e6, per: 'tenant' })],
    ['in a store', () => ({ tokens: 1e6, per: 'tenant', store: sharedStore() })],
    ['in dollars', () => ({ usd: 1, per: () => 'all', store: sharedStore() })],
  ])('finds room for a hundred runs of which none has ended, %s', async (_, options) => {
    const { model, release } = waitingModel(100);
    const agent = new Agent({ model, middleware: [budget(options())] });
    const ended = Array.from({ length: 100 }, () => agent.run('go', { tenant: 't' }).finally(release));
    const results = await Promise.all(ended);
    expect(results.filter(({ status }) => status === 'done')).toHaveLength(100);
  });

  it.each(['run', 'session'] as const)(
    'finds room for a hundred calls within one %s of which none has ended',
    async (per) => {
      const { model, release } = waitingModel(100);
      const asks = defineMiddleware({
        name: 'asks',
        async beforeModel(ctx) {
          const ask = () => ctx.generate(model, { messages: 'how?' }).finally(release);
          await Promise.all(Array.from({ length: 100 }, ask));
        },
      });
      const agent = new Agent({
        model: scriptedModel([text('done')]),
        middleware: [asks, budget({ tokens: 1e6, per })],
      });
      expect((await agent.run('go')).status).toBe('done');
    },
  );

  it('grants no smaller shares after other calls have ended, however they ended', async () => {
    const { agent, model } = setup([uses(1), failWith(new Error('no')), uses(1)], {
      tokens: 1e6,
      per: 'tenant',
      store: sharedStore(),
    });
    for (const message of ['go', 'go', 'far too long '.repeat(500_000), 'go'])
      await agent.run(message, { tenant: 't' }).catch(() => {});
    expect(model.requests.map(({ settings }) => settings.maxOutputTokens)).toEqual([131072, 131072, 131072]);
  });

  it('holds for two processes that share a store', async () => {
    const values = new Map<string, number>();
    const make = () => setup([uses(900)], { tokens: 2000, per: 'tenant', store: sharedStore(values) }).agent;
    const [one, two] = [make(), make()];
    const statuses = [];
    for (const agent of [one, two, one, two]) statuses.push((await agent.run('go', { tenant: 't' })).status);
    expect(statuses).toEqual(['done', 'done', 'done', 'stopped']);
  });

  it('is shared with sub-agents that have the same instance', async () => {
    const shared = budget({ tokens: 3000 });
    const child = new Agent({ model: scriptedModel([uses(1000)], { repeat: true }), middleware: [shared] });
    const delegate = tool({
      name: 'delegate',
      description: 'Delegates.',
      input: z.object({}),
      execute: async (_, ctx) => (await child.run('do it', { parent: ctx })).stop.reason,
    });
    const calls = toolCalls(...['a', 'b', 'c', 'd', 'e', 'f'].map((id) => ({ name: 'delegate', id })));
    const agent = new Agent({
      model: scriptedModel([calls, text('done')]),
      tools: [{ ...delegate, sequential: true }],
      middleware: [shared],
    });
    const result = await agent.run('go');
    const reasons = result.messages.flatMap((message) =>
      message.role === 'tool' ? [(message.content[0] as { text: string }).text] : [],
    );
    expect(reasons.slice(0, 3)).toEqual(['final', 'final', 'final']);
    expect(reasons.slice(4)).toEqual(['max_tokens', 'max_tokens']);
    expect(result.stop.reason).toBe('max_tokens');
  });

  it('counts sub-agents that do not have it once they are done', async () => {
    const child = new Agent({ model: scriptedModel([uses(5000)]) });
    const delegate = tool({
      name: 'delegate',
      description: 'Delegates.',
      input: z.object({}),
      execute: async (_, ctx) => (await child.run('do it', { parent: ctx })).text,
    });
    const model = scriptedModel([toolCalls({ name: 'delegate' }), text('never')]);
    const agent = new Agent({ model, tools: [delegate], middleware: [budget({ tokens: 3000 })] });
    expect((await agent.run('go')).stop.reason).toBe('max_tokens');
    expect(model.requests).toHaveLength(1);
  });

  describe.each(['run', 'session', 'tenant'] as const)('per %s holds for everything below it:', (per) => {
    const thousand = () => scriptedModel([uses(1000)], { repeat: true });
    const again = tool({ name: 'again', description: 'Again.', input: z.object({}), execute: () => 'ok' });
    /** A sub-agent without the budget that would take 40 turns of 1000 tokens. */
    const greedy = () => {
      const usage = { inputTokens: 900, outputTokens: 100 };
      const turns = Array.from({ length: 40 }, (_, n) =>
        chunks(
          { type: 'tool-call', id: `c${n}`, name: 'again', arguments: '{}' },
          { type: 'finish', reason: 'tool-calls', usage },
        ),
      );
      return new Agent({ name: 'greedy', model: scriptedModel([...turns, text('done')]), tools: [again] });
    };
    const call = toolCalls({ name: 'ask', args: { prompt: 'go' } });
    const limit = (more: object = {}) => budget({ tokens: 5000, per, ...more });

    it('sub-agents that do not have it', async () => {
      const child = greedy();
      const ask = child.asTool({ name: 'ask', description: 'Asks.' });
      const model = scriptedModel([call, text('never')]);
      const result = await new Agent({ model, tools: [ask], middleware: [limit()] }).run('go');
      expect(result.usage.totalTokens).toBeLessThanOrEqual(6000);
      const told = result.messages.find(({ role }) => role === 'tool')!;
      expect(textOf(told)).toContain('did not finish (max_tokens)');
    });

    it('and those of sub-agents, several at once, and streamed', async () => {
      const middle = new Agent({
        model: scriptedModel([call, text('fine')], { repeat: true }),
        tools: [greedy().asTool({ name: 'ask', description: 'Asks.' })],
      });
      const ask = middle.asTool({ name: 'ask', description: 'Asks.' });
      const calls = toolCalls(...['a', 'b', 'c'].map((id) => ({ name: 'ask', args: { prompt: 'go' }, id })));
      // It never ends by itself, so it is the budget that ends it, however the sub-agents share it.
      const model = scriptedModel([calls], { repeat: true });
      const result = await new Agent({ model, tools: [ask], middleware: [limit()] }).stream('go').result;
      expect(result.stop.reason).toBe('max_tokens');
      expect(result.usage.totalTokens).toBeLessThanOrEqual(8000);
    });

    it('model calls of middleware further in, and of tools', async () => {
      const helper = thousand();
      const inner = defineMiddleware({
        name: 'inner',
        beforeModel: async (ctx) => {
          for (let i = 0; i < 40; i++) await ctx.generate(helper, { messages: '?' });
        },
      });
      const model = scriptedModel(['never']);
      const result = await new Agent({ model, middleware: [limit(), inner] }).run('go');
      expect(result.stop).toMatchObject({ reason: 'max_tokens', by: 'budget' });
      expect(result.usage.totalTokens).toBeLessThanOrEqual(6000);
      const asks = tool({
        name: 'asks',
        description: 'Asks.',
        input: z.object({}),
        execute: async (_, ctx) => {
          for (let i = 0; i < 40; i++) await ctx.generate(helper, { messages: '?' });
        },
      });
      const other = await new Agent({
        model: scriptedModel([toolCalls({ name: 'asks' }), text('never')]),
        tools: [asks],
        middleware: [limit()],
      }).run('go');
      expect(other.stop.reason).toBe('max_tokens');
      expect(other.usage.totalTokens).toBeLessThanOrEqual(6000);
    });

    it("unless subagents: 'count' says that they are only booked", async () => {
      const ask = greedy().asTool({ name: 'ask', description: 'Asks.' });
      const model = scriptedModel([call, text('never')]);
      const middleware = [limit({ subagents: 'count' })];
      const result = await new Agent({ model, tools: [ask], middleware }).run('go');
      expect(result.stop.reason).toBe('max_tokens');
      expect(result.usage.totalTokens).toBeGreaterThan(40_000);
    });
  });

  it('counts overlapping and nested calls once', async () => {
    const look = tool({
      name: 'look',
      description: 'Looks.',
      input: z.object({}),
      execute: () => 'seen',
    });
    const slow = {
      provider: 'test',
      id: 'slow',
      async *stream() {
        await new Promise((resolve) => setImmediate(resolve));
        yield { type: 'text' as const, text: 'x' };
        yield { type: 'finish' as const, reason: 'stop' as const, usage: { inputTokens: 1000 } };
      },
    };
    const settings = { maxOutputTokens: 10 };
    const asks = defineMiddleware({
      name: 'asks',
      guard: {
        on: ['request'],
        judge: async (_, { context }) => {
          await context.generate(slow, { messages: 'fine?', settings });
          return { type: 'allow' };
        },
      },
      beforeTool: async (ctx) => void (await ctx.generate(slow, { messages: 'how?', settings })),
    });
    for (const per of ['session', 'tenant'] as const) {
      const store = sharedStore();
      const script = [toolCalls(...['a', 'b', 'c', 'd'].map((id) => ({ name: 'look', id }))), uses(10)];
      const middleware = [asks, budget({ tokens: 1e6, per, store })];
      const agent = new Agent({ model: scriptedModel(script), tools: [look], middleware });
      const { usage } = await agent.session('s').run('go', { tenant: 's' });
      expect(usage.totalTokens).toBeGreaterThan(6000);
      expect(store.values.get(`budget:${per}:s:tokens`)).toBe(usage.totalTokens);
    }
  });

  it.each(['run', 'session', 'tenant'] as const)(
    'counts sub-agents and calls of middleware further in at its own prices (%s)',
    async (per) => {
      const helper = () => scriptedModel([uses(500_000)], { repeat: true });
      const child = new Agent({ model: helper() });
      const delegate = child.asTool({ name: 'delegate', description: 'Delegates.' });
      const inner = defineMiddleware({
        name: 'inner',
        afterModel: async (ctx) => void (await ctx.generate(helper(), { messages: '?' })),
        afterModelResponse: () => ({ decision: 'loop_to_model' as const }),
      });
      const calls = toolCalls({ name: 'delegate', args: { prompt: 'go' } });
      // Each costs a dollar: the third call of the model finds too little left.
      for (const [tools, middleware] of [
        [[delegate], []],
        [[], [inner]],
      ] as const) {
        const model = scriptedModel([tools.length > 0 ? calls : uses(1)], { repeat: true });
        const agent = new Agent({
          model,
          tools,
          middleware: [budget({ usd: 2, per, priceOf: () => PRICE }), ...middleware],
        });
        expect((await agent.run('go')).stop.reason).toBe('max_cost');
        expect(model.requests).toHaveLength(2);
      }
    },
  );

  it('counts at the end of a run what was used after its last call', async () => {
    const judge = scriptedModel([uses(900)]);
    const late = defineMiddleware({
      name: 'late',
      onRunEnd: async (ctx) => void (await ctx.generate(judge, { messages: 'good?' })),
    });
    const store = sharedStore();
    const { agent } = setup([uses(100)], { tokens: 1e6, per: 'tenant', store }, { more: [late] });
    await agent.run('go');
    expect(store.values.get('budget:tenant::tokens')).toBe(1000);
  });

  it('counts what a sub-agent with its own account used there, and not with its parent', async () => {
    const store = sharedStore();
    const shared = budget({ tokens: 1e6, per: (ctx) => `depth ${ctx.depth}`, store });
    const grandchild = new Agent({ model: scriptedModel([uses(7)]) });
    const child = new Agent({
      model: scriptedModel([toolCalls({ name: 'ask', args: { prompt: 'x' } }), uses(50)]),
      tools: [grandchild.asTool({ name: 'ask', description: 'Asks.' })],
      middleware: [shared],
    });
    const agent = new Agent({
      model: scriptedModel([toolCalls({ name: 'ask', args: { prompt: 'x' } }), uses(300)]),
      tools: [child.asTool({ name: 'ask', description: 'Asks.' })],
      middleware: [shared],
    });
    const { usage } = await agent.run('go');
    const [own, below] = [0, 1].map((depth) => store.values.get(`budget:depth ${depth}:tokens`)!);
    expect(own! + below!).toBe(usage.totalTokens);
    expect(own).toBeGreaterThanOrEqual(300);
    expect(below).toBeGreaterThanOrEqual(57);
    expect(below).toBeLessThan(300);
  });

  it('prices an inner model without a known price like the model of the call', async () => {
    const store = sharedStore();
    const other = defineMiddleware({
      name: 'other',
      beforeModel(ctx) {
        ctx.model = scriptedModel([uses(1e6)], { id: 'other' });
      },
    });
    const { agent } = setup(
      [],
      { usd: 10, per: 'tenant', store, priceOf: ({ id }) => (id === 'other' ? undefined : PRICE) },
      { more: [other] },
    );
    await agent.run('go');
    expect(store.values.get('budget:tenant::usd')).toBeCloseTo(2);
  });

  it.each(['run', 'session', 'tenant'] as const)(
    'ignores model calls made before the run begins (%s)',
    async (per) => {
      const helper = scriptedModel(['before']);
      const outer = defineMiddleware({
        name: 'outer',
        beforeRun: async (ctx) => void (await ctx.generate(helper, { messages: '?' })),
      });
      const middleware = [outer, budget({ tokens: 1000, per })];
      expect((await new Agent({ model: scriptedModel(['hi']), middleware }).run('go')).text).toBe('hi');
      expect(helper.remaining).toBe(0);
    },
  );

  it('never lowers the stored amount when tools that call models end in another order', async () => {
    const order: string[] = [];
    const until = async (step: string): Promise<void> => {
      while (!order.includes(step)) await new Promise((resolve) => setImmediate(resolve));
    };
    const asks = (name: string, first: string, last: string) =>
      tool({
        name,
        description: name,
        input: z.object({}),
        async execute(_, ctx) {
          await until(first);
          await ctx.generate(scriptedModel([uses(100)]), { messages: '?' });
          order.push(`${name} asked`);
          await until(last);
          return name;
        },
      });
    const store = memoryStore();
    const agent = new Agent({
      model: scriptedModel([toolCalls({ name: 'early' }, { name: 'late' }), failWith(new Error('down'))]),
      tools: [asks('early', 'start', 'late ended'), asks('late', 'early asked', 'late asked')],
      middleware: [budget({ tokens: 1e6, per: 'session' })],
      store,
      observers: [
        (event) => {
          if (event.type === 'tool_execution_start') order.push('start');
          if (event.type === 'tool_execution_end') order.push(`${event.toolCall.name} ended`);
        },
      ],
    });
    const { result } = await agent
      .session('s')
      .run('go')
      .catch((error) => error);
    const totals = (await store.read('s', 1)).flatMap((entry) =>
      entry.type === 'state' ? [(entry.value as { total: { tokens: number } }).total.tokens] : [],
    );
    expect(totals.at(-1)).toBe(result.usage.totalTokens);
    expect(totals).toEqual(totals.toSorted((a, b) => a - b));
  });

  it('lets two instances limit side by side', async () => {
    const model = scriptedModel([uses(600)], { repeat: true });
    const both = [
      budget({ tokens: 1e6, per: 'session' }),
      budget({ tokens: 1000, per: 'session', name: 'small' }),
    ];
    const session = new Agent({ model, middleware: both }).session('s');
    await session.run('one');
    await session.run('two');
    expect((await session.run('three')).stop).toMatchObject({ reason: 'max_tokens', by: 'small' });
    const same = [budget({ tokens: 1, per: 'session' }), budget({ tokens: 2, per: 'session' })];
    expect(() => new Agent({ model, middleware: same })).toThrow('Two middleware named "budget"');
  });

  it('fails the run if the store fails, but reports an error of the call first', async () => {
    const oh = new Error('store down');
    let calls = 0;
    const store = (from: number): BudgetStore => ({
      increment: async () => {
        if (++calls > from) throw oh;
        return 0;
      },
    });
    await expect(
      setup(['hi'], { tokens: 1e6, per: 'tenant', store: store(0) }).agent.run('go'),
    ).rejects.toMatchObject({
      cause: oh,
    });
    calls = 0;
    const boom = new Error('boom');
    const failing = setup([failWith(boom)], { tokens: 1e6, per: 'tenant', store: store(2) });
    const { error, events } = await collect(failing.agent.stream('go'));
    expect(error?.cause).toBe(boom);
    expect(events.find(({ type }) => type === 'custom')).toMatchObject({ name: 'budget_failed' });
  });

  it.each([undefined, null, 5, Promise.resolve('acme')])(
    'needs an account that is text, not %j',
    async (account) => {
      const { agent, model } = setup([uses(1)], { tokens: 1e6, per: () => account as never });
      await expect(agent.run('go')).rejects.toMatchObject({
        code: 'INVALID_OPTION',
        message: expect.stringContaining('Expected `per()` to be a function that returns text'),
      });
      expect(model.requests).toHaveLength(0);
    },
  );

  it.each<[string, BudgetStore | BudgetMap, string]>([
    ['texts', { increment: async () => '12.5' as never }, 'got "12.5"'],
    ['null', { increment: () => null as never }, 'got null'],
    ['NaN', { increment: () => Number.NaN }, 'got NaN'],
    ['texts that it holds', new Map([['budget:tenant::tokens', '900' as never]]), 'got "900"'],
    ['false, when it kept nothing', { get: () => 0, set: async () => false }, 'set() returned false'],
  ])('fails the run if the store returns %s, which would limit nothing', async (_, store, message) => {
    const { agent, model } = setup([uses(1)], { tokens: 1e6, per: 'tenant', store });
    await expect(agent.run('go')).rejects.toThrow(message);
    expect(model.requests).toHaveLength(0);
  });

  it('does the same when the run is streamed', async () => {
    const make = () => setup([uses(600)], { tokens: 500 });
    const [plain, streamed] = [make(), make()];
    const result = await plain.agent.run('go');
    const { result: end } = await collect(streamed.agent.stream('go'));
    expect(end).toMatchObject({ status: result.status, text: result.text, stop: result.stop });
    expect(streamed.model.requests[0]!.settings).toEqual(plain.model.requests[0]!.settings);
  });

  it.each([
    [{}, 'budget() got nothing to limit. Give `usd` or `tokens`.'],
    [{ usd: -1 }, 'Expected `usd` to be a finite number ≥ 0, got -1.'],
    [{ tokens: Number.NaN }, 'Expected `tokens` to be a finite number ≥ 0, got NaN.'],
    [
      { tokens: 1, per: 'user' },
      "Expected `per` to be 'run', 'session' or 'tenant' or a function, got \"user\".",
    ],
    [
      { tokens: 1, store: {} },
      'Expected `store` to be an object with increment(), or with get() and set(), got {}.',
    ],
    [
      { tokens: 1, store: null },
      'Expected `store` to be an object with increment(), or with get() and set(), got null.',
    ],
    [{ usd: 1, priceOf: 5 }, 'Expected `priceOf` to be a function, got 5.'],
    [{ tokens: 1, name: '' }, 'Expected `name` to be non-empty text, got "".'],
    [{ token: 1 }, 'Unknown option `token` of budget(). Did you mean `tokens`?'],
  ])('refuses %j', (options, message) => {
    expect(() => budget(options as never)).toThrow(message);
  });
});
