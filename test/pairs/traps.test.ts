/** Combinations that are easy to get wrong: longer lists, unlike twins, sub-agents, transforms. */
import {
  Agent,
  defineMiddleware,
  type Middleware,
  type ModelRequest,
  memoryStore,
  RunError,
  textOf,
  tool,
} from 'allium';
import * as box from 'allium/middleware';
import {
  collect,
  failWith,
  fakeClock,
  hang,
  type Script,
  type ScriptStep,
  scriptedModel,
  text,
  toolCalls,
} from 'allium/testing';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { BOX, type Member } from './box.js';
import { breachesOf } from './check.js';
import { SITUATIONS } from './conversation.js';

async function lawful(list: readonly Member[]): Promise<void> {
  const found: string[] = [];
  for (const situation of SITUATIONS)
    found.push(...((await breachesOf(list, situation)) ?? []).map(({ message }) => message));
  expect(found).toEqual([]);
}

const of = (...names: readonly string[]): readonly Member[] =>
  names.map((name) => BOX.find((member) => member.name === name)!);

/** The stack that the guide recommends, from the outside in. */
const STACK = [
  'audit-log',
  'loop-guard',
  'cache',
  'budget',
  'fallback',
  'retry',
  'circuit-breaker',
  'rate-limit',
  'tool-errors',
  'tool-cache',
  'retry of tools',
  'circuit-breaker of tools',
  'idempotency',
  'timeout',
];

describe('under success, errors, stops, suspensions, aborts and cuts the laws hold for', () => {
  const lists: readonly (readonly string[])[] = [
    STACK,
    ['rate-limit', 'retry', 'timeout'],
    ['timeout', 'retry', 'rate-limit'],
    ['retry', 'fallback', 'cache'],
    ['cache', 'fallback', 'retry'],
    ['retry', 'fallback', 'circuit-breaker'],
    ['circuit-breaker', 'fallback', 'retry'],
    ['retry of tools', 'circuit-breaker of tools', 'idempotency', 'tool-cache', 'timeout'],
    ['tool-errors', 'tool-cache', 'retry of tools', 'concurrency of tools', 'idempotency'],
    BOX.map(({ name }) => name).filter((name) => name !== 'idempotency'),
    BOX.map(({ name }) => name).reverse(),
  ];
  for (const names of lists)
    it(names.length > STACK.length ? `the whole box, ${names[0]} first` : names.join(' > '), () =>
      lawful(of(...names)),
    );

  const twins: Readonly<Record<string, readonly (() => Middleware)[]>> = {
    retry: [() => box.retry({ attempts: 2 }), () => box.retry({ attempts: 4, minDelayMs: 1 })],
    timeout: [() => box.timeout({ modelMs: 50_000 }), () => box.timeout({ modelMs: 90_000, idleMs: 20_000 })],
    cache: [() => box.cache({ scope: 'all' }), () => box.cache({ scope: 'session', ttlMs: 1000 })],
    budget: [
      () => box.budget({ tokens: 1e5, per: 'tenant', name: 'tokens', store: new Map() }),
      () => box.budget({ usd: 5, per: 'session', name: 'usd', priceOf: () => ({ input: 1, output: 2 }) }),
    ],
    rateLimit: [
      () => box.rateLimit({ limit: 1, perMs: 500 }),
      () => box.rateLimit({ limit: 3, perMs: 9000, key: () => 'all' }),
    ],
    concurrency: [() => box.concurrency({ max: 1 }), () => box.concurrency({ max: 2, key: () => 'all' })],
    circuitBreaker: [
      () => box.circuitBreaker({ failures: 1 }),
      () => box.circuitBreaker({ failures: 3, key: () => 'all' }),
    ],
    callLimits: [() => box.callLimits({ modelCalls: 9 }), () => box.callLimits({ toolCalls: 9 })],
    structuredOutput: [
      () => box.structuredOutput({ schema: z.looseObject({}) }),
      () => box.structuredOutput({ schema: z.object({ sum: z.number() }), mode: 'prompt' }),
    ],
  };
  const declared = (name: string) =>
    BOX.find((member) => member.name.replace(/-./g, (x) => x[1]!.toUpperCase()) === name)!;
  for (const [name, [one, other]] of Object.entries(twins))
    it(`two of ${name} with different options, in both orders`, async () => {
      const members = [one!, other!].map((make): Member => ({ ...declared(name), make }));
      await lawful(members);
      await lawful([...members].reverse());
    });
});

describe('budget, sub-agents and parallel tools', () => {
  const PRICE = { input: 0, output: 1000 };

  /** Writes 100 tokens, or as many as it may. */
  const spending =
    ({ parts }: ScriptStep): Script =>
    ({ settings }) => {
      const outputTokens = Math.min(100, settings.maxOutputTokens ?? 100);
      const usage = { inputTokens: 0, outputTokens };
      return {
        parts: parts.map((part) => (part !== 'tick' && part.type === 'finish' ? { ...part, usage } : part)),
      };
    };

  /** A parent that starts four children at once; each asks its model until its money or its turns are used up. */
  function family(usd: number, child: (ctx: { stop(): never }) => unknown = () => undefined) {
    const store = new Map<string, number>();
    const limit = box.budget({ usd, per: 'tenant', store, name: 'b' });
    const step = tool({
      name: 'step',
      description: 'One more.',
      input: z.object({}),
      execute: (_, ctx) => child({ stop: () => ctx.stop('stopped', 'a child stops') }) ?? 'ok',
    });
    const model = (steps: number) =>
      scriptedModel(
        [
          ...Array.from({ length: steps }, () => spending(toolCalls({ name: 'step' }))),
          spending(text('done')),
        ],
        { price: PRICE },
      );
    const children: ReturnType<typeof model>[] = [];
    const work = tool({
      name: 'work',
      description: 'Lets a sub-agent work.',
      input: z.object({}),
      async execute(_, ctx) {
        const own = model(3);
        children.push(own);
        const agent = new Agent({ model: own, tools: [step], middleware: [limit] });
        const { status, stop } = await agent.run('work', { parent: ctx });
        return `${status}: ${stop.reason}`;
      },
    });
    const four = ['a', 'b', 'c', 'd'].map((id) => ({ name: 'work', id }));
    const parent = scriptedModel([spending(toolCalls(...four)), spending(text('all done'))], {
      price: PRICE,
    });
    const agent = new Agent({ model: parent, tools: [work], middleware: [limit] });
    const calls = () => parent.requests.length + children.reduce((sum, one) => sum + one.requests.length, 0);
    return { agent, store, calls, children };
  }

  it('is one budget: nobody spends what another has set aside, and the sum is what was used', async () => {
    // Every call costs $0.10: one of the parent, four of each child, and one more of the parent.
    const { agent, store, calls } = family(10);
    const result = await agent.run('go');
    expect(result).toMatchObject({ status: 'done', text: 'all done' });
    expect(calls()).toBe(18);
    expect(store.get('b:tenant::usd')).toBeCloseTo(1.8);
  });

  it('is never exceeded, however many spend at once', async () => {
    for (const usd of [0.05, 0.15, 0.45, 0.95, 1.35, 1.75]) {
      const { agent, store, calls } = family(usd);
      const { stop, messages } = await agent.run('go');
      const results = messages.flatMap((one) => (one.role === 'tool' ? [textOf(one)] : []));
      expect([stop.reason, ...results].filter((one) => one.endsWith('max_cost'))).not.toEqual([]);
      expect(store.get('b:tenant::usd')!).toBeLessThanOrEqual(usd + 1e-9);
      expect(store.get('b:tenant::usd')!).toBeLessThanOrEqual(calls() * 0.1 + 1e-9);
    }
  });

  it('gets back what was set aside when a child stops itself', async () => {
    const { agent, store, calls } = family(10, ({ stop }) => stop());
    const { messages } = await agent.run('go');
    const results = messages.flatMap((one) => (one.role === 'tool' ? [textOf(one)] : []));
    expect(results).toEqual(Array.from({ length: 4 }, () => 'stopped: stopped'));
    expect(store.get('b:tenant::usd')!).toBeCloseTo(calls() * 0.1);
  });

  it('gets back what was set aside when all of them are aborted in mid-answer', async () => {
    const store = new Map<string, number>();
    const limit = box.budget({ tokens: 1e5, per: 'tenant', store, name: 'b' });
    const silent = scriptedModel([hang()], { repeat: true });
    const work = tool({
      name: 'work',
      description: 'Lets a sub-agent work.',
      input: z.object({}),
      execute: async (_, ctx) =>
        (await new Agent({ model: silent, middleware: [limit] }).run('work', { parent: ctx })).text,
    });
    const usage = { inputTokens: 7, outputTokens: 3 };
    const parent = scriptedModel([toolCalls({ name: 'work' }, { name: 'work' })], { usage });
    const controller = new AbortController();
    const run = new Agent({ model: parent, tools: [work], middleware: [limit] }).run('go', {
      signal: controller.signal,
    });
    while (silent.requests.length < 2) await new Promise((resolve) => setImmediate(resolve));
    expect(store.get('b:tenant::tokens')).toBeGreaterThan(1000);
    controller.abort();
    await expect(run).rejects.toMatchObject({ code: 'ABORTED' });
    // What the two were asked is counted as the kernel estimates it; nothing of what was set aside is left.
    expect(store.get('b:tenant::tokens')!).toBeLessThan(100);
  });
});

describe('structured output and a transform that shortens the conversation', () => {
  /** Keeps the latest message only, as a compaction at its harshest would. */
  const shortened = defineMiddleware({
    name: 'shortened',
    transformContext: (messages) => messages.slice(-1),
  });
  const schema = z.object({ n: z.number() });
  const lists = (): Middleware[][] => {
    const typed = () => box.structuredOutput({ schema });
    return [
      [shortened, typed()],
      [typed(), shortened],
    ];
  };

  it('the correction is what the model reads, and the count holds', async () => {
    for (const middleware of lists()) {
      const model = scriptedModel(['no', '{"n":"one"}', '{"n":1}']);
      const result = await new Agent({ model, middleware }).run('count');
      expect(result.output).toEqual({ n: 1 });
      expect(model.requests.map(({ messages }) => messages.length)).toEqual([1, 1, 1]);
      expect(lastText(model.requests[1]!)).toContain('not valid JSON');
      expect(lastText(model.requests[2]!)).toContain('n');
    }
    for (const middleware of lists()) {
      const model = scriptedModel(['no'], { repeat: true });
      await expect(new Agent({ model, middleware }).run('count')).rejects.toMatchObject({
        code: 'OUTPUT_INVALID',
      });
      expect(model.requests).toHaveLength(3);
    }
  });

  it('is not asked for while the run is stopped, suspended or aborted', async () => {
    const ends = [
      ['stop', 'stopped'],
      ['ask', 'suspended'],
    ] as const;
    for (const [name, status] of ends)
      for (const middleware of lists()) {
        const stop = tool({
          name: 'stop',
          description: 'Stops.',
          input: z.object({}),
          execute: (_, ctx) => ctx.stop('stopped', 'enough'),
        });
        const ask = tool({
          name: 'ask',
          description: 'Asks.',
          input: z.object({}),
          execute: async (_, ctx) => (await ctx.suspend({ title: 'May I?' })).type,
        });
        const model = scriptedModel([toolCalls({ name }), 'no']);
        const result = await new Agent({ model, tools: [stop, ask], middleware }).run('go');
        expect(result.status).toBe(status);
        expect(result.output).toBeUndefined();
        expect(model.requests).toHaveLength(1);
      }
    for (const middleware of lists()) {
      const controller = new AbortController();
      const model = scriptedModel([hang('{"n"')]);
      const run = new Agent({ model, middleware }).run('go', { signal: controller.signal });
      while (model.requests.length === 0) await new Promise((resolve) => setImmediate(resolve));
      controller.abort();
      await expect(run).rejects.toMatchObject({ code: 'ABORTED' });
    }
  });
});

describe('cache and a stream transform', () => {
  /** Writes in capitals: a transform like a redaction that is not a guard. */
  const capitals = defineMiddleware({
    name: 'capitals',
    traits: ['transforms'],
    wrapModel(ctx, next) {
      ctx.transform(() => ({
        part: (part, emit) => emit(part.type === 'text' ? { ...part, text: part.text.toUpperCase() } : part),
      }));
      return next();
    },
  });

  it('shows the same for a hit as for a call, in both orders, and stores what stands inside', async () => {
    for (const order of ['outside', 'inside'] as const) {
      const entries = new Map<string, { response: { content: unknown } }>();
      const cached = box.cache({ store: entries as never });
      const model = scriptedModel(['hello']);
      const middleware = order === 'outside' ? [capitals, cached] : [cached, capitals];
      const agent = new Agent({ model, middleware, store: memoryStore() });
      for (let i = 0; i < 2; i++) {
        const { result, shown } = await collect(agent.stream('hi'));
        expect(result!.text).toBe('HELLO');
        expect([...shown.values()]).toEqual(['HELLO']);
      }
      expect(model.requests).toHaveLength(1);
      const [entry] = entries.values();
      expect(JSON.stringify(entry!.response.content)).toContain(order === 'outside' ? 'hello' : 'HELLO');
    }
  });
});

describe('rate limit, retry and abort', () => {
  const busy = () => Object.assign(new Error('busy'), { status: 503 });

  for (const order of ['rate limit outside', 'retry outside'])
    it(`${order}: an abort while either waits ends the run at once, with no further call and no timer`, async () => {
      for (const patience of [0, 1, 2]) {
        const clock = fakeClock();
        const model = scriptedModel([failWith(busy())], { repeat: true });
        const pair = [
          box.rateLimit({ limit: 1, perMs: 5000 }),
          box.retry({ jitter: 'none', minDelayMs: 800 }),
        ];
        const middleware = order === 'retry outside' ? pair.reverse() : pair;
        const controller = new AbortController();
        const run = new Agent({ model, middleware, clock }).run('go', { signal: controller.signal });
        let ended = false;
        const end = run
          .catch((error: unknown) => error)
          .finally(() => {
            ended = true;
          });
        await clock.advance(0);
        for (let i = 0; i < patience; i++) await clock.advanceToNext();
        if (ended) continue;
        const calls = model.requests.length;
        controller.abort();
        expect(await end).toBeInstanceOf(RunError);
        expect(await end).toMatchObject({ code: 'ABORTED' });
        expect(model.requests).toHaveLength(calls);
        expect(clock.pending).toBe(0);
      }
    });
});

function lastText({ messages }: ModelRequest): string {
  return textOf(messages.at(-1)!);
}
