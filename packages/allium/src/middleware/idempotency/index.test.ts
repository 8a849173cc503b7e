import {
  Agent,
  defineMiddleware,
  memoryStore,
  type Store,
  type Tool,
  type ToolContext,
  tool,
  toolResult,
} from 'allium';
import { type IdempotencyEntry, type IdempotencyOptions, idempotency } from 'allium/middleware/idempotency';
import { retry } from 'allium/middleware/retry';
import { timeout } from 'allium/middleware/timeout';
import { collect, fakeClock, scriptedModel, testMiddleware, text, toolCalls } from 'allium/testing';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';

testMiddleware(({ clock }) => idempotency({ store: new Map(), clock }), {
  name: 'idempotency',
  describe,
  it,
});
testMiddleware(({ clock }) => idempotency({ store: remote(), clock }), {
  name: 'idempotency with an asynchronous store',
  describe,
  it,
});

/** Like one behind a network: asynchronous, and what it holds is a copy. */
function remote() {
  const texts = new Map<string, string>();
  return {
    texts,
    get: async (key: string): Promise<unknown> => (texts.has(key) ? JSON.parse(texts.get(key)!) : undefined),
    set: async (key: string, value: IdempotencyEntry) => void texts.set(key, JSON.stringify(value)),
    delete: async (key: string) => texts.delete(key),
  };
}

interface Work<T> {
  readonly promise: Promise<T>;
  readonly resolve: (value: T) => void;
  readonly reject: (error: unknown) => void;
}

function resolvers<T>(): Work<T> {
  let settle: Omit<Work<T>, 'promise'> | undefined;
  const promise = new Promise<T>((resolve, reject) => {
    settle = { resolve, reject };
  });
  return { promise, ...settle! };
}

/** A layer that calls inward twice and takes the second result. */
const twice = defineMiddleware({
  name: 'twice',
  async wrapTool(_, next) {
    await next().catch(() => {});
    return next();
  },
});
const twiceAtOnce = defineMiddleware({
  name: 'twice-at-once',
  wrapTool: async (_, next) => (await Promise.all([next(), next()]))[1],
});

type Execute = (args: { order?: unknown }, ctx: ToolContext) => unknown;

function setup(
  execute: Execute,
  options: Partial<IdempotencyOptions> = {},
  outer = twice,
  more: { idempotent?: boolean } = {},
) {
  const clock = fakeClock(1000);
  let runs = 0;
  const pay = tool({
    name: 'pay',
    description: 'Pays.',
    input: z.object({ order: z.unknown().optional() }),
    ...more,
    execute(args, ctx) {
      runs++;
      return execute(args, ctx);
    },
  });
  const own = idempotency({ store: new Map(), ...options });
  const agentOf = (orders: readonly unknown[], tenant?: string) =>
    new Agent({
      model: scriptedModel([
        ...orders.map((order) => toolCalls({ name: 'pay', args: { order } })),
        text('done'),
      ]),
      clock,
      tools: [pay],
      middleware: [outer, own],
      ...(tenant && { tenant }),
    });
  return { agentOf, clock, runs: () => runs };
}

const settle = () => fakeClock().advance(0);

describe('idempotency', () => {
  it('runs the tool once however often a call is attempted', async () => {
    const { agentOf, runs } = setup(() => `payment ${runs()}`);
    const { messages, changes } = await agentOf([1]).run('pay');
    expect(runs()).toBe(1);
    expect(messages[2]).toMatchObject({ isError: false, content: [{ text: 'payment 1' }] });
    expect(changes.map(({ by }) => by)).toContain('idempotency');
  });

  it('waits for the first attempt when two overlap', async () => {
    const slow = async () => {
      await settle();
      return 'paid';
    };
    const { agentOf, runs } = setup(slow, {}, twiceAtOnce);
    expect((await agentOf([1]).run('pay')).status).toBe('done');
    expect(runs()).toBe(1);
  });

  it('refuses a key that is used again inside the call that has it', async () => {
    const own = idempotency({ store: new Map(), key: () => 'order-1' });
    const said: unknown[] = [];
    const pay: Tool = tool({
      name: 'pay',
      description: 'Pays.',
      input: z.object({}),
      async execute(_, ctx) {
        const child = new Agent({
          model: scriptedModel([toolCalls({ name: 'pay' }), text('done')]),
          tools: [pay],
          middleware: [own],
        });
        said.push((await child.run('Pay.', { parent: ctx })).messages[2]);
        return 'paid';
      },
    });
    const model = scriptedModel([toolCalls({ name: 'pay' }), text('done')]);
    const { messages } = await new Agent({ model, tools: [pay], middleware: [own] }).run('Pay.');
    expect(messages[2]).toMatchObject({ isError: false, content: [{ text: 'paid' }] });
    expect(said).toHaveLength(1);
    expect(said[0]).toMatchObject({
      isError: true,
      content: [{ text: expect.stringContaining('"order-1"') }],
    });
  });

  it('treats the same call in a later turn or another session as another call', async () => {
    const { agentOf, runs } = setup(() => 'paid');
    await agentOf([1, 1]).run('pay');
    await agentOf([1]).run('pay');
    expect(runs()).toBe(3);
  });

  it('gives the tool the key, the same for each attempt', async () => {
    const keys: string[] = [];
    const { agentOf } = setup((_, ctx) => {
      keys.push(ctx.idempotencyKey);
      throw new Error('oh');
    });
    await agentOf([1]).run('pay');
    expect(keys).toHaveLength(2);
    expect(new Set(keys).size).toBe(1);
  });

  it('takes a key of your own, per tenant and tool, and ignores calls without one', async () => {
    const key = (ctx: ToolContext) => (ctx.args.order === undefined ? undefined : String(ctx.args.order));
    const { agentOf, runs } = setup(() => 'paid', { key });
    await agentOf([7, 7, '7'], 'a').run('pay');
    expect(runs()).toBe(1);
    await agentOf([7], 'b').run('pay');
    expect(runs()).toBe(2);
    await agentOf([undefined], 'a').run('pay');
    expect(runs()).toBe(4);
  });

  it('leaves tools alone that are declared idempotent, unless they are named', async () => {
    const safe = setup(() => 'ok', {}, twice, { idempotent: true });
    await safe.agentOf([1]).run('pay');
    expect(safe.runs()).toBe(2);
    for (const tools of [['pay'], () => true]) {
      const named = setup(() => 'ok', { tools }, twice, { idempotent: true });
      await named.agentOf([1]).run('pay');
      expect(named.runs()).toBe(1);
    }
  });

  it('keeps the whole result, and also a returned error, because the tool has answered', async () => {
    const { agentOf, runs } = setup(() =>
      toolResult({ content: 'declined', isError: true, details: { code: 51 } }),
    );
    const { messages } = await agentOf([1]).run('pay');
    expect(messages[2]).toMatchObject({
      isError: true,
      details: { code: 51 },
      content: [{ text: 'declined' }],
    });
    expect(runs()).toBe(1);
  });

  it('does not keep what a tool throws: a retry runs it again, and once only', async () => {
    const clock = fakeClock();
    let runs = 0;
    const pay = tool({
      name: 'pay',
      description: 'Pays.',
      input: z.object({}),
      execute() {
        if (++runs === 1) throw Object.assign(new Error('reset'), { code: 'ECONNRESET' });
        return 'paid';
      },
    });
    const middleware = [twice, retry({ on: 'tool', clock }), idempotency({ store: new Map() })];
    const agent = new Agent({
      model: scriptedModel([toolCalls({ name: 'pay' }), 'done']),
      clock,
      tools: [pay],
      middleware,
    });
    const run = agent.run('pay');
    await clock.advance(10_000);
    expect((await run).messages[2]).toMatchObject({ isError: false });
    expect(runs).toBe(2);
  });

  describe('an attempt that was given up, of a tool that does not hear of it', () => {
    function slow() {
      const clock = fakeClock();
      const works: Work<string>[] = [];
      const pay = tool({
        name: 'pay',
        description: 'Pays.',
        input: z.object({}),
        execute() {
          const work = resolvers<string>();
          works.push(work);
          return work.promise;
        },
      });
      const retries = retry({ on: 'tool', clock, minDelayMs: 10, jitter: 'none' });
      const middleware = [retries, timeout({ toolMs: 100, clock }), idempotency({ store: new Map() })];
      const model = scriptedModel([toolCalls({ name: 'pay' }), 'done']);
      const run = new Agent({ model, clock, tools: [pay], middleware }).run('pay');
      return { clock, works, result: run.then(({ messages }) => messages[2]) };
    }

    it('is taken over by the next one, while it goes on', async () => {
      const { clock, works, result } = slow();
      await clock.advance(150);
      works[0]!.resolve('paid');
      expect(await result).toMatchObject({ isError: false, content: [{ text: 'paid' }] });
      expect(works).toHaveLength(1);
    });

    it('is taken over by the next one, when it came to something meanwhile', async () => {
      const { clock, works, result } = slow();
      await clock.advance(105);
      works[0]!.resolve('paid');
      await clock.advance(10);
      expect(await result).toMatchObject({ isError: false, content: [{ text: 'paid' }] });
      expect(works).toHaveLength(1);
    });

    it('is followed by another one when it has failed, and not before', async () => {
      const { clock, works, result } = slow();
      await clock.advance(150);
      expect(works).toHaveLength(1);
      works[0]!.reject(new Error('reset'));
      await clock.advance(10);
      works[1]!.resolve('paid');
      expect(await result).toMatchObject({ isError: false, content: [{ text: 'paid' }] });
      expect(works).toHaveLength(2);
    });
  });

  it('does not keep a suspension: the answer is what the tool returns after it', async () => {
    const store = new Map();
    const { agentOf, runs } = setup(
      async (_, ctx) => (await ctx.suspend({ title: 'May I?' })).type,
      { store },
      defineMiddleware({ name: 'none', wrapTool: (_, next) => next() }),
    );
    const session = agentOf([1]).session('s');
    const { status, pending } = await session.run('pay');
    expect([status, store.size]).toEqual(['suspended', 0]);
    await session.resume({ answers: { [pending[0]!.id]: { type: 'approve' } } });
    expect([runs(), store.size]).toEqual([2, 1]);
  });

  it('keeps nothing of an aborted run, and one that waits stops at once', async () => {
    const store = new Map();
    const { agentOf, runs, clock } = setup(
      (_, ctx) =>
        new Promise((_resolve, reject) =>
          ctx.signal.addEventListener('abort', () => reject(ctx.signal.reason)),
        ),
      { store },
      twiceAtOnce,
    );
    const abort = new AbortController();
    const run = agentOf([1])
      .run('pay', { signal: abort.signal })
      .catch(({ code }) => code);
    await settle();
    abort.abort();
    expect(await run).toBe('ABORTED');
    expect([runs(), store.size, clock.pending]).toEqual([1, 0, 0]);
  });

  it('gives a call its result after a crash between the tool and the journal', async () => {
    const results = remote();
    const journal = memoryStore();
    // From the result on nothing reaches the journal any more, as when the process is gone.
    let gone = false;
    const crashing: Store = new Proxy(journal, {
      get:
        (target, method: keyof Store) =>
        (...args: unknown[]) => {
          const entries = method === 'append' ? (args[2] as readonly { type: string }[]) : [];
          gone ||= entries.some(({ type }) => type === 'tool_finished');
          if (gone && method === 'append') throw new Error('crash');
          return (target[method] as (...given: unknown[]) => unknown).apply(target, args);
        },
    });
    let runs = 0;
    const pay = tool({
      name: 'pay',
      description: 'Pays.',
      input: z.object({}),
      onInDoubt: 'retry',
      execute: () => `payment ${++runs}`,
    });
    const agentOn = (store: Store, script: Parameters<typeof scriptedModel>[0]) =>
      new Agent({
        model: scriptedModel(script),
        store,
        tools: [pay],
        middleware: [idempotency({ store: results })],
      });
    await agentOn(crashing, [toolCalls({ name: 'pay' })])
      .session('s')
      .run('pay')
      .catch(() => {});
    expect(runs).toBe(1);
    const { status, messages } = await agentOn(journal, ['done']).session('s').resume();
    expect(status).toBe('done');
    expect(JSON.stringify(messages)).toContain('payment 1');
    expect(runs).toBe(1);
  });

  it('stores only what the guards left', async () => {
    const store = new Map();
    const redact = defineMiddleware({
      name: 'redact',
      guard: {
        on: ['tool-result'],
        find: (said) => [...said.matchAll(/secret/g)].map(({ index }) => ({ start: index, end: index + 6 })),
      },
    });
    const pay = tool({
      name: 'pay',
      description: 'Pays.',
      input: z.object({}),
      execute: () => 'a secret receipt',
    });
    const middleware = [twice, idempotency({ store }), redact];
    const { messages } = await new Agent({
      model: scriptedModel([toolCalls({ name: 'pay' }), 'done']),
      tools: [pay],
      middleware,
    }).run('hi');
    expect(JSON.stringify(messages[2])).toContain('a [redacted] receipt');
    expect(store.size).toBe(1);
    expect(JSON.stringify([...store])).not.toContain('secret');
  });

  it('serves 100 concurrent runs, each with its own keys, streamed and not', async () => {
    const { agentOf, runs } = setup(async ({ order }) => {
      await settle();
      return `paid ${order}`;
    });
    const all = await Promise.all(
      Array.from({ length: 100 }, async (_, i) =>
        i % 2 ? (await collect(agentOf([i]).stream('pay'))).result : agentOf([i]).run('pay'),
      ),
    );
    expect(all.map((result) => result?.messages[2]?.content[0])).toEqual(
      all.map((_, i) => ({ type: 'text', text: `paid ${i}` })),
    );
    expect(runs()).toBe(100);
  });

  it('keeps two instances apart', async () => {
    const [one, other] = [new Map(), new Map()];
    const make = (name: string) =>
      tool({ name, description: name, input: z.object({}), execute: () => name });
    const middleware = [
      idempotency({ store: one, tools: ['a'] }),
      idempotency({ store: other, tools: ['b'] }),
    ];
    const model = scriptedModel([toolCalls({ name: 'a', id: 'x' }, { name: 'b', id: 'y' }), 'done']);
    await new Agent({ model, tools: [make('a'), make('b')], middleware }).run('hi');
    expect([one.size, other.size]).toEqual([1, 1]);
  });

  describe('the store', () => {
    it('forgets after ttlMs, which it is told', async () => {
      const [ttls, map] = [[] as unknown[], new Map<string, IdempotencyEntry>()];
      const store = {
        get: (key: string) => map.get(key),
        set: (key: string, value: IdempotencyEntry, ttl?: number) =>
          void ttls.push(ttl, map.set(key, value).size),
        delete: (key: string) => map.delete(key),
      };
      const { agentOf, clock, runs } = setup(() => 'paid', { store, ttlMs: 500, key: () => 'same' });
      await agentOf([1]).run('pay');
      await clock.advance(499);
      await agentOf([1]).run('pay');
      expect(runs()).toBe(1);
      await clock.advance(1);
      await agentOf([1]).run('pay');
      expect(runs()).toBe(2);
      expect(ttls).toEqual([500, 1, 500, 1]);
    });

    it('that cannot be read fails the call before the tool runs', async () => {
      const store = { ...remote(), get: () => Promise.reject(new Error('connection lost')) };
      const { agentOf, runs } = setup(() => 'paid', { store });
      const { messages } = await agentOf([1]).run('pay');
      expect(JSON.stringify(messages[2])).toContain('connection lost');
      expect(messages[2]).toMatchObject({ isError: true });
      expect(runs()).toBe(0);
    });

    it('that cannot be written to does not hide that the tool has run', async () => {
      const store = { ...remote(), set: () => Promise.reject(new Error('disk full')) };
      const { agentOf } = setup(() => 'paid', { store }, defineMiddleware({ name: 'none', beforeTool() {} }));
      const { result, events } = await collect(agentOf([1]).stream('pay'));
      expect(result?.messages[2]).toMatchObject({ isError: false, content: [{ text: 'paid' }] });
      expect(events.find(({ type }) => type === 'custom')).toMatchObject({
        name: 'idempotency',
        data: { error: 'disk full' },
      });
    });

    it('that says it kept nothing is reported, too, as a Keyv says it', async () => {
      const store = { ...remote(), set: async () => false };
      const { agentOf } = setup(() => 'paid', { store }, defineMiddleware({ name: 'none', beforeTool() {} }));
      const { result, events } = await collect(agentOf([1]).stream('pay'));
      expect(result?.messages[2]).toMatchObject({ isError: false });
      expect(events.find(({ type }) => type === 'custom')).toMatchObject({ name: 'idempotency' });
    });

    it.each([null, 5, {}, { version: 1, result: {} }])('is ignored if it holds %j', async (junk) => {
      const store = { get: () => junk, set: () => {}, delete: () => {} };
      expect(
        (
          await setup(() => 'paid', { store })
            .agentOf([1])
            .run('pay')
        ).messages[2],
      ).toMatchObject({ content: [{ text: 'paid' }] });
    });
  });

  it('fails the call if the key is not text', async () => {
    const { agentOf, runs } = setup(() => 'paid', { key: () => '' });
    const { messages } = await agentOf([1]).run('pay');
    expect(JSON.stringify(messages[2])).toContain(
      'Expected `key()` to be a function that returns non-empty text or undefined',
    );
    expect(runs()).toBe(0);
  });

  it.each([
    [undefined, 'Expected `options` to be an object with store,'],
    [{}, 'Expected `store` to be an object with get(), set(), delete(), got undefined.'],
    [{ store: {} }, 'Expected `store` to be an object with get(), set(), delete(), got {}.'],
    [
      { store: new Map(), tools: 'pay' },
      'Expected `tools` to be a list of tool names and tools, or a function, got "pay".',
    ],
    [{ store: new Map(), key: 'order' }, 'Expected `key` to be a function, got "order".'],
    [{ store: new Map(), ttlMs: 0 }, 'Expected `ttlMs` to be a finite number ≥ 1, got 0.'],
    [{ store: new Map(), clock: {} }, 'Expected `clock` to be an object with now(), setTimer(), got {}.'],
    [{ stores: new Map() }, 'Unknown option `stores` of idempotency(). Did you mean `store`?'],
  ])('refuses %j', (options, message) => {
    expect(() => idempotency(options as never)).toThrow(message);
  });
});
