// ctx.suspend(): a tool or a layer asks a person.

import {
  Agent,
  type AgentOptions,
  type Decision,
  type Middleware,
  type Model,
  memoryStore,
  type PendingRequest,
  sleep,
  type ToolContext,
  tool,
  toolResult,
} from 'allium';
import { retry } from 'allium/middleware/retry';
import { collect, fakeClock, scriptedModel, toolCalls } from 'allium/testing';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { asks, calls, idOf, results, withoutResults, world } from '../../../../../test/approval-setup.js';
import {
  breakingStore,
  deferred,
  expectBalanced,
  settle,
  transcript,
  watched,
} from '../../../../../test/run-checks.js';

describe('ctx.suspend() in a tool', () => {
  const booking = (ran: string[], execute?: (ctx: ToolContext) => unknown) =>
    tool({
      name: 'book',
      description: '',
      input: z.object({ n: z.number() }),
      execute: async ({ n }, ctx) => {
        ran.push(`begin ${n}`);
        const answer = await ctx.suspend({ title: `Book ${n}?` });
        if (execute) return execute(ctx);
        return answer.type === 'respond' ? answer.text : answer.type;
      },
    });

  it('suspends the run; siblings that run finish and are journaled; on resume it runs from its start and gets the answer', async () => {
    const ran: string[] = [];
    const free = tool({
      name: 'free',
      description: '',
      input: z.any(),
      execute: () => {
        ran.push('free');
        return 'free';
      },
    });
    const it = world([], { tools: [booking(ran), free] });
    const { result, events } = await it.start('book', 'free');
    expect(result).toMatchObject({
      status: 'suspended',
      pending: [{ kind: 'suspend', title: 'Book 0?', callId: 'c0' }],
    });
    const waits = { type: 'tool_execution_waiting', toolCall: { id: 'c0' }, pending: result.pending };
    const last = events.filter(({ type }) => /^tool_execution_(end|waiting)$/.test(type));
    expect(last).toMatchObject([{ type: 'tool_execution_end', toolCall: { id: 'c1' } }, waits]);
    const done = await it.resume({ [result.pending[0]!.id]: { type: 'respond', text: 'window seat' } });
    expect(results(done)).toEqual(['window seat', 'free']);
    expect(ran).toEqual(['begin 0', 'free', 'begin 0']);
  });

  describe.each<[string, Middleware[]]>([
    ['without layers', []],
    ['in a layer', [{ name: 'layer', wrapTool: (_, next) => next() }]],
    ['in a layer that retries', [retry({ on: 'tool', minDelayMs: 1, retryOn: () => true })]],
    [
      'in a layer that waits after an error result',
      [
        {
          name: 'waits',
          async wrapTool(ctx, next) {
            const result = await next();
            if (result.isError) await sleep(60_000, ctx.signal);
            return result;
          },
        },
      ],
    ],
  ])('%s', (_, middleware) => {
    it.each([
      ['before', 0],
      ['after', 1],
    ])('a sibling that returns an error result %s the question keeps that result', async (_, ticks) => {
      const free = tool({
        name: 'free',
        description: '',
        input: z.any(),
        async execute() {
          for (let i = 0; i < ticks; i++) await settle();
          return toolResult({ content: 'Sold out.', isError: true, details: { seats: 0 } });
        },
      });
      const it = world(middleware, { tools: [booking([]), free] });
      const { result } = await it.start('book', 'free');
      expect(result.status).toBe('suspended');
      const done = await it.resume({ [result.pending[0]!.id]: { type: 'respond', text: 'window seat' } });
      expect(results(done)).toEqual(['window seat', 'Sold out.']);
      expect(done.result.messages.at(-2)).toMatchObject({ isError: true, details: { seats: 0 } });
    });
  });

  it('a sibling that a layer would run again keeps the result it has', async () => {
    const free = tool({
      name: 'free',
      description: '',
      input: z.any(),
      execute: () => settle().then(() => 'free'),
    });
    const twice: Middleware = {
      name: 'twice',
      async wrapTool(ctx, next) {
        if (ctx.is(free)) await next();
        return next();
      },
    };
    const it = world([twice], { tools: [booking([]), free] });
    const { result } = await it.start('book', 'free');
    const done = await it.resume({ [result.pending[0]!.id]: { type: 'respond', text: 'window seat' } });
    expect(results(done)).toEqual(['window seat', 'free']);
  });

  it('is reported as ended if its question cannot be written', async () => {
    const { store } = breakingStore(memoryStore(), 3);
    const { events } = await collect(
      world([], { tools: [booking([])], store })
        .session(calls('book'))
        .stream('go'),
    );
    expect(events.at(-1)).toMatchObject({ type: 'agent_end', result: { status: 'error' } });
    expectBalanced(events);
  });

  it('lets part of the answers come first: the other call keeps waiting', async () => {
    const ran: string[] = [];
    const it = world([], { tools: [booking(ran)] });
    const { result } = await it.start('book', 'book');
    const partly = await it.resume({ [idOf(result.pending, 'c0')]: { type: 'approve' } });
    expect(partly.result).toMatchObject({ status: 'suspended', pending: [{ callId: 'c1' }] });
    const done = await it.resume({ [idOf(result.pending, 'c1')]: { type: 'reject' } });
    expect(results(done)).toEqual(['approve', 'reject']);
    expect(ran).toEqual(['begin 0', 'begin 1', 'begin 0', 'begin 1', 'begin 1']);
  });

  it('may ask several times; each answer is found again', async () => {
    const twice = tool({
      name: 'twice',
      description: '',
      input: z.any(),
      execute: async (_, ctx) =>
        `${(await ctx.suspend({ title: '1' })).type} ${(await ctx.suspend({ title: '2' })).type}`,
    });
    const it = world([], { tools: [twice] });
    const one = await it.start('twice');
    const two = await it.resume({ [one.result.pending[0]!.id]: { type: 'approve' } });
    expect(two.result.pending).toMatchObject([{ title: '2' }]);
    expect(results(await it.resume({ [two.result.pending[0]!.id]: { type: 'reject' } }))).toEqual([
      'approve reject',
    ]);
  });

  it('does not begin later calls of a sequential batch', async () => {
    const ran: string[] = [];
    const after = tool({
      name: 'after',
      description: '',
      input: z.any(),
      sequential: true,
      execute: () => ran.push('after'),
    });
    const it = world([], { tools: [booking(ran), after] });
    const { result } = await it.start('book', 'after');
    expect(ran).toEqual(['begin 0']);
    await it.resume({ [result.pending[0]!.id]: { type: 'approve' } });
    expect(ran).toEqual(['begin 0', 'begin 0', 'after']);
  });

  it('cannot be swallowed', async () => {
    const swallows = tool({
      name: 'swallows',
      description: '',
      input: z.any(),
      execute: async (_, ctx) => {
        await ctx.suspend({}).catch(() => {});
        return 'went on';
      },
    });
    const it = world([], { tools: [swallows] });
    expect((await it.start('swallows')).result).toMatchObject({
      status: 'suspended',
      pending: [{ callId: 'c0' }],
    });
  });

  it('finds its answers again in another attempt', async () => {
    const asked: string[] = [];
    let failures = 0;
    const it = world(
      [
        {
          name: 'retry',
          wrapTool: async (_, next) => {
            try {
              return await next();
            } catch (error) {
              if (failures > 1) throw error;
              return next();
            }
          },
        },
      ],
      {
        tools: [
          booking(asked, () => {
            if (failures++ === 0) throw new Error('flaky');
            return 'booked';
          }),
        ],
      },
    );
    const { result } = await it.start('book');
    expect(results(await it.resume({ [result.pending[0]!.id]: { type: 'approve' } }))).toEqual(['booked']);
  });

  it('leaves the call in doubt only if it broke off after the answer', async () => {
    const ran: string[] = [];
    const store = memoryStore();
    const it = world([], { tools: [booking(ran)], store });
    const { result } = await it.start('book');
    // run_start and tool results: the resume writes the answer, the start of the call, and then breaks.
    const breaking = world([], { tools: [booking(ran)], store: breakingStore(store, 3).store });
    await expect(
      breaking.session('end').resume({ answers: { [result.pending[0]!.id]: { type: 'approve' } } }),
    ).rejects.toThrow('disk full');
    const done = await it.resume({});
    expect(results(done)[0]).toContain('In doubt');
    expect(ran).toEqual(['begin 0', 'begin 0']);
  });

  it.each([
    [
      'wrapTool, before the tool',
      (ask): Middleware => ({ wrapTool: async (ctx, next) => [await ask(ctx), await next()][1] }),
    ],
    [
      'wrapTool, after it',
      (ask): Middleware => ({ wrapTool: async (ctx, next) => [await next(), await ask(ctx)][0] }),
    ],
    ['beforeTool', (ask): Middleware => ({ beforeTool: ask })],
  ] satisfies [string, (ask: (ctx: ToolContext) => Promise<void>) => Middleware][])(
    'is separate from the question of a layer around it (%s)',
    async (_, layer) => {
      const heard: string[] = [];
      const ask = (who: string) => async (ctx: ToolContext) => {
        heard.push(`${who}: ${((await ctx.suspend({ title: who })) as { text: string }).text}`);
      };
      for (const timeoutMs of [undefined, 1000]) {
        const asking = tool({
          name: 'asking',
          description: '',
          input: z.object({}),
          execute: async (_args, ctx) => void (await ask('tool')(ctx)),
          ...(timeoutMs && { timeoutMs }),
        });
        const agent = new Agent({
          model: scriptedModel([toolCalls({ name: 'asking' }), 'end']),
          tools: [asking],
          middleware: [{ name: 'layer', ...layer(ask('layer')) }],
          onRequest: ({ title }) => ({ type: 'respond', text: `to the ${title}` }),
        });
        await agent.run('go');
        expect(heard.splice(0).sort()).toEqual(['layer: to the layer', 'tool: to the tool']);
      }
    },
  );

  const silent = () => new Promise<Decision>(() => {});
  const looks: Middleware = { name: 'looks', beforeToolCall: () => undefined };
  it.each<[how: string, middleware: readonly Middleware[], onRequest: () => Decision | Promise<Decision>]>([
    ['is answered', [], () => ({ type: 'approve' })],
    ['is answered, and a hook decides about calls', [looks], () => ({ type: 'approve' })],
    ['lapses', [], silent],
    [
      'fails, and the tool goes on',
      [],
      () => {
        throw new Error('no line');
      },
    ],
  ])(
    'asked in place, a question that %s leaves the call in doubt after a crash: it is not run again',
    async (how, middleware, onRequest) => {
      const ran: string[] = [];
      const pays = tool({
        name: 'pays',
        description: '',
        input: z.any(),
        execute: async (_, ctx) => {
          const asking = ctx.suspend({ title: 'Pay?', ...(how === 'lapses' && { timeoutMs: 10 }) });
          await asking.catch(() => {});
          ran.push('paid');
          return 'paid';
        },
      });
      const store = memoryStore();
      const clock = fakeClock();
      const options = { tools: [pays], clock };
      const dying = world(middleware, { ...options, store: withoutResults(store) });
      const running = dying.session(calls('pays'), 'end').run('go', { onRequest });
      const died = running.catch((error) => error);
      await settle();
      await clock.advance(10);
      expect(await died).toMatchObject({ cause: { message: 'gone' } });
      const done = await world(middleware, { ...options, store }).resume({});
      expect(results(done)[0]).toContain('In doubt');
      expect(ran).toEqual(['paid']);
    },
  );

  it('is asked again if the process died before the answer, even if it was not the first question', async () => {
    const ran: string[] = [];
    const it = world([], { tools: [booking(ran)] });
    const { result } = await it.start('book');
    // For everybody else this one is dead. Whoever goes on in its place takes the journal from it.
    it.session('end')
      .resume({ onRequest: silent })
      .catch(() => {});
    await settle();
    expect(results(await it.resume({ [result.pending[0]!.id]: { type: 'approve' } }))).toEqual(['approve']);
  });

  it('is answered in place by onRequest, and waiting for it is not active time', async () => {
    const clock = fakeClock();
    const answer = deferred<Decision>();
    const agent = new Agent({
      model: scriptedModel([calls('book'), 'end']),
      tools: [booking([])],
      clock,
      limits: { timeoutMs: 100 },
      onRequest: () => answer.promise,
    });
    const running = watched(agent, 'go');
    await clock.advance(1000);
    answer.resolve({ type: 'approve' });
    expect((await running).result).toMatchObject({ status: 'done' });
  });

  const asking = (hears: (answer: string) => void = () => {}) =>
    tool({
      name: 'asks',
      description: '',
      input: z.any(),
      async execute(_, ctx) {
        const { type } = await ctx.suspend({ title: 'May I?' });
        hears(type);
        return type;
      },
    });

  it.each<[string, Middleware[]]>([
    ['overlap', [{ name: 'both', wrapTool: async (_, next) => (await Promise.all([next(), next()]))[0] }]],
    [
      'follow one that was given up',
      [
        { name: 'again', wrapTool: (_, next) => next().catch(() => next()) },
        {
          name: 'impatient',
          async wrapTool(ctx, next) {
            const answered = next();
            if (ctx.attempt > 1) return answered;
            await settle();
            throw new Error('Nobody answers.');
          },
        },
      ],
    ],
  ])('is asked once by attempts that %s', async (_, middleware) => {
    const asked: string[] = [];
    const answer = deferred<Decision>();
    const store = memoryStore();
    const given: string[] = [];
    const agent = new Agent({
      model: scriptedModel([calls('asks'), 'end']),
      tools: [asking((type) => given.push(type))],
      store,
      middleware,
      onRequest: ({ id }) => {
        asked.push(id);
        return answer.promise;
      },
    });
    const running = agent.session('s').run('go');
    await settle();
    await settle();
    answer.resolve({ type: 'approve' });
    expect((await running).status).toBe('done');
    expect(asked).toHaveLength(1);
    expect(given).toContain('approve');
    const entries = await store.read('s', 1);
    expect(entries.filter(({ type }) => type === 'answer')).toHaveLength(1);
    // Whoever waits has not begun, by the journal: should the process die now, the question is still there.
    const answered = entries.findIndex(({ type }) => type === 'answer');
    expect(entries[answered - 1]!.type).toBe('request');
  });

  it('is asked again after an invalid answer', async () => {
    const answers = [{ type: 'maybe' }, { type: 'approve' }] as Decision[];
    const agent = new Agent({
      model: scriptedModel([calls('asks'), 'end']),
      tools: [asking()],
      middleware: [{ name: 'twice', wrapTool: (_, next) => next().catch(() => next()) }],
      onRequest: () => answers.shift(),
    });
    expect(results(await watched(agent, 'go'))).toEqual(['approve']);
    expect(answers).toEqual([]);
  });

  it('works in beforeToolCall too, and is refused once the tool has run', async () => {
    const hook: Middleware = {
      name: 'hook',
      beforeToolCall: async (ctx) =>
        (await ctx.suspend({ title: 'From a hook' })).type === 'approve'
          ? undefined
          : { block: true, reason: 'No.' },
    };
    const it = world([hook]);
    const { result } = await it.start('a');
    expect(result).toMatchObject({ status: 'suspended', pending: [{ title: 'From a hook', by: 'hook' }] });
    expect(results(await it.resume({ [result.pending[0]!.id]: { type: 'approve' } }))).toEqual(['a 0']);

    const hasty = world([
      { name: 'hasty', beforeToolCall: (ctx) => void ctx.suspend({ title: 'Not awaited' }) },
    ]);
    expect((await hasty.start('a')).result).toMatchObject({
      status: 'suspended',
      pending: [{ title: 'Not awaited' }],
    });
    expect(hasty.ran).toEqual([]);

    const late = world([{ name: 'late', afterToolCall: async (ctx) => void (await ctx.suspend({})) }]);
    const done = await watched(late.session(calls('a'), 'end'), 'go');
    expect(results(done)[0]).toContain('after the tool had run');
  });

  it.each([
    ['please'],
    [{ titel: 'May it?' }],
    [{ title: 5 }],
    [{ timeoutMs: '5' }],
    [{ timeoutMs: -1 }],
    [{ details: () => {} }],
    [{ onRequest: true }],
  ])('takes a request, and not %o', async (request) => {
    const bad = tool({
      name: 'bad',
      description: '',
      input: z.any(),
      execute: (_, ctx) => ctx.suspend(request as never),
    });
    const agent = new Agent({ model: scriptedModel([calls('bad'), 'end']), tools: [bad] });
    expect(results(await watched(agent, 'go'))[0]).toContain(
      'ctx.suspend() takes a request { title?, details?, timeoutMs?, decisions?, remember?, onRequest? }, got',
    );
    const asking = new Agent({
      model: scriptedModel([calls('bad'), 'end']),
      tools: [bad],
      middleware: [asks(request as never)],
    });
    expect(results(await watched(asking, 'go'))[0]).toContain('{ ask: { title?, details?');
  });

  it.each([
    ['at once', (_: unknown, ctx: ToolContext) => void ctx.suspend({ title: 'Wipe?' })],
    ['later', async (_: unknown, ctx: ToolContext) => void ctx.suspend({ title: 'Wipe?' })],
  ])('counts even if a tool that ends %s does not wait for the answer', async (_, execute) => {
    const wipe = tool({ name: 'wipe', description: '', input: z.any(), execute });
    const session = new Agent({ model: scriptedModel([calls('wipe'), 'end']), tools: [wipe] }).session('s');
    const result = await session.run('go');
    expect(result).toMatchObject({ status: 'suspended', pending: [{ title: 'Wipe?' }] });
    const answers = { [result.pending[0]!.id]: { type: 'approve' as const } };
    expect((await session.resume({ answers })).text).toBe('end');
  });
});

describe('a question that is another one when the tool begins again', () => {
  /** A tool that asks about whatever there is to remove by then. */
  const removing = (files: string[], keyed: boolean, removed: string[] = [], times = 2) => {
    const remove = tool({
      name: 'remove',
      description: '',
      input: z.object({}),
      async execute(_, ctx) {
        const file = files.shift()!;
        if (file === '') return 'nothing to remove';
        const { type } = await ctx.suspend({ title: `Remove ${file}?`, ...(keyed && { key: file }) });
        removed.push(`${file}: ${type}`);
        return removed.at(-1)!;
      },
    });
    const calls = Array.from({ length: times }, () => ({ name: 'remove' }));
    // By what was said: sub-agents run at the same time.
    const [begin, end] = [
      scriptedModel([toolCalls(...calls)], { repeat: true }),
      scriptedModel(['done'], { repeat: true }),
    ];
    const model: Model = {
      ...begin,
      stream: (request, options) =>
        (request.messages.at(-1)?.role === 'tool' ? end : begin).stream(request, options),
    };
    return new Agent({ model, store: memoryStore(), tools: [remove] });
  };
  const approve = (...ids: string[]) => ({
    answers: Object.fromEntries(ids.map((id) => [id, { type: 'approve' } as const])),
  });

  it('is asked anew if it has another key, and nobody is asked the old one any more', async () => {
    const session = removing(['a', 'x', 'b', 'c', 'b', 'c'], true).session('s');
    const first = await session.run('go');
    expect(first.pending.map(({ title }) => title)).toEqual(['Remove a?', 'Remove x?']);
    const second = await session.resume(approve(first.pending[0]!.id));
    expect(second.pending.map(({ title }) => title)).toEqual(['Remove b?', 'Remove c?']);
    const result = await session.resume(approve(...second.pending.map(({ id }) => id)));
    expect(results({ result } as never)).toEqual(['b: approve', 'c: approve']);
  });

  it.each([
    ['', (agent: Agent) => agent],
    [
      ', by sub-agents',
      (agent: Agent) => {
        const model = scriptedModel([toolCalls({ name: 'child', args: { prompt: 'go' } }), 'done']);
        const tools = [agent.asTool({ name: 'child', description: '' })];
        return new Agent({ model, store: memoryStore(), tools });
      },
    ],
  ])('can be asked again after another one%s', async (_, around) => {
    const removed: string[] = [];
    const session = around(removing(['a', 'x', 'b', 'c', 'b', 'x', 'x'], true, removed)).session('s');
    const first = await session.run('go');
    const second = await session.resume(approve(first.pending[0]!.id));
    const third = await session.resume(approve(second.pending[0]!.id));
    expect(third.pending.map(({ title }) => title)).toEqual(['Remove x?']);
    const { status } = await session.resume(approve(third.pending[0]!.id));
    expect(status).toBe('done');
    expect(removed).toEqual(['b: approve', 'x: approve']);
  });

  it('is gone if the sub-agent that asked it ends without it', async () => {
    const child = removing(['a', 'x', '', 'y'], true, [], 1).asTool({ name: 'child', description: '' });
    const both = ['1', '2'].map((prompt) => ({ name: 'child', args: { prompt } }));
    const model = scriptedModel([toolCalls(...both), 'done']);
    const session = new Agent({ model, store: memoryStore(), tools: [child] }).session('s');
    const first = await session.run('go');
    expect(first.pending.map(({ title }) => title)).toEqual(['Remove a?', 'Remove x?']);
    const second = await session.resume(approve(first.pending[1]!.id));
    expect(second.pending.map(({ title }) => title)).toEqual(['Remove y?']);
  });

  it('gets its own answer, in whatever order they are asked now', async () => {
    const orders = [
      ['a', 'b', 'a'],
      ['b', 'a', 'a'],
    ];
    const both = tool({
      name: 'both',
      description: '',
      input: z.object({}),
      async execute(_, ctx) {
        const said: string[] = [];
        for (const key of orders[Math.min(runs++, 1)]!) {
          const answer = await ctx.suspend({ title: key, key });
          said.push(`${key}: ${answer.type === 'respond' ? answer.text : answer.type}`);
        }
        return said.join(', ');
      },
    });
    let runs = 0;
    const model = scriptedModel([toolCalls({ name: 'both' }), 'done']);
    const session = new Agent({ model, tools: [both], store: memoryStore() }).session('s');
    let result = await session.run('go');
    for (let n = 1; result.status === 'suspended'; n++) {
      const [{ id, title }] = result.pending as [PendingRequest];
      result = await session.resume({ answers: { [id]: { type: 'respond', text: `${title}${n}` } } });
    }
    expect(results({ result } as never)).toEqual(['b: b2, a: a1, a: a3']);
  });

  it('gets the answer of the one before if it has none', async () => {
    const session = removing(['a', 'b', 'c', 'd'], false).session('s');
    const { pending } = await session.run('go');
    const result = await session.resume(approve(...pending.map(({ id }) => id)));
    expect(results({ result } as never)).toEqual(['c: approve', 'd: approve']);
  });
});

describe('ctx.suspend() in a layer that does not wait for the answer', () => {
  const ask = (ctx: ToolContext) => void ctx.suspend({ title: 'Wipe?' });
  const inner: Middleware = { name: 'inner', wrapTool: async (_, next) => await next() };
  const layers: [string, Middleware][] = [
    [
      'wrapTool that returns next()',
      {
        wrapTool(ctx, next) {
          ask(ctx);
          return next();
        },
      },
    ],
    [
      'wrapTool that awaits next()',
      {
        async wrapTool(ctx, next) {
          ask(ctx);
          await next();
        },
      },
    ],
    ['beforeTool', { beforeTool: ask }],
    ['async beforeTool', { beforeTool: async (ctx) => ask(ctx) }],
  ];
  const world = (asking: Middleware, onRequest?: AgentOptions['onRequest']) => {
    const order: string[] = [];
    const wipe = tool({
      name: 'wipe',
      description: '',
      input: z.any(),
      execute: () => String(order.push('wiped')),
    });
    const agent = new Agent({
      model: scriptedModel([calls('wipe'), 'end']),
      tools: [wipe],
      middleware: [{ ...asking, name: 'asking' }, inner],
      ...(onRequest && { onRequest }),
    });
    return { session: agent.session('s'), order };
  };

  it.each(layers)('suspends before the tool runs: %s', async (_, asking) => {
    const { session, order } = world(asking);
    const result = await session.run('go');
    expect(result).toMatchObject({ status: 'suspended', pending: [{ title: 'Wipe?', by: 'asking' }] });
    expect(order).toEqual([]);
    const answers = { [result.pending[0]!.id]: { type: 'approve' as const } };
    expect((await session.resume({ answers })).text).toBe('end');
    expect(order).toEqual(['wiped']);
  });

  it.each(layers)('has a handler answer before the tool runs: %s', async (_, asking) => {
    const { session, order } = world(asking, async () => {
      await settle();
      order.push('answered');
      return { type: 'approve' };
    });
    expect((await session.run('go')).text).toBe('end');
    expect(order).toEqual(['answered', 'wiped']);
  });

  it.each<[string, Middleware]>([
    ['a result of its own', { wrapTool: async (ctx) => ask(ctx) ?? ('kept' as never) }],
    ['the result of the tool', { wrapTool: (ctx, next) => next().finally(() => ask(ctx)) }],
    ['afterTool', { afterTool: ask }],
  ])('has no result before the answer, with %s', async (_, asking) => {
    const { session } = world(asking);
    expect(await session.run('go')).toMatchObject({ status: 'suspended', pending: [{ title: 'Wipe?' }] });
    const failing = world(asking, () => Promise.reject(new Error('nobody there')));
    const { messages } = await failing.session.run('go');
    expect(transcript(messages)[2]).toContain('nobody there');
  });
});
