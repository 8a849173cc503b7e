import { Agent, defineMiddleware, type Tool, type ToolContext, textOf, tool, toolResult } from 'allium';
import { retry } from 'allium/middleware/retry';
import { type ToolCacheEntry, type ToolCacheOptions, toolCache } from 'allium/middleware/tool-cache';
import { fakeClock, scriptedModel, testMiddleware, text, toolCalls } from 'allium/testing';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';

testMiddleware(({ clock }) => toolCache({ clock }), { name: 'tool-cache', describe, it });
testMiddleware(
  ({ clock }) => toolCache({ clock, tools: ['kit_add', 'kit_slow', 'kit_fail', 'kit_suspend'] }),
  {
    name: 'tool-cache of some tools',
    neutral: ({ clock }) => toolCache({ clock }),
    skip: {
      'no-shared-state': 'a tool that ran in one run does not run again in the next: that is its purpose',
    },
    describe,
    it,
  },
);

type Execute = (args: { q?: unknown }, ctx: ToolContext) => unknown;

/** An agent that calls `find` with these arguments, one call per turn, and what the tool was called with. */
function setup(execute: Execute, options: ToolCacheOptions = { tools: ['find'] }, tags: string[] = []) {
  const clock = fakeClock(1000);
  const calls: unknown[] = [];
  const find = tool({
    name: 'find',
    description: 'Finds.',
    input: z.object({ q: z.unknown() }),
    tags,
    execute(args, ctx) {
      calls.push(args.q);
      return execute(args, ctx);
    },
  });
  const middleware = [toolCache(options)];
  /** The results of a run in which the model makes these calls, each in a turn of its own or all at once. */
  const run = async (
    asked: readonly unknown[],
    more: { tenant?: string; session?: string; atOnce?: boolean; signal?: AbortSignal } = {},
  ) => {
    const ask = (q: unknown, i: number) => ({
      name: 'find',
      args: q === undefined ? {} : { q },
      id: `c${i}`,
    });
    const turns = more.atOnce ? [toolCalls(...asked.map(ask))] : asked.map((q, i) => toolCalls(ask(q, i)));
    const model = scriptedModel([...turns, text('done')]);
    const agent = new Agent({
      model,
      clock,
      tools: [find],
      middleware,
      ...(more.tenant && { tenant: more.tenant }),
    });
    const result = await agent
      .session(more.session ?? agent.newId())
      .run('hi', { ...(more.signal && { signal: more.signal }) });
    const results = result.messages.filter((message) => message.role === 'tool');
    return Object.assign(
      results.map(({ content }) => content.map((part) => (part.type === 'text' ? part.text : '')).join('')),
      { result, raw: results },
    );
  };
  return { run, calls, clock };
}

const settle = () => fakeClock().advance(0);

describe('tool-cache', () => {
  it('runs the tool once for identical calls, in one run and in others', async () => {
    const { run, calls } = setup(({ q }) => `found ${q}`);
    expect([...(await run(['a', 'a', 'b']))]).toEqual(['found a', 'found a', 'found b']);
    const second = await run(['b']);
    expect([...second]).toEqual(['found b']);
    expect(second.result.changes).toEqual([
      { turn: 1, by: 'tool-cache', what: 'answered the tool call itself' },
    ]);
    expect(calls).toEqual(['a', 'b']);
  });

  it('does not wait for a call from inside that call', async () => {
    const keep = toolCache({ tools: ['dig'] });
    let depth = 0;
    const dig: Tool = tool({
      name: 'dig',
      description: 'Digs.',
      input: z.object({}),
      async execute(_, ctx) {
        if (++depth === 3) return 'the bottom';
        const child = new Agent({
          model: scriptedModel([toolCalls({ name: 'dig' }), text('deeper')]),
          tools: [dig],
          middleware: [keep],
        });
        const { messages } = await child.run('Dig.', { parent: ctx });
        return messages[2]!.content;
      },
    });
    const model = scriptedModel([toolCalls({ name: 'dig' }), text('deep')]);
    const { messages } = await new Agent({ model, tools: [dig], middleware: [keep] }).run('Dig.');
    expect(messages[2]).toMatchObject({ isError: false, content: [{ text: 'the bottom' }] });
    expect(depth).toBe(3);
  });

  it('does not mind the order of keys', async () => {
    const { run, calls } = setup(() => 'ok');
    await run([
      { x: 1, y: [2] },
      { y: [2], x: 1 },
      { x: 1, y: [3] },
    ]);
    expect(calls).toHaveLength(2);
  });

  it('runs a tool that is neither named nor tagged each time', async () => {
    const { run, calls } = setup(() => 'ok', {});
    await run(['a', 'a']);
    expect(calls).toHaveLength(2);
  });

  it('keeps results of tools that are tagged cacheable, or that a function picks', async () => {
    for (const [options, tags] of [
      [{}, ['cacheable']],
      [{ tools: (ctx: ToolContext) => ctx.toolCall.name === 'find' }, []],
    ] as const) {
      const { run, calls } = setup(() => 'ok', options, [...tags]);
      await run(['a', 'a']);
      expect(calls).toHaveLength(1);
    }
  });

  it('keeps all of a result: content, details and terminate', async () => {
    const { run, calls } = setup(() => toolResult({ content: 'ok', details: { rows: 3 } }));
    const { raw } = await run(['a', 'a']);
    expect(raw.map(({ details }) => details)).toEqual([{ rows: 3 }, { rows: 3 }]);
    expect(calls).toHaveLength(1);
  });

  it('keeps tenants apart, and sessions when told to', async () => {
    const tenants = setup(() => 'ok');
    for (const tenant of ['a', 'b', 'a']) await tenants.run(['x'], { tenant });
    expect(tenants.calls).toHaveLength(2);
    const sessions = setup(() => 'ok', { tools: ['find'], scope: 'session' });
    await sessions.run(['x', 'x'], { session: 's' });
    await sessions.run(['x'], { session: 't' });
    expect(sessions.calls).toHaveLength(2);
    const all = setup(() => 'ok', { tools: ['find'], scope: 'all' });
    for (const tenant of ['a', 'b']) await all.run(['x'], { tenant });
    expect(all.calls).toHaveLength(1);
  });

  it('keeps different tools of the same name apart, and knows a tool that was made again', async () => {
    const shared = toolCache({ tools: ['search'] });
    let runs = 0;
    const answered = async (description: string) => {
      const execute = () => `${description} ${++runs}`;
      const search = tool({ name: 'search', description, input: z.object({}), execute }) as Tool;
      const model = scriptedModel([toolCalls({ name: 'search' }), text('done')]);
      const { messages } = await new Agent({ model, tools: [search], middleware: [shared] }).run('hi');
      return textOf(messages[2]!);
    };
    expect(await answered('The web.')).toBe('The web. 1');
    expect(await answered('Our documents.')).toBe('Our documents. 2');
    expect(await answered('The web.')).toBe('The web. 1');
  });

  it('takes a key of your own, and does not cache calls without one', async () => {
    const key = (ctx: ToolContext) => (ctx.args.q === 'live' ? undefined : String(ctx.args.q).toLowerCase());
    const { run, calls } = setup(() => 'ok', { tools: ['find'], key });
    await run(['Onion', 'onion', 'live', 'live']);
    expect(calls).toEqual(['Onion', 'live', 'live']);
  });

  it('forgets after ttlMs', async () => {
    const { run, calls, clock } = setup(() => `at ${clock.now()}`, { tools: ['find'], ttlMs: 500 });
    await run(['a']);
    await clock.advance(499);
    expect([...(await run(['a']))]).toEqual(['at 1000']);
    await clock.advance(1);
    expect([...(await run(['a']))]).toEqual(['at 1500']);
    expect(calls).toHaveLength(2);
  });

  it('keeps the results used last, in memory', async () => {
    const { run, calls } = setup(() => 'ok', { tools: ['find'], maxEntries: 2 });
    await run(['a', 'b', 'a', 'c', 'a', 'b']);
    expect(calls).toEqual(['a', 'b', 'c', 'b']);
  });

  describe('concurrent identical calls', () => {
    const slow = async () => {
      await settle();
      return 'ok';
    };

    it('run the tool once, in one batch and in 100 runs', async () => {
      const { run, calls, clock } = setup(slow);
      expect([...(await run(['a', 'a', 'a'], { atOnce: true }))]).toEqual(['ok', 'ok', 'ok']);
      const runs = await Promise.all(Array.from({ length: 100 }, () => run(['b'])));
      expect(runs.every(([result]) => result === 'ok')).toBe(true);
      expect(calls).toEqual(['a', 'b']);
      expect(clock.pending).toBe(0);
    });

    it('run it themselves when the first one fails', async () => {
      let failed = false;
      const { run, calls } = setup(async () => {
        await settle();
        if (failed) return 'ok';
        failed = true;
        throw new Error('oh');
      });
      const results = await run(['a', 'a', 'a'], { atOnce: true });
      expect(results.raw.map(({ isError }) => isError)).toEqual([true, false, false]);
      expect(calls).toHaveLength(3);
    });

    it('go on with one call when the run of the first one is aborted', async () => {
      let first = true;
      const { run, calls, clock } = setup((_, ctx) => {
        if (!first) return slow();
        first = false;
        return new Promise((_resolve, reject) =>
          ctx.signal.addEventListener('abort', () => reject(ctx.signal.reason)),
        );
      });
      const abort = new AbortController();
      const one = run(['a'], { signal: abort.signal }).catch(({ code }) => code);
      await settle();
      const others = Promise.all([run(['a']), run(['a'])]);
      await settle();
      abort.abort();
      expect(await one).toBe('ABORTED');
      expect((await others).map(([result]) => result)).toEqual(['ok', 'ok']);
      expect(calls).toHaveLength(2);
      expect(clock.pending).toBe(0);
    });

    it('stop waiting when their own run is aborted, or after the longest wait', async () => {
      let first = true;
      const { run, calls, clock } = setup(
        (_, ctx) => {
          if (!first) return 'ok';
          first = false;
          return new Promise((_resolve, reject) =>
            ctx.signal.addEventListener('abort', () => reject(ctx.signal.reason)),
          );
        },
        { tools: ['find'], maxWaitMs: 500 },
      );
      const [a, b] = [new AbortController(), new AbortController()];
      const one = run(['a'], { signal: a.signal }).catch(({ code }) => code);
      await settle();
      const two = run(['a'], { signal: b.signal }).catch(({ code }) => code);
      const three = run(['a']);
      await settle();
      expect(clock.pending).toBe(2);
      b.abort();
      expect(await two).toBe('ABORTED');
      expect(clock.pending).toBe(1);
      await clock.advance(500);
      expect([...(await three)]).toEqual(['ok']);
      expect(calls).toHaveLength(2);
      a.abort();
      await one;
    });
  });

  describe('never stores', () => {
    it.each<[string, Execute]>([
      [
        'what a tool throws',
        () => {
          throw new Error('oh');
        },
      ],
      ['an error result', () => toolResult({ content: 'oh', isError: true })],
      ['what a tool rejects with', () => Promise.reject(new Error('oh'))],
    ])('%s', async (_, execute) => {
      const { run, calls } = setup(execute);
      const { raw } = await run(['a', 'a']);
      expect(raw.map(({ isError }) => isError)).toEqual([true, true]);
      expect(calls).toHaveLength(2);
    });

    it('a suspension or a stop', async () => {
      for (const execute of [
        (_: unknown, ctx: ToolContext) => ctx.suspend({ title: 'May I?' }),
        (_: unknown, ctx: ToolContext) => ctx.stop(),
      ]) {
        const { run, calls } = setup(execute);
        const ends = [(await run(['a'])).result.status, (await run(['a'])).result.status];
        expect(ends[0]).toBe(ends[1]);
        expect(['suspended', 'stopped']).toContain(ends[0]);
        expect(calls).toHaveLength(2);
      }
    });
  });

  it('stores only what the guards left, and judges it again', async () => {
    const store = new Map<string, ToolCacheEntry>();
    const redact = defineMiddleware({
      name: 'redact',
      guard: {
        on: ['tool-result'],
        find: (said) => [...said.matchAll(/secret/g)].map(({ index }) => ({ start: index, end: index + 6 })),
      },
    });
    const find = tool({
      name: 'find',
      description: 'Finds.',
      input: z.object({}),
      execute: () => 'the secret word',
    });
    const model = scriptedModel([toolCalls({ name: 'find' }), 'done'], { repeat: true });
    const agent = new Agent({
      model,
      tools: [find],
      middleware: [toolCache({ tools: ['find'], store }), redact],
    });
    for (const _ of ['live', 'stored']) {
      const { messages } = await agent.run('hi');
      expect(JSON.stringify(messages)).toContain('the [redacted] word');
      expect(JSON.stringify(messages)).not.toContain('secret');
    }
    expect(store.size).toBe(1);
    expect(JSON.stringify([...store])).not.toContain('secret');
  });

  it.each(['inside', 'outside'] as const)('keeps the good result only, with a retry %s', async (place) => {
    const clock = fakeClock();
    let calls = 0;
    const find = tool({
      name: 'find',
      description: 'Finds.',
      input: z.object({}),
      execute() {
        if (++calls === 1) throw Object.assign(new Error('reset'), { code: 'ECONNRESET' });
        return 'ok';
      },
    });
    const [kept, again] = [toolCache({ tools: ['find'] }), retry({ on: 'tool', clock })];
    const model = scriptedModel([toolCalls({ name: 'find' }), toolCalls({ name: 'find' }), 'done']);
    const agent = new Agent({
      model,
      clock,
      tools: [find],
      middleware: place === 'inside' ? [kept, again] : [again, kept],
    });
    const run = agent.run('hi');
    await clock.advance(10_000);
    expect(
      (await run).messages.filter((message) => message.role === 'tool').map(({ isError }) => isError),
    ).toEqual([false, false]);
    expect(calls).toBe(2);
  });

  describe('the store', () => {
    /** Like one behind a network: asynchronous, and what it holds is a copy. */
    function remote() {
      const texts = new Map<string, string>();
      return {
        get: async (key: string): Promise<unknown> =>
          texts.has(key) ? JSON.parse(texts.get(key)!) : undefined,
        set: async (key: string, value: ToolCacheEntry) => void texts.set(key, JSON.stringify(value)),
        delete: async (key: string) => texts.delete(key),
      };
    }

    it('may be asynchronous, and survives the process', async () => {
      const store = remote();
      await setup(() => 'ok', { tools: ['find'], store }).run(['a']);
      const { run, calls } = setup(() => 'never', { tools: ['find'], store });
      expect([...(await run(['a']))]).toEqual(['ok']);
      expect(calls).toEqual([]);
    });

    it.each(['get', 'set'] as const)(
      'may fail in %s: the tool runs once, and the run reports it',
      async (method) => {
        const store = { ...remote(), [method]: async () => Promise.reject(new Error('connection lost')) };
        const { run, calls } = setup(() => 'ok', { tools: ['find'], store });
        const results = await run(['a']);
        expect([...results]).toEqual(['ok']);
        expect(calls).toHaveLength(1);
        expect(results.result.changes).toEqual([
          { turn: 1, by: 'tool-cache', what: 'wrapTool failed and was skipped: connection lost' },
        ]);
      },
    );

    it.each([null, 5, {}, { version: 1, result: {} }])('is ignored if it holds %j', async (junk) => {
      const store = { get: () => junk, set: () => {}, delete: () => {} };
      expect([...(await setup(() => 'ok', { tools: ['find'], store }).run(['a']))]).toEqual(['ok']);
    });
  });

  it.each([
    ['key', 'a promise', { tools: ['find'], key: async () => 'k' }],
    ['key', 'an object', { tools: ['find'], key: () => ({}) }],
    ['tools', 'a promise', { tools: async () => false }],
    ['tools', 'a promise that fails', { tools: () => Promise.reject(new Error('no')) }],
  ])('runs the tool if %s() returns %s', async (option, _, options) => {
    const { run } = setup(({ q }) => `found ${q}`, options as never);
    const found = await run(['a', 'b']);
    expect([...found]).toEqual(['found a', 'found b']);
    expect(found.result.changes[0]?.what).toContain(`Expected \`${option}()\` to be`);
  });

  it('takes tools as well as their names', async () => {
    const ran: string[] = [];
    const note = (name: string) =>
      tool({ name, description: name, input: z.object({}), execute: () => ran.push(name) });
    const [a, b, c] = [note('a'), note('b'), note('c')];
    const calls = toolCalls({ name: 'a' }, { name: 'b' }, { name: 'c' });
    const agent = new Agent({
      model: scriptedModel([calls, calls, 'done']),
      tools: [a, b, c],
      middleware: [toolCache({ tools: [a, 'b'] })],
    });
    await agent.run('hi');
    expect(ran).toEqual(['a', 'b', 'c', 'c']);
    expect(agent.explain().hazards).toEqual([]);
  });

  it('keeps two instances apart', async () => {
    const [one, other] = [new Map(), new Map()];
    const find = (name: string) =>
      tool({ name, description: name, input: z.object({}), execute: () => name });
    const model = scriptedModel([toolCalls({ name: 'a', id: 'x' }, { name: 'b', id: 'y' }), 'done']);
    const middleware = [toolCache({ tools: ['a'], store: one }), toolCache({ tools: ['b'], store: other })];
    await new Agent({ model, tools: [find('a'), find('b')], middleware }).run('hi');
    expect([one.size, other.size]).toEqual([1, 1]);
  });

  it.each([
    [{ tools: 'find' }, 'Expected `tools` to be a list of tool names and tools, or a function, got "find".'],
    [{ tools: [5] }, 'Expected `tools` to be a list of tool names and tools, or a function, got [5].'],
    [{ ttlMs: 0 }, 'Expected `ttlMs` to be a finite number ≥ 1, got 0.'],
    [{ maxEntries: 0 }, 'Expected `maxEntries` to be an integer ≥ 1, got 0.'],
    [{ store: [] }, 'Expected `store` to be an object with get(), set(), delete(), got [].'],
    [
      { store: new Map(), maxEntries: 5 },
      'Expected `maxEntries` to be left out when there is a `store`, which has its own bounds, got 5.',
    ],
    [{ scope: 'run' }, "Expected `scope` to be 'tenant', 'session' or 'all', got \"run\"."],
    [{ key: 5 }, 'Expected `key` to be a function, got 5.'],
    [{ maxWaitMs: -1 }, 'Expected `maxWaitMs` to be a finite number ≥ 0, got -1.'],
    [{ tool: ['find'] }, 'Unknown option `tool` of toolCache(). Did you mean `tools`?'],
    [null, 'Expected `options` to be an object with tools,'],
  ])('refuses %j', (options, message) => {
    expect(() => toolCache(options as never)).toThrow(message);
  });
});
