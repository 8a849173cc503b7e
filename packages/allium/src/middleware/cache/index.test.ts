import {
  Agent,
  defineMiddleware,
  type Middleware,
  memoryStore,
  type StreamTransform,
  textOf,
  tool,
} from 'allium';
import { type CacheEntry, type CacheOptions, cache, cacheKey } from 'allium/middleware/cache';
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
  toolCalls,
} from 'allium/testing';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';

testMiddleware(({ clock }) => cache({ clock }), { name: 'cache', describe, it });
testMiddleware(({ clock }) => cache({ clock, key: (ctx) => `${ctx.runId} ${cacheKey(ctx)}` }), {
  name: 'cache of each run for itself',
  describe,
  it,
});
testMiddleware(
  ({ clock }) => cache({ clock, store: slowStore(), key: (ctx) => `${ctx.runId} ${cacheKey(ctx)}` }),
  { name: 'cache with an asynchronous store', describe, it },
);

/** A store like one behind a network: asynchronous, and what it holds is a copy. */
function slowStore() {
  const texts = new Map<string, string>();
  return {
    texts,
    get: async (key: string): Promise<unknown> => (texts.has(key) ? JSON.parse(texts.get(key)!) : undefined),
    set: async (key: string, value: CacheEntry) => void texts.set(key, JSON.stringify(value)),
    delete: async (key: string) => texts.delete(key),
  };
}

const look = tool({ name: 'look', description: 'Looks.', input: z.object({}), execute: () => 'seen' });

function setup(script: readonly Script[], options: CacheOptions = {}) {
  const clock = fakeClock(1000);
  const model = scriptedModel(script);
  // Timers are counted, and those of the agent are none of its business.
  const limits = { modelIdleMs: 'none', modelMs: 'none' } as const;
  const agent = new Agent({ model, tools: [look], clock, limits, middleware: [cache(options)] });
  return { agent, clock, model };
}

/** Lets everything that is ready run. */
const settle = () => fakeClock().advance(0);

describe('cache', () => {
  it.each([
    ['a promise', () => Promise.resolve('k')],
    ['a promise that fails', () => Promise.reject(new Error('no'))],
    ['an object', () => ({ a: 1 })],
  ])('asks the model if key() returns %s, which would be one key for all requests', async (_, key) => {
    const { agent } = setup(['one', 'two'], { key: key as never });
    expect((await agent.run('first')).text).toBe('one');
    const { text: answer, changes } = await agent.run('second');
    expect(answer).toBe('two');
    expect(changes).toMatchObject([{ by: 'cache', what: expect.stringContaining('Expected `key()` to be') }]);
  });

  it('answers an identical request from the store, at no cost', async () => {
    const { agent, model } = setup(['hello', 'never']);
    const first = await agent.run('hi');
    expect(first.usage.totalTokens).toBe(15);
    expect(first.messages.at(-1)?.metadata).toBeUndefined();
    const second = await agent.run('hi');
    expect(second).toMatchObject({ status: 'done', text: 'hello', usage: { totalTokens: 0 } });
    expect(second.messages.at(-1)).toMatchObject({
      model: 'test/scripted',
      metadata: { cacheHit: true },
      usage: { totalTokens: 0 },
    });
    expect(second.changes).toEqual([{ turn: 1, by: 'cache', what: 'answered the model call itself' }]);
    expect(model.requests).toHaveLength(1);
  });

  it('treats requests as different if their provider metadata differs', async () => {
    const { agent, model } = setup(['one', 'two']);
    const ask = (metadata: Record<string, unknown>) =>
      agent.run({ role: 'user', content: 'hi', metadata }).then(({ text }) => text);
    expect(await ask({ provider: { openai: { effort: 'low' } } })).toBe('one');
    expect(await ask({ provider: { openai: { effort: 'high' } } })).toBe('two');
    expect(await ask({ provider: { openai: { effort: 'low' } }, from: 'mail' })).toBe('one');
    expect(model.requests).toHaveLength(2);
  });

  it('costs nothing of a budget', async () => {
    const model = scriptedModel(['hello'], { price: { input: 1, output: 1 } });
    const middleware = [cache()];
    await new Agent({ model, middleware }).run('hi');
    const agent = new Agent({ model, middleware, limits: { tokens: 1, costUsd: 1e-9 } });
    expect(await agent.run('hi')).toMatchObject({ status: 'done', text: 'hello', costUsd: 0 });
  });

  it('marks a hit for outer layers, and nothing else', async () => {
    const seen: unknown[] = [];
    const outer = defineMiddleware({
      name: 'outer',
      afterModel: (ctx) => void seen.push(ctx.metadata.cacheHit),
    });
    const agent = new Agent({ model: scriptedModel(['hello']), middleware: [outer, cache()] });
    await agent.run('hi');
    await agent.run('hi');
    expect(seen).toEqual([undefined, true]);
  });

  it('plays a stored answer as a stream, with the same text and the same events', async () => {
    const { agent } = setup([chunks('Hel', 'lo'), 'never']);
    const [live, stored] = [await collect(agent.stream('hi')), await collect(agent.stream('hi'))];
    expect([...stored.shown.values()]).toEqual(['Hello']);
    expect(stored.result?.text).toBe(live.result?.text);
    expect(new Set(stored.types)).toEqual(new Set(live.types));
  });

  it('replays a turn that asks for tools: they run, and the answer after them comes from the store too', async () => {
    let runs = 0;
    const count = tool({
      name: 'count',
      description: 'Counts.',
      input: z.object({}),
      execute: () => `run ${++runs > 0}`,
    });
    const model = scriptedModel([toolCalls({ name: 'count', text: 'Let me see.' }), 'done']);
    const agent = new Agent({ model, tools: [count], middleware: [cache()] });
    const [first, second] = [await agent.run('hi'), await agent.run('hi')];
    expect(second.text).toBe(first.text);
    expect(second.messages.map(({ role }) => role)).toEqual(['user', 'assistant', 'tool', 'assistant']);
    expect([runs, model.requests.length]).toEqual([2, 2]);
  });

  it('gives replayed calls ids of their own in the same session', async () => {
    const model = scriptedModel([toolCalls({ name: 'look', id: 'x' }), 'done']);
    const forget = defineMiddleware({
      name: 'forget',
      transformContext: (messages) => messages.slice(messages.findLastIndex(({ role }) => role === 'user')),
    });
    const session = new Agent({ model, tools: [look], middleware: [forget, cache()] }).session('s');
    await session.run('hi');
    const { messages } = await session.run('hi');
    expect(messages.map(({ role }) => role)).toEqual(['user', 'assistant', 'tool', 'assistant']);
    expect(messages[2]).not.toMatchObject({ toolCallId: 'x' });
  });

  it.each<[string, ConstructorParameters<typeof Agent>[0], string]>([
    ['the model', { model: scriptedModel(['other'], { id: 'b' }) }, 'hi'],
    ['the provider', { model: scriptedModel(['other'], { provider: 'b' }) }, 'hi'],
    ['the message', { model: scriptedModel(['other']) }, 'hi!'],
    ['the system prompt', { model: scriptedModel(['other']), systemPrompt: 'Be brief.' }, 'hi'],
    ['the tools', { model: scriptedModel(['other']), tools: [look] }, 'hi'],
    ['the settings', { model: scriptedModel(['other']), settings: { temperature: 1 } }, 'hi'],
    ['the tenant', { model: scriptedModel(['other']), tenant: 'b' }, 'hi'],
  ])('makes a new call if %s differs', async (_, options, input) => {
    const middleware = [cache()];
    await new Agent({ model: scriptedModel(['hello']), middleware }).run('hi');
    expect((await new Agent({ ...options, middleware }).run(input)).text).toBe('other');
  });

  it('shares answers within a session only, or with everybody, if told to', async () => {
    const sessions = setup(['one', 'two'], { scope: 'session' });
    expect((await sessions.agent.session('a').run('hi')).text).toBe('one');
    expect((await sessions.agent.session('b').run('hi')).text).toBe('two');
    const middleware = [cache({ scope: 'all' })];
    await new Agent({ model: scriptedModel(['one']), tenant: 'a', middleware }).run('hi');
    expect((await new Agent({ model: scriptedModel([]), tenant: 'b', middleware }).run('hi')).text).toBe(
      'one',
    );
  });

  it('keeps tenants apart whatever the key says, and does not cache calls without a key', async () => {
    const middleware = [
      cache({ key: (ctx) => (JSON.stringify(ctx.messages).includes('private') ? undefined : 'same') }),
    ];
    const run = (tenant: string, answers: string[], input: string) =>
      new Agent({ model: scriptedModel(answers), tenant, middleware })
        .run(input)
        .then(({ text: answer }) => answer);
    expect(await run('a', ['one'], 'hi')).toBe('one');
    expect(await run('a', [], 'ho')).toBe('one');
    expect(await run('b', ['two'], 'hi')).toBe('two');
    expect(await run('a', ['three'], 'private')).toBe('three');
    expect(await run('a', ['four'], 'private')).toBe('four');
  });

  it('keeps tenants apart that have sessions of the same name, and whatever a tenant is called', async () => {
    const run = async (tenant: string, answer: string, cached: Middleware, input = 'hi') => {
      const agent = new Agent({
        model: scriptedModel([answer]),
        tenant,
        store: memoryStore(),
        middleware: [cached],
      });
      return (await agent.session('s').run(input)).text;
    };
    const bySession = cache({ scope: 'session' });
    expect(await run('a', 'one', bySession)).toBe('one');
    expect(await run('b', 'two', bySession)).toBe('two');
    const byInput = cache({ key: (ctx) => textOf(ctx.messages[0]!) });
    expect(await run('a', 'one', byInput, 'b\nhi')).toBe('one');
    expect(await run('a\nb', 'two', byInput, 'hi')).toBe('two');
  });

  describe('concurrent identical requests', () => {
    it('make one call', async () => {
      const { agent, clock, model } = setup([chunks('Hel', 'tick', 'lo')]);
      const runs = await Promise.all(Array.from({ length: 100 }, () => agent.run('hi')));
      expect(new Set(runs.map(({ text: answer }) => answer))).toEqual(new Set(['Hello']));
      expect(model.requests).toHaveLength(1);
      expect(runs.filter(({ usage }) => usage.totalTokens > 0)).toHaveLength(1);
      expect(clock.pending).toBe(0);
    });

    it('make one call with an asynchronous store', async () => {
      const { agent, model } = setup([chunks('Hel', 'tick', 'lo')], { store: slowStore() });
      const runs = await Promise.all(Array.from({ length: 20 }, () => agent.run('hi')));
      expect(new Set(runs.map(({ text: answer }) => answer))).toEqual(new Set(['Hello']));
      expect(model.requests).toHaveLength(1);
    });

    it('make their own calls when the first one fails', async () => {
      const { agent, model } = setup([failWith(new Error('oh'), 'tick'), 'two', 'three']);
      const runs = await Promise.allSettled([agent.run('hi'), agent.run('hi'), agent.run('hi')]);
      expect(runs.map(({ status }) => status)).toEqual(['rejected', 'fulfilled', 'fulfilled']);
      expect(model.requests).toHaveLength(3);
    });

    it('go on with one call when the run of the first one is aborted', async () => {
      const { agent, clock, model } = setup([hang('Hel'), chunks('tick', 'hello')]);
      const abort = new AbortController();
      const first = agent.run('hi', { signal: abort.signal }).catch((error) => error);
      const others = Promise.all([agent.run('hi'), agent.run('hi')]);
      await settle();
      abort.abort();
      expect(await first).toMatchObject({ code: 'ABORTED' });
      expect((await others).map(({ text: answer }) => answer)).toEqual(['hello', 'hello']);
      expect(model.requests).toHaveLength(2);
      expect(clock.pending).toBe(0);
    });

    it('stop waiting when their own run is aborted, and leave no timer', async () => {
      const { agent, clock, model } = setup([hang('Hel')]);
      const [one, two] = [new AbortController(), new AbortController()];
      const first = agent.run('hi', { signal: one.signal }).catch((error) => error);
      const second = agent.run('hi', { signal: two.signal }).catch((error) => error);
      await settle();
      expect(clock.pending).toBe(2);
      two.abort();
      expect(await second).toMatchObject({ code: 'ABORTED' });
      expect(clock.pending).toBe(0);
      one.abort();
      await first;
      expect(model.requests).toHaveLength(1);
    });

    it('are not held up by a run whose stream nobody reads', async () => {
      const clock = fakeClock();
      const long = () => chunks(...Array.from({ length: 600 }, (_, n) => `${n} `));
      const model = scriptedModel([long(), long()]);
      const agent = new Agent({ model, clock, middleware: [cache()] });
      const stalled = agent.stream('hi');
      const reader = stalled[Symbol.asyncIterator]();
      await reader.next();
      await settle();
      const others = [agent.run('hi'), agent.stream('hi').result, agent.run('hi')];
      await settle();
      expect(model.requests).toHaveLength(1);
      await clock.advance(1000);
      const texts = (await Promise.all(others)).map(({ text }) => text.length);
      expect(new Set(texts).size).toBe(1);
      expect(model.requests).toHaveLength(2);
      // The first one gets on as soon as it is read.
      while (!(await reader.next()).done);
      expect((await stalled.result).text).toHaveLength(texts[0]!);
    });

    it('make a call of their own after the longest wait', async () => {
      const { agent, clock, model } = setup([hang('Hel'), 'hello'], { maxWaitMs: 500 });
      const abort = new AbortController();
      const first = agent.run('hi', { signal: abort.signal }).catch(() => {});
      const second = agent.run('hi');
      await clock.advance(500);
      expect((await second).text).toBe('hello');
      expect(model.requests).toHaveLength(2);
      abort.abort();
      await first;
    });
  });

  describe('never stores', () => {
    it.each<[string, Script]>([
      ['an error', failWith(new Error('oh'))],
      ['an answer that failed in the middle', failWith(new Error('oh'), 'Hel')],
      ['an answer that broke off', { parts: [{ type: 'text', text: 'Hel' }] }],
      ['an answer that was cut for its length', chunks('Hel', { type: 'finish', reason: 'length' })],
      ['an answer the provider filtered', chunks('I', { type: 'finish', reason: 'content-filter' })],
    ])('%s', async (_, script) => {
      const { agent } = setup([script, 'hello']);
      await agent.run('hi').catch(() => {});
      expect((await agent.run('hi')).text).toBe('hello');
    });

    it('an aborted answer', async () => {
      const { agent } = setup([hang('Hel'), 'hello']);
      const abort = new AbortController();
      const run = agent.run('hi', { signal: abort.signal }).catch(() => {});
      await settle();
      abort.abort();
      await run;
      expect((await agent.run('hi')).text).toBe('hello');
    });

    it.each(['run', 'stream'] as const)('an answer that a guard refused (%s)', async (mode) => {
      const store = new Map();
      const no = defineMiddleware({
        name: 'no',
        guard: {
          on: ['output'],
          judge: ({ text: said }) => (said.includes('bomb') ? { type: 'deny' } : undefined),
        },
      });
      const model = scriptedModel(['a bomb', 'a cake']);
      const agent = new Agent({ model, middleware: [cache({ store }), no] });
      await (mode === 'run' ? agent.run('hi').catch(() => {}) : collect(agent.stream('hi')));
      expect(store.size).toBe(0);
      expect((await agent.run('hi')).text).toBe('a cake');
    });

    it.each(['run', 'stream'] as const)('a call that a guard refused (%s)', async (mode) => {
      const store = new Map();
      const ran: unknown[] = [];
      const send = tool({
        name: 'send',
        description: 'Sends.',
        input: z.any(),
        execute: (args) => ran.push(args) && 'sent',
      });
      const no = defineMiddleware({
        name: 'no',
        guard: {
          on: ['tool-args'],
          action: 'block',
          find: (said) => (said.includes('bomb') ? [{ start: 0, end: said.length }] : []),
        },
      });
      const call = toolCalls({ name: 'send', args: { what: 'a bomb' } });
      const model = scriptedModel([call, 'ok', call, 'ok']);
      const agent = new Agent({ model, tools: [send], middleware: [cache({ store }), no] });
      for (let i = 0; i < 2; i++) {
        const { messages } = mode === 'run' ? await agent.run('hi') : await agent.stream('hi').result;
        expect(messages[2]).toMatchObject({ content: [{ text: 'Refused by guard "no".' }] });
      }
      expect(ran).toEqual([]);
    });

    it('the answer of a fallback model', async () => {
      const swap = defineMiddleware({
        name: 'swap',
        wrapModel: (_, next) => next({ model: scriptedModel(['spare'], { id: 'spare' }) }),
      });
      const agent = new Agent({ model: scriptedModel([]), middleware: [cache(), swap] });
      expect((await agent.run('hi')).text).toBe('spare');
      expect((await agent.run('hi')).usage.totalTokens).toBe(15);
    });
  });

  describe('with guards and transforms', () => {
    const redact = defineMiddleware({
      name: 'redact',
      guard: {
        on: ['output'],
        find: (said) => [...said.matchAll(/secret/g)].map(({ index }) => ({ start: index, end: index + 6 })),
      },
    });
    const upper = defineMiddleware({
      name: 'upper',
      beforeModel: (ctx) =>
        ctx.transform(
          (): StreamTransform => ({
            part: (part, emit) =>
              emit(part.type === 'text' ? { ...part, text: part.text.toUpperCase() } : part),
          }),
        ),
    });

    it.each(['before', 'after'] as const)(
      'stores and replays only what the guards left, with the guard %s it',
      async (place) => {
        const store = new Map();
        const middleware = place === 'before' ? [redact, cache({ store })] : [cache({ store }), redact];
        const agent = new Agent({ model: scriptedModel([chunks('the sec', 'ret word')]), middleware });
        for (const _ of ['live', 'stored']) {
          const { events, shown, result } = await collect(agent.stream('hi'));
          expect([...shown.values()]).toEqual(['the [redacted] word']);
          expect(result?.text).toBe('the [redacted] word');
          expect(JSON.stringify(events)).not.toContain('secret');
        }
        expect(store.size).toBe(1);
        expect(JSON.stringify([...store])).not.toContain('secret');
      },
    );

    it.each(['run', 'stream'] as const)(
      'does not store an answer with a call that guards refused: it would run with what they left (%s)',
      async (mode) => {
        const ran: unknown[] = [];
        const guard = defineMiddleware({
          name: 'guard',
          guard: {
            on: ['tool-args'],
            action: 'block',
            find: (said) => (said.includes('secret') ? [{ start: 0, end: said.length }] : []),
          },
        });
        const send = tool({ name: 'send', description: '', input: z.any(), execute: (a) => ran.push(a) });
        const call = () => toolCalls({ name: 'send', args: { text: 'secret' } });
        const agent = new Agent({
          model: scriptedModel([call(), 'end', call()]),
          tools: [send],
          middleware: [guard, cache()],
        });
        for (let i = 0; i < 2; i++) {
          const result = mode === 'run' ? await agent.run('go') : (await collect(agent.stream('go'))).result!;
          expect(result.text).toBe('end');
        }
        expect(ran).toEqual([]);
      },
    );

    it('judges a stored answer again, by the guards of the run that gets it', async () => {
      const middleware = [cache()];
      await new Agent({ model: scriptedModel(['a secret']), middleware }).run('hi');
      const strict = new Agent({ model: scriptedModel([]), middleware: [...middleware, redact] });
      expect((await strict.run('hi')).text).toBe('a [redacted]');
    });

    it.each([
      ['outside', 'hello'],
      ['inside', 'HELLO'],
    ] as const)('shows the same live and stored with a transform %s it', async (place, kept) => {
      const store = new Map<string, CacheEntry>();
      const middleware = place === 'outside' ? [upper, cache({ store })] : [cache({ store }), upper];
      const agent = new Agent({ model: scriptedModel([chunks('hel', 'lo')]), middleware });
      for (const _ of ['live', 'stored']) {
        const { shown, result } = await collect(agent.stream('hi'));
        expect([[...shown.values()], result?.text]).toEqual([['HELLO'], 'HELLO']);
      }
      expect([...store.values()][0]?.response.content).toEqual([{ type: 'text', text: kept }]);
    });
  });

  describe('with retry', () => {
    const down = () => failWith(Object.assign(new Error('down'), { status: 503 }), 'Hel');

    it.each(['inside', 'outside'] as const)(
      'stores the good answer only, with the retry %s',
      async (place) => {
        const clock = fakeClock();
        const model = scriptedModel([down(), 'hello']);
        const again = retry({ clock });
        const middleware = place === 'inside' ? [cache(), again] : [again, cache()];
        const agent = new Agent({ model, clock, middleware });
        const run = agent.run('hi');
        await clock.advance(1000);
        expect((await run).text).toBe('hello');
        expect(await agent.run('hi')).toMatchObject({ text: 'hello', usage: { totalTokens: 0 } });
        expect(model.requests).toHaveLength(2);
      },
    );
  });

  describe('the store', () => {
    it('forgets after ttlMs', async () => {
      const { agent, clock, model } = setup(['one', 'two'], { ttlMs: 1000 });
      await agent.run('hi');
      await clock.advance(999);
      expect((await agent.run('hi')).text).toBe('one');
      await clock.advance(1);
      expect((await agent.run('hi')).text).toBe('two');
      expect(model.requests).toHaveLength(2);
    });

    it('is told the ttl, and expired entries are deleted from one that ignores it', async () => {
      const calls: unknown[] = [];
      const map = new Map<string, CacheEntry>();
      const store = {
        get: (key: string) => map.get(key),
        set: (key: string, value: CacheEntry, ttl?: number) => void calls.push(ttl, map.set(key, value).size),
        delete: (key: string) => void calls.push('delete', map.delete(key)),
      };
      const { agent, clock } = setup(['one', 'two'], { store, ttlMs: 1000 });
      await agent.run('hi');
      await clock.advance(1000);
      await agent.run('hi');
      expect(calls).toEqual([1000, 1, 'delete', true, 1000, 1]);
    });

    it('keeps the entries used last, in memory', async () => {
      const { agent } = setup(['a', 'b', 'c', 'b again'], { maxEntries: 2 });
      for (const input of ['a', 'b', 'a', 'c', 'a']) expect((await agent.run(input)).text).toBe(input);
      expect((await agent.run('b')).text).toBe('b again');
    });

    it('holds JSON', async () => {
      const store = new Map<string, CacheEntry>();
      await setup([toolCalls({ name: 'look', text: 'Hm.' }), 'done'], { store }).agent.run('hi');
      expect([...store.values()]).toEqual(JSON.parse(JSON.stringify([...store.values()])));
      expect([...store.keys()].every((key) => /^allium:cache:\w{22}$/.test(key))).toBe(true);
    });

    it('survives the process: another instance finds what the first one stored', async () => {
      const store = slowStore();
      await setup(['hello'], { store }).agent.run('hi');
      expect((await setup([], { store }).agent.run('hi')).text).toBe('hello');
    });

    it.each([null, 'hello', 5, {}, { version: 2 }, { version: 1, response: { role: 'user', content: [] } }])(
      'is asked again when it holds %j',
      async (junk) => {
        const store = { get: () => junk, set: () => {}, delete: () => {} };
        expect((await setup(['hello'], { store }).agent.run('hi')).text).toBe('hello');
      },
    );

    it.each(['get', 'set'] as const)(
      'may fail in %s: the call is made once, and the run reports it',
      async (method) => {
        const store = { ...slowStore(), [method]: async () => Promise.reject(new Error('connection lost')) };
        const { agent, model } = setup(['hello'], { store });
        const { text: answer, changes } = await agent.run('hi');
        expect(answer).toBe('hello');
        expect(model.requests).toHaveLength(1);
        expect(changes).toEqual([
          { turn: 1, by: 'cache', what: 'wrapModel failed and was skipped: connection lost' },
        ]);
      },
    );

    it('does not keep an aborted run waiting', async () => {
      const store = { ...slowStore(), get: () => new Promise(() => {}) };
      const { agent } = setup([], { store });
      const abort = new AbortController();
      const run = agent.run('hi', { signal: abort.signal }).catch((error) => error);
      await settle();
      abort.abort();
      expect(await run).toMatchObject({ code: 'ABORTED' });
    });
  });

  it('keeps two instances apart', async () => {
    const [outer, inner] = [new Map(), new Map()];
    const middleware = [cache({ store: outer, scope: 'session' }), cache({ store: inner })];
    const agent = new Agent({ model: scriptedModel(['hello']), middleware });
    await agent.session('a').run('hi');
    await agent.session('b').run('hi');
    expect([outer.size, inner.size]).toEqual([2, 1]);
  });

  it('is a hazard inside a transform, and none by itself', () => {
    const upper = defineMiddleware({ name: 'upper', traits: ['transforms'], beforeModel() {} });
    const hazards = (...middleware: Parameters<typeof defineMiddleware>) =>
      new Agent({ model: scriptedModel([]), middleware: [...middleware, cache()] }).explain().hazards;
    expect(hazards(upper).map(({ id }) => id)).toEqual(['transform-outside-cache']);
    expect(new Agent({ model: scriptedModel([]), middleware: [cache()] }).explain().hazards).toEqual([]);
  });

  it.each([
    [{ ttlMs: 0 }, 'Expected `ttlMs` to be a finite number ≥ 1, got 0.'],
    [{ maxEntries: 0 }, 'Expected `maxEntries` to be an integer ≥ 1, got 0.'],
    [{ store: {} }, 'Expected `store` to be an object with get(), set(), delete(), got {}.'],
    [
      { store: new Map(), maxEntries: 5 },
      'Expected `maxEntries` to be left out when there is a `store`, which has its own bounds, got 5.',
    ],
    [{ scope: 'user' }, "Expected `scope` to be 'tenant', 'session' or 'all', got \"user\"."],
    [{ key: 'x' }, 'Expected `key` to be a function, got "x".'],
    [{ maxWaitMs: -1 }, 'Expected `maxWaitMs` to be a finite number ≥ 0, got -1.'],
    [{ clock: {} }, 'Expected `clock` to be an object with now(), setTimer(), got {}.'],
    [{ ttl: 5 }, 'Unknown option `ttl` of cache(). '],
    ['memory', 'Expected `options` to be an object with store, ttlMs,'],
  ])('refuses %j', (options, message) => {
    expect(() => cache(options as never)).toThrow(message);
  });
});
