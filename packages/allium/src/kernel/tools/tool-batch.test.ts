/** Tool batches: every call gets exactly one result, in call order, whatever happens. */
import {
  Agent,
  assistantMessage,
  defineState,
  type Middleware,
  memoryStore,
  type Tool,
  type ToolContext,
  textOf,
  tool,
  toolCallsOf,
  toolResult,
} from 'allium';
import { chunks, fakeClock, scriptedModel, text, toolCalls } from 'allium/testing';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import {
  breakingStore,
  deferred,
  expectValidHistory,
  settle,
  transcript,
  watch,
  watched,
} from '../../../../../test/run-checks.js';

type Execute = (args: { n?: number }, ctx: ToolContext) => unknown;
const make = (name: string, execute: Execute, options: Partial<Tool> = {}): Tool =>
  tool({
    name,
    description: '',
    input: z.object({ n: z.number().optional() }),
    execute,
    ...(options as object),
  });
const calls = (...names: string[]) =>
  toolCalls(...names.map((name, n) => ({ name, args: { n }, id: `c${n}` })));
const results = (messages: readonly { role: string; content: readonly { type: string }[] }[]) =>
  messages.filter(({ role }) => role === 'tool').map(textOf);

/** Tools that wait until they are let go, and a record of who runs when. */
function gates() {
  const open = new Map<number, ReturnType<typeof deferred<void>>>();
  const log: string[] = [];
  const execute: Execute = async ({ n = 0 }) => {
    log.push(`+${n}`);
    const gate = deferred();
    open.set(n, gate);
    await gate.promise;
    log.push(`-${n}`);
    return `r${n}`;
  };
  const release = async (n: number) => {
    open.get(n)!.resolve();
    await settle();
  };
  return { execute, log, release };
}

describe('tool batches', () => {
  it('run in parallel by default, with results in call order', async () => {
    const { execute, log, release } = gates();
    const agent = new Agent({
      model: scriptedModel([calls('a', 'a', 'a'), 'end']),
      tools: [make('a', execute)],
    });
    const running = watched(agent, 'go');
    await settle();
    expect(log).toEqual(['+0', '+1', '+2']);
    for (const n of [2, 0, 1]) await release(n);
    const { result, events } = await running;
    expect(results(result.messages)).toEqual(['r0', 'r1', 'r2']);
    expect(
      events.flatMap((event) => (event.type === 'tool_execution_end' ? [event.toolCall.id] : [])),
    ).toEqual(['c2', 'c0', 'c1']);
    const turn = events.find(({ type }) => type === 'turn_end');
    expect(turn).toMatchObject({
      toolResults: [{ toolCallId: 'c0' }, { toolCallId: 'c1' }, { toolCallId: 'c2' }],
    });
  });

  it("run one after the other with toolExecution: 'sequential'", async () => {
    const { execute, log, release } = gates();
    const agent = new Agent({
      model: scriptedModel([calls('a', 'a'), 'end']),
      tools: [make('a', execute)],
      toolExecution: 'sequential',
    });
    const running = watched(agent, 'go');
    await settle();
    await release(0);
    await release(1);
    await running;
    expect(log).toEqual(['+0', '-0', '+1', '-1']);
  });

  it('never run a tool with `sequential` beside another call', async () => {
    const { execute, log, release } = gates();
    const agent = new Agent({
      model: scriptedModel([calls('a', 'alone', 'a'), 'end']),
      tools: [make('a', execute), make('alone', execute, { sequential: true })],
    });
    const running = watched(agent, 'go');
    await settle();
    for (const n of [0, 1, 2]) await release(n);
    await running;
    expect(log).toEqual(['+0', '-0', '+1', '-1', '+2', '-2']);
  });

  it('run at most `concurrency` calls of a tool at once, beside others', async () => {
    const { execute, log, release } = gates();
    const agent = new Agent({
      model: scriptedModel([calls('two', 'two', 'two', 'free'), 'end']),
      tools: [make('two', execute, { concurrency: 2 }), make('free', execute)],
    });
    const running = watched(agent, 'go');
    await settle();
    expect(log).toEqual(['+0', '+1', '+3']);
    await release(1);
    expect(log).toEqual(['+0', '+1', '+3', '-1', '+2']);
    for (const n of [0, 2, 3]) await release(n);
    expect(results((await running).result.messages)).toEqual(['r0', 'r1', 'r2', 'r3']);
  });

  it('never lose the siblings of a call that fails', async () => {
    const agent = new Agent({
      model: scriptedModel([calls('fine', 'sync', 'async', 'fine'), 'end']),
      tools: [
        make('fine', () => 'fine'),
        make('sync', () => {
          throw new Error('sync');
        }),
        make('async', () => Promise.reject('async')),
      ],
    });
    const { result } = await watched(agent, 'go');
    expect(results(result.messages)).toEqual([
      'fine',
      '"sync" failed: sync',
      '"async" failed: async',
      'fine',
    ]);
    expect(result.messages.slice(2, 6).map((message) => 'isError' in message && message.isError)).toEqual([
      false,
      true,
      true,
      false,
    ]);
  });

  it('answer an unknown tool, bad JSON and invalid arguments with something the model can act on', async () => {
    const agent = new Agent({
      model: scriptedModel([
        toolCalls(
          { name: 'nope', id: '1' },
          { name: 'a', args: '{"n":', id: '2' },
          { name: 'a', args: { n: 'x' }, id: '3' },
          { name: 'a', args: '[]', id: '4' },
          { name: 'a', args: '', id: '5' },
        ),
        text('end'),
      ]),
      tools: [make('a', () => 'ran')],
    });
    const [unknown, json, type, list, empty] = results((await watched(agent, 'go')).result.messages);
    expect(unknown).toBe('There is no tool "nope". Available: a.');
    expect(json).toMatch(/^The arguments of "a" are not valid JSON: .*Send one JSON object\.$/);
    expect(type).toMatch(/^Invalid arguments for "a":\nn: /);
    expect(list).toMatch(/^Invalid arguments for "a":/);
    expect(empty).toBe('ran');
  });

  it('say so when there are no tools at all', async () => {
    const { result } = await watched(new Agent({ model: scriptedModel([calls('a'), 'end']) }), 'go');
    expect(results(result.messages)).toEqual(['There is no tool "a". No tools are available.']);
  });

  it('use the tools a layer gave the call, and miss those it took away', async () => {
    const layer: Middleware = {
      beforeModel: (ctx) => {
        ctx.tools = [make('added', () => 'added')];
      },
    };
    const agent = new Agent({
      model: scriptedModel([calls('added', 'removed'), 'end']),
      tools: [make('removed', () => 'ran')],
      middleware: [layer],
    });
    expect(results((await watched(agent, 'go')).result.messages)).toEqual([
      'added',
      'There is no tool "removed". Available: added.',
    ]);
  });

  it('end the run by `terminate` only when all results say so', async () => {
    const end = make('end', () => toolResult({ content: 'over', terminate: true }));
    const all = new Agent({ model: scriptedModel([calls('end', 'end')]), tools: [end] });
    expect((await watched(all, 'go')).result).toMatchObject({ status: 'done', turns: 1 });
    const some = new Agent({ model: scriptedModel([calls('end', 'nope'), 'go on']), tools: [end] });
    expect((await watched(some, 'go')).result).toMatchObject({ status: 'done', turns: 2 });
  });

  it('journal each result as it comes, and the history has them in call order after a crash too', async () => {
    const store = memoryStore();
    const broken = breakingStore(store, 5);
    const tools = (log: string[]) => [
      make(
        'a',
        ({ n }) => {
          log.push(`ran ${n}`);
          return `r${n}`;
        },
        { idempotent: true },
      ),
    ];
    const crashed = new Agent({
      model: scriptedModel([calls('a', 'a', 'a'), 'not written']),
      tools: tools([]),
      store: broken.store,
      toolExecution: 'sequential',
    });
    await expect(crashed.session('s').run('go')).rejects.toMatchObject({ cause: { message: 'disk full' } });
    const ran: string[] = [];
    const agent = new Agent({ model: scriptedModel(['end']), tools: tools(ran), store });
    const { result } = await watch(agent.session('s').resumeStream());
    expect(ran).toEqual(['ran 2']);
    expect(results(result.messages)).toEqual(['r0', 'r1', 'r2']);
  });
});

describe('a call that had started when the run broke off', () => {
  const crash = async (options: Partial<Tool>) => {
    const store = memoryStore();
    const keys: string[] = [];
    const tools = [
      make(
        'a',
        (_, ctx) => {
          keys.push(ctx.idempotencyKey);
          return 'ran';
        },
        options,
      ),
    ];
    const entries = breakingStore(store, 3);
    await expect(
      new Agent({ model: scriptedModel([calls('a')]), tools, store: entries.store }).session('s').run('go'),
    ).rejects.toThrow();
    const { result } = await watch(
      new Agent({ model: scriptedModel(['end']), tools, store }).session('s').resumeStream(),
    );
    return { keys, text: results(result.messages)[0] };
  };
  it('is not run again, and the model is told so', async () => {
    const { keys, text: said } = await crash({});
    expect(keys).toHaveLength(1);
    expect(said).toContain('In doubt: "a" had started');
  });
  it('runs again when it is idempotent, with the same idempotency key', async () => {
    const { keys, text: said } = await crash({ idempotent: true });
    expect(said).toBe('ran');
    expect(keys).toHaveLength(2);
    expect(keys[0]).toBe(keys[1]);
  });
});

describe('idempotency keys', () => {
  it('differ by session, message, call and arguments', async () => {
    const keys = new Set<string>();
    const agent = new Agent({
      model: scriptedModel([calls('a', 'a'), calls('a'), 'end'], { repeat: true }),
      tools: [make('a', (_, ctx) => keys.add(ctx.idempotencyKey) && 'x')],
    });
    await agent.run('go');
    await agent.run('go');
    expect(keys.size).toBe(6);
  });
});

describe('timeouts and aborts', () => {
  it('cancel a tool through its signal when its time is over, and drop what comes later', async () => {
    const clock = fakeClock();
    const late = deferred<string>();
    let signal: AbortSignal | undefined;
    const slow = make(
      'slow',
      (_, ctx) => {
        signal = ctx.signal;
        return late.promise;
      },
      { timeoutMs: 100 },
    );
    const agent = new Agent({
      model: scriptedModel([calls('slow', 'fast'), 'end']),
      tools: [slow, make('fast', () => 'fast')],
      clock,
    });
    const running = watched(agent, 'go');
    await clock.advance(99);
    expect(signal?.aborted).toBe(false);
    await clock.advance(1);
    expect(signal?.aborted).toBe(true);
    const { result } = await running;
    late.resolve('too late');
    await settle();
    expect(results(result.messages)).toEqual(['"slow" failed: "slow" did not finish within 100 ms.', 'fast']);
    expect(clock.pending).toBe(0);
  });

  it('clear the timer of a tool that is in time', async () => {
    const clock = fakeClock();
    const agent = new Agent({
      model: scriptedModel([calls('quick'), 'end']),
      tools: [make('quick', async () => 'in time', { timeoutMs: 100 })],
      clock,
    });
    expect(results((await watched(agent, 'go')).result.messages)).toEqual(['in time']);
    expect(clock.pending).toBe(0);
  });

  it('do not count the time of a person the tool asks, as none is counted where the run suspends', async () => {
    const clock = fakeClock();
    const answer = deferred();
    const asks = make(
      'asks',
      async (_, ctx) => {
        await ctx.suspend({ title: 'May I?' });
        return new Promise(() => {});
      },
      { timeoutMs: 100 },
    );
    const agent = new Agent({
      model: scriptedModel([calls('asks'), 'end']),
      tools: [asks],
      clock,
      onRequest: () => answer.promise.then(() => ({ type: 'approve' })),
    });
    const running = watched(agent, 'go');
    await clock.advance(5000);
    answer.resolve();
    await clock.advance(99);
    expect(clock.pending).toBe(1);
    await clock.advance(1);
    expect(results((await running).result.messages)).toEqual([
      '"asks" failed: "asks" did not finish within 100 ms.',
    ]);
    expect(clock.pending).toBe(0);
  });

  it('are not looked at all the time while a person is asked', async () => {
    const clock = fakeClock();
    let timers = 0;
    const setTimer: typeof clock.setTimer = (fn, ms) => {
      timers++;
      return clock.setTimer(fn, ms);
    };
    const answer = deferred();
    const asks = make(
      'asks',
      async (_, ctx) => {
        await new Promise<void>((resolve) => clock.setTimer(resolve, 99));
        await ctx.suspend({ title: 'May I?' });
        return 'done';
      },
      { timeoutMs: 100 },
    );
    const agent = new Agent({
      model: scriptedModel([calls('asks'), 'end']),
      tools: [asks],
      clock: { now: clock.now, setTimer },
      limits: { timeoutMs: 100 },
      onRequest: () => answer.promise.then(() => ({ type: 'approve' })),
    });
    const running = agent.run('go');
    await clock.advance(99 + 10_000);
    answer.resolve();
    expect(results((await running).messages)).toEqual(['done']);
    expect(timers).toBeLessThan(500);
  });

  it('take the time a layer gives', async () => {
    const clock = fakeClock();
    const layer: Middleware = {
      beforeTool: (ctx) => {
        ctx.timeoutMs = 5;
      },
    };
    const agent = new Agent({
      model: scriptedModel([calls('never'), 'end']),
      tools: [make('never', () => new Promise(() => {}))],
      clock,
      middleware: [layer],
    });
    const running = watched(agent, 'go');
    await clock.advance(5);
    expect(results((await running).result.messages)).toEqual([
      '"never" failed: "never" did not finish within 5 ms.',
    ]);
  });

  it('show no update of a call that has ended', async () => {
    const clock = fakeClock();
    let update: ((text: string) => void) | undefined;
    const slow = make(
      'slow',
      (_, ctx) => {
        update = (said) => ctx.update(said);
        void ctx.update('working', { percent: 1 });
        return new Promise(() => {});
      },
      { timeoutMs: 10 },
    );
    const agent = new Agent({ model: scriptedModel([calls('slow'), 'end']), tools: [slow], clock });
    const running = watched(agent, 'go');
    await clock.advance(10);
    update!('late');
    const { events } = await running;
    expect(events.filter(({ type }) => type === 'tool_execution_update')).toMatchObject([
      { update: [{ text: 'working' }], details: { percent: 1 } },
    ]);
  });

  it('keep ctx.signal aborted for a tool that polls it later; the hooks around it do not find the time up', async () => {
    const clock = fakeClock();
    let held: ToolContext | undefined;
    const slow = make(
      'slow',
      (_, ctx) => {
        held = ctx;
        return new Promise(() => {});
      },
      { timeoutMs: 10 },
    );
    const heard: boolean[] = [];
    const agent = new Agent({
      model: scriptedModel([calls('slow'), 'end']),
      tools: [slow],
      clock,
      middleware: [{ afterToolCall: (ctx) => void heard.push(ctx.signal.aborted) }],
    });
    const running = watched(agent, 'go');
    await clock.advance(10);
    await running;
    expect(held!.signal.aborted).toBe(true);
    expect(heard).toEqual([false]);
  });

  it('leave nothing of the attempt that was too slow: no update, no state, no question, no stop', async () => {
    const clock = fakeClock();
    const cell = defineState<readonly string[]>({ name: 'said', scope: 'session', initial: [] });
    const attempts: ToolContext[] = [];
    const second = deferred<string>();
    const slow = make(
      'slow',
      (_, ctx) => {
        attempts.push(ctx);
        ctx.state.update(cell, (said) => [...said, `attempt ${attempts.length}`]);
        return attempts.length === 1 ? new Promise(() => {}) : second.promise;
      },
      { timeoutMs: 10 },
    );
    const retry: Middleware = { name: 'again', state: [cell], onError: () => 'retry' };
    const agent = new Agent({
      model: scriptedModel([calls('slow'), 'end']),
      tools: [slow],
      clock,
      middleware: [retry],
    });
    const running = watched(agent, 'go');
    await clock.advance(10);
    const [dead] = attempts;
    void dead!.update('late');
    dead!.state.update(cell, (said) => [...said, 'late']);
    await expect(dead!.suspend({ title: 'Late?' })).rejects.toMatchObject({ code: 'TOOL_TIMEOUT' });
    expect(() => dead!.stop('stopped', 'late')).toThrow('late');
    second.resolve('in time');
    const { result, events } = await running;
    expect(result.status).toBe('done');
    expect(results(result.messages)).toEqual(['in time']);
    expect(events.filter(({ type }) => type === 'tool_execution_update')).toEqual([]);
    expect(events.filter(({ type }) => type === 'state_change')).toMatchObject([{ value: ['attempt 2'] }]);
  });

  it('keep what a tool wrote that was in time, for the layers around it as well', async () => {
    const clock = fakeClock();
    const cell = defineState({ name: 'count', scope: 'session', initial: 0 });
    const quick = make(
      'quick',
      async (_, ctx) => {
        ctx.state.update(cell, (count) => count + 1);
        ctx.metadata.note = 'of the tool';
        if (ctx.toolCall.id === 'c1') throw new Error('broken');
        return 'in time';
      },
      { timeoutMs: 10 },
    );
    const seen: unknown[] = [];
    const layer: Middleware = { state: [cell], afterTool: (ctx) => void seen.push(ctx.metadata.note) };
    const agent = new Agent({
      model: scriptedModel([calls('quick', 'quick'), 'end']),
      tools: [quick],
      clock,
      middleware: [layer],
    });
    const { events } = await watched(agent, 'go');
    expect(seen).toEqual(['of the tool']);
    // The second call failed by itself: what it wrote counts as it does for a tool without a limit.
    expect(events.filter(({ type }) => type === 'state_change')).toMatchObject([{ value: 1 }, { value: 2 }]);
  });
});

describe('call ids', () => {
  const a = make('a', ({ n }) => `r${n}`);

  it('that repeat in one message are re-minted deterministically', async () => {
    const run = async () => {
      const agent = new Agent({
        model: scriptedModel([
          toolCalls({ name: 'a', args: { n: 1 }, id: 'x' }, { name: 'a', args: { n: 2 }, id: 'x' }),
          'end',
        ]),
        tools: [a],
        newId: () => 'fixed',
      });
      return (await watched(agent, 'go')).result.messages;
    };
    const messages = await run();
    expect(toolCallsOf(messages[1]!).map(({ id }) => id)).toEqual(['x', 'r_fixed.2.call1']);
    expect(results(messages)).toEqual(['r1', 'r2']);
    expect(await run()).toEqual(messages);
  });

  it('that are missing are made', async () => {
    const agent = new Agent({
      model: scriptedModel([
        chunks({ type: 'tool-call', name: 'a', arguments: '{"n":1}' } as never, {
          type: 'tool-call',
          id: '',
          name: 'a',
          arguments: '{"n":2}',
        }),
        'end',
      ]),
      tools: [a],
    });
    const { messages } = (await watched(agent, 'go')).result;
    expect(results(messages)).toEqual(['r1', 'r2']);
    for (const { id } of toolCallsOf(messages[1]!)) expect(id).toMatch(/\.call\d$/);
  });

  it.each([
    ['before', ['r_fixed.2.call1', '']],
    ['after', ['', 'r_fixed.2.call0']],
  ])('that are made differ from one the model wrote just so %s', async (_, [first, second]) => {
    const agent = new Agent({
      model: scriptedModel([
        chunks(
          { type: 'tool-call', id: first!, name: 'a', arguments: '{"n":1}' },
          { type: 'tool-call', id: second!, name: 'a', arguments: '{"n":2}' },
        ),
        'end',
      ]),
      tools: [a],
      newId: () => 'fixed',
    });
    const { messages } = (await watched(agent, 'go')).result;
    expect(results(messages)).toEqual(['r1', 'r2']);
  });

  it('that repeat over the session are re-minted', async () => {
    const agent = new Agent({
      model: scriptedModel([calls('a'), calls('a'), 'end', calls('a'), 'end']),
      tools: [a],
      store: memoryStore(),
    });
    const session = agent.session('s');
    await watched(session, 'one');
    await watched(session, 'two');
    expectValidHistory(await session.messages());
  });

  it('of preset and replaced responses are made and checked alike', async () => {
    const response = assistantMessage([{ type: 'tool-call', name: 'a', arguments: '{"n":7}' } as never]);
    const preset: Middleware = {
      beforeModel: (ctx) => {
        if (ctx.turn === 1) ctx.response = response;
      },
    };
    const replaced: Middleware = {
      afterModelResponse: (_, ctx) => (ctx.turn === 1 ? { response } : undefined),
    };
    for (const [middleware, script] of [
      [preset, ['end']],
      [replaced, ['raw', 'end']],
    ] as const) {
      const { result } = await watched(
        new Agent({ model: scriptedModel(script), tools: [a], middleware: [middleware] }),
        'go',
      );
      expect(results(result.messages)).toEqual(['r7']);
    }
  });
});

describe('arguments', () => {
  it('are parsed once: a schema with transforms never sees its own output', async () => {
    const seen: unknown[] = [];
    const counting = tool({
      name: 'counting',
      description: '',
      input: z.object({ list: z.string().transform((text) => text.split(',')) }),
      execute: ({ list }, ctx) => {
        seen.push(list, ctx.args.list, ctx.rawArgs, ctx.toolCall.arguments);
        return list.length;
      },
    });
    const layer: Middleware = {
      wrapTool: async (_, next) => {
        await next();
        return next();
      },
      beforeToolCall: () => undefined,
    };
    const agent = new Agent({
      model: scriptedModel([toolCalls({ name: 'counting', args: { list: 'a,b' } }), 'end']),
      tools: [counting],
      middleware: [layer],
    });
    expect(results((await watched(agent, 'go')).result.messages)).toEqual(['2']);
    expect(seen.slice(0, 4)).toEqual([['a', 'b'], ['a', 'b'], { list: 'a,b' }, '{"list":"a,b"}']);
    expect(seen).toHaveLength(8);
  });

  it('are frozen', async () => {
    const agent = new Agent({
      model: scriptedModel([calls('a'), 'end']),
      tools: [
        make('a', (args) => {
          args.n = 2;
        }),
      ],
    });
    expect(results((await watched(agent, 'go')).result.messages)[0]).toContain('"a" failed');
  });

  it('that a layer changes are validated and judged again before the tool runs', async () => {
    const judged: string[] = [];
    const run = async (args: unknown) => {
      const agent = new Agent({
        model: scriptedModel([calls('a'), 'end']),
        tools: [make('a', ({ n }) => `ran ${n}`)],
        middleware: [
          {
            beforeToolCall: (ctx) => {
              judged.push(`${ctx.revision}:${ctx.args.n}`);
              return ctx.args.n === 13 ? { block: true, reason: 'Unlucky.' } : undefined;
            },
          },
          { wrapTool: (_, next) => next({ args }) },
        ],
      });
      return results((await watched(agent, 'go')).result.messages)[0];
    };
    expect(await run({ n: 5 })).toBe('ran 5');
    expect(await run({ n: 13 })).toBe('Unlucky.');
    expect(await run({ n: 'x' })).toContain('Invalid arguments for "a"');
    expect(judged).toEqual(['0:0', '1:5', '0:0', '1:13', '0:0']);
  });
});

describe('results', () => {
  it('of layers may be anything a tool could return', async () => {
    const skip = (result: unknown): Middleware => ({
      beforeTool: (ctx) => {
        ctx.skip = true;
        ctx.result = result as never;
      },
    });
    const run = async (result: unknown) =>
      results(
        (
          await watched(
            new Agent({
              model: scriptedModel([calls('a'), 'end']),
              tools: [make('a', () => 'never')],
              middleware: [skip(result)],
            }),
            'go',
          )
        ).result.messages,
      )[0];
    expect(await run('text')).toBe('text');
    expect(await run({ some: 'json' })).toBe('{"some":"json"}');
    expect(await run(toolResult({ content: 'made' }))).toBe('made');
    expect(await run({ isError: false, content: 'text' })).toBe('text');
    expect(await run({ isError: false, content: 5 })).toBe('{"isError":false,"content":5}');
  });

  it('keep order and count for any number of calls', async () => {
    for (const count of [1, 2, 17]) {
      const agent = new Agent({
        model: scriptedModel([calls(...Array.from({ length: count }, () => 'a')), 'end']),
        tools: [make('a', ({ n }) => `r${n}`)],
      });
      const { result } = await watched(agent, 'go');
      expect(results(result.messages)).toEqual(Array.from({ length: count }, (_, n) => `r${n}`));
      expect(transcript(result.messages)).toHaveLength(count + 3);
    }
  });
});

describe('what a tool does itself', () => {
  it('is no doing of the layer next to it: ctx.generate goes through all model layers, and nobody else stopped the run', async () => {
    const seen: string[] = [];
    const watch = {
      name: 'watch',
      beforeModel: (ctx: { systemPrompt: string }) => void seen.push(ctx.systemPrompt),
    };
    const passive = { name: 'passive', wrapTool: (_: unknown, next: () => Promise<never>) => next() };
    const asking = tool({
      name: 'asking',
      description: 'Asks a model, then stops.',
      input: z.object({}),
      execute: async (_, ctx) => {
        await ctx.generate(scriptedModel(['fine']), { messages: 'ok?', systemPrompt: 'inner' });
        ctx.stop('stopped', 'enough');
      },
    });
    const model = scriptedModel([toolCalls({ name: 'asking' })]);
    const agent = new Agent({ model, tools: [asking], systemPrompt: 'outer', middleware: [watch, passive] });
    const { stop } = await agent.run('go');
    expect(seen).toEqual(['outer', 'inner']);
    expect(stop).toEqual({ reason: 'stopped', message: 'enough' });
  });
});

it.each(['run', 'stream'] as const)(
  'a result is what the tool returned, whatever it does to it later: %s',
  async (way) => {
    const details = { n: 0 };
    const count = tool({
      name: 'count',
      description: '',
      input: z.any(),
      execute() {
        details.n++;
        return toolResult({ content: `${details.n}`, details });
      },
    });
    const agent = new Agent({
      model: scriptedModel([toolCalls({ name: 'count' }, { name: 'count' }), 'end']),
      tools: [count],
      toolExecution: 'sequential',
    });
    const { messages } = await (way === 'run' ? agent.run('go') : agent.stream('go').result);
    expect(messages.filter(({ role }) => role === 'tool')).toMatchObject([
      { isError: false, details: { n: 1 } },
      { isError: false, details: { n: 2 } },
    ]);
  },
);
