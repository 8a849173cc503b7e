/** Stopping and aborting from everywhere, and a valid history after it. */
import { getEventListeners } from 'node:events';
import {
  Agent,
  type Context,
  type Middleware,
  type Model,
  memoryStore,
  StopRun,
  type ToolContext,
  textOf,
  tool,
  userMessage,
  window,
} from 'allium';
import { chunks, fakeClock, hang, type Script, scriptedModel, toolCalls } from 'allium/testing';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { deferred, expectValidHistory, settle, transcript, watched } from '../../../../../test/run-checks.js';

const input = z.object({ n: z.number().optional() });
const calls = (...names: string[]) =>
  toolCalls(...names.map((name, n) => ({ name, args: { n }, id: `c${n}` })));
const free = tool({ name: 'free', description: '', input, execute: () => 'free' });

const POINTS = ['input', 'request', 'output', 'thinking', 'tool-args', 'tool-result', 'final'] as const;

/** Every hook, layer, transform and guard, as a place from which something can be done with a context. */
const PLACES: Record<string, (act: (ctx: Context) => never) => Middleware> = {
  acceptMessage: (act) => ({ acceptMessage: (_, ctx) => act(ctx) }),
  transformContext: (act) => ({ transformContext: (_, ctx) => act(ctx) }),
  transformSystemPrompt: (act) => ({ transformSystemPrompt: (_, ctx) => act(ctx) }),
  convertToLlm: (act) => ({ convertToLlm: (_, ctx) => act(ctx) }),
  resolveToolCall: (act) => ({ resolveToolCall: (_, ctx) => act(ctx) }),
  beforeToolCall: (act) => ({ beforeToolCall: (ctx) => act(ctx) }),
  afterToolCall: (act) => ({ afterToolCall: (ctx) => act(ctx) }),
  afterModelResponse: (act) => ({ afterModelResponse: (_, ctx) => act(ctx) }),
  shouldStopAfterTurn: (act) => ({ shouldStopAfterTurn: (ctx) => act(ctx) }),
  onRunEnd: (act) => ({ onRunEnd: (ctx) => act(ctx) }),
  beforeRun: (act) => ({ beforeRun: (ctx) => act(ctx) }),
  afterRun: (act) => ({ afterRun: (ctx) => act(ctx) }),
  wrapRun: (act) => ({ wrapRun: (ctx) => act(ctx) }),
  beforeModel: (act) => ({ beforeModel: (ctx) => act(ctx) }),
  afterModel: (act) => ({ afterModel: (ctx) => act(ctx) }),
  wrapModel: (act) => ({
    wrapModel: async (ctx, next) => {
      await next();
      return act(ctx);
    },
  }),
  beforeTool: (act) => ({ beforeTool: (ctx) => act(ctx) }),
  afterTool: (act) => ({ afterTool: (ctx) => act(ctx) }),
  wrapTool: (act) => ({
    wrapTool: async (ctx, next) => {
      await next();
      return act(ctx);
    },
  }),
  'process at the run': (act) => ({ seams: ['run'], process: (ctx) => act(ctx) }),
  'process at the model': (act) => ({ seams: ['model'], process: (ctx) => act(ctx) }),
  'process at the tool': (act) => ({ seams: ['tool'], process: (ctx) => act(ctx) }),
  'the factory of a transform': (act) => ({
    beforeModel: (ctx) => ctx.transform(() => act(ctx) ?? { part: (part, emit) => emit(part) }),
  }),
  'part() of a transform': (act) => ({
    beforeModel: (ctx) => ctx.transform(() => ({ part: (part, emit) => act(ctx) ?? emit(part) })),
  }),
  'end() of a transform': (act) => ({
    beforeModel: (ctx) => ctx.transform(() => ({ part: (part, emit) => emit(part), end: () => act(ctx) })),
  }),
  ...Object.fromEntries(
    POINTS.flatMap((point): [string, (act: (ctx: Context) => never) => Middleware][] => [
      [
        `find of a guard at ${point}`,
        (act) => ({ guard: { on: [point], find: (_, { context }) => act(context) ?? [] } }),
      ],
      [
        `judge of a guard at ${point}`,
        (act) => ({ guard: { on: [point], judge: (_, { context }) => act(context) } }),
      ],
    ]),
  ),
  'find of a guard that holds back a window': (act) => ({
    guard: { on: ['output'], hold: window(5), find: (_, { context }) => act(context) ?? [] },
  }),
};
const script = (): Script[] => [
  chunks(
    { type: 'thinking', text: 'Which tool?' },
    { type: 'text', text: 'One moment.' },
    { type: 'tool-call', id: 'c0', name: 'free', arguments: '{"n":0}' },
    { type: 'tool-call', id: 'c1', name: 'free', arguments: '{"n":1}' },
  ),
  'end',
];

describe('StopRun', () => {
  for (const [place, hooks] of Object.entries(PLACES)) {
    it(`by ctx.stop() stops from ${place}`, async () => {
      const agent = new Agent({
        model: scriptedModel(script()),
        tools: [free],
        middleware: [{ name: 'stopper', ...hooks((ctx) => ctx.stop('guardrail', 'Enough.')) }],
      });
      const { result } = await watched(agent, 'go');
      expect(result).toMatchObject({
        status: 'stopped',
        stop: { reason: 'guardrail', message: 'Enough.', by: 'stopper' },
      });
    });

    it(`thrown by hand stops from ${place}`, async () => {
      const agent = new Agent({
        model: scriptedModel(script()),
        tools: [free],
        middleware: [
          {
            name: 'stopper',
            ...hooks(() => {
              throw new StopRun('guardrail', 'Enough.');
            }),
          },
        ],
      });
      expect((await watched(agent, 'go')).result).toMatchObject({
        status: 'stopped',
        stop: { reason: 'guardrail', message: 'Enough.', by: 'stopper' },
      });
    });

    it(`that is swallowed in ${place} still ends the run`, async () => {
      const swallowing = hooks(((ctx: Context) => {
        try {
          ctx.stop('guardrail', 'Enough.');
        } catch {
          // Swallowed, as careless code does.
        }
      }) as never);
      const agent = new Agent({ model: scriptedModel(script()), tools: [free], middleware: [swallowing] });
      expect((await watched(agent, 'go')).result).toMatchObject({
        status: 'stopped',
        stop: { reason: 'guardrail', message: 'Enough.' },
      });
    });
  }

  it('before the first turn leaves the model unasked', async () => {
    for (const place of ['acceptMessage', 'beforeRun', 'wrapRun', 'transformContext', 'beforeModel']) {
      const model = scriptedModel([]);
      const agent = new Agent({ model, middleware: [PLACES[place]!((ctx) => ctx.stop())] });
      expect((await watched(agent, 'go')).result.status).toBe('stopped');
      expect(model.requests).toEqual([]);
    }
  });

  it('from a tool, thrown or swallowed, ends the run after the siblings', async () => {
    const slow = deferred<string>();
    const executes: ((args: unknown, ctx: ToolContext) => unknown)[] = [
      (_, ctx) => ctx.stop('stopped', 'Tool says no.'),
      () => Promise.reject(new StopRun('stopped', 'Tool says no.')),
      (_, ctx) => {
        try {
          ctx.stop('stopped', 'Tool says no.');
        } catch {
          return 'went on';
        }
      },
    ];
    slow.resolve('sibling');
    for (const execute of executes) {
      const agent = new Agent({
        model: scriptedModel([calls('slow', 'stops')]),
        tools: [
          tool({ name: 'stops', description: '', input, execute }),
          tool({ name: 'slow', description: '', input, execute: () => slow.promise }),
        ],
      });
      const { result } = await watched(agent, 'go');
      expect(result).toMatchObject({ status: 'stopped', stop: { message: 'Tool says no.' } });
      expect(transcript(result.messages).slice(2)).toEqual(['tool: sibling', 'tool: Stopped: Tool says no.']);
    }
  });

  it('from one call leaves calls that have not begun unrun, with a result that says why', async () => {
    const ran: number[] = [];
    const agent = new Agent({
      model: scriptedModel([calls('a', 'a', 'a')]),
      toolExecution: 'sequential',
      tools: [
        tool({
          name: 'a',
          description: '',
          input,
          execute: ({ n }, ctx) => {
            ran.push(n!);
            return n === 1 ? ctx.stop('stopped', 'Halt.') : 'ok';
          },
        }),
      ],
    });
    const { result } = await watched(agent, 'go');
    expect(ran).toEqual([0, 1]);
    expect(transcript(result.messages).slice(2)).toEqual([
      'tool: ok',
      'tool: Stopped: Halt.',
      'tool: Not run: the run was stopped: Halt.',
    ]);
  });

  it('in parallel calls: the first one counts', async () => {
    const agent = new Agent({
      model: scriptedModel([calls('a', 'a')]),
      tools: [
        tool({
          name: 'a',
          description: '',
          input,
          execute: async ({ n }, ctx) => {
            await Promise.resolve();
            return ctx.stop('stopped', `from ${n}`);
          },
        }),
      ],
    });
    const { result } = await watched(agent, 'go');
    expect(result.stop.message).toBe('from 0');
    expect(transcript(result.messages).slice(2)).toEqual(['tool: Stopped: from 0', 'tool: Stopped: from 1']);
  });

  it('is given to no onError and retried by nobody', async () => {
    const errors: unknown[] = [];
    const agent = new Agent({
      model: scriptedModel([calls('a')]),
      tools: [tool({ name: 'a', description: '', input, execute: (_, ctx) => ctx.stop() })],
      middleware: [
        {
          onError: (_, error) => {
            errors.push(error);
            return 'retry';
          },
        },
      ],
    });
    expect((await watched(agent, 'go')).result.status).toBe('stopped');
    expect(errors).toEqual([]);
  });

  it('during a resume stops too', async () => {
    const store = memoryStore();
    let stop = false;
    const agent = new Agent({
      model: scriptedModel([calls('free')]),
      store,
      tools: [free],
      middleware: [{ beforeToolCall: () => ({ ask: {} }), beforeTool: (ctx) => void (stop && ctx.stop()) }],
    });
    const { result } = await watched(agent.session('s'), 'go');
    stop = true;
    expect(
      await agent.session('s').resume({ answers: { [result.pending[0]!.id]: { type: 'approve' } } }),
    ).toMatchObject({ status: 'stopped' });
    expectValidHistory(await agent.session('s').messages());
  });

  it('counts the tokens of a response that was stopped, which is not in the history', async () => {
    const agent = new Agent({
      model: scriptedModel(['refused']),
      middleware: [{ afterModelResponse: (_, ctx) => ctx.stop('guardrail') }],
    });
    const { result } = await watched(agent, 'go');
    expect(transcript(result.messages)).toEqual(['user: go']);
    expect(result.usage.totalTokens).toBe(15);
  });

  it('takes only known reasons', async () => {
    expect(() => new StopRun('because' as never)).toThrow(
      expect.objectContaining({ code: 'INVALID_OPTION' }),
    );
  });
});

describe('an abort', () => {
  const run = (agent: Agent, controller: AbortController) =>
    watched(agent, 'go', { signal: controller.signal });

  it('before the run begins calls nothing', async () => {
    const model = scriptedModel([]);
    const { result, error } = await watched(new Agent({ model }), 'go', {
      signal: AbortSignal.abort(new Error('no')),
    });
    expect(result.status).toBe('aborted');
    expect(error).toMatchObject({ code: 'ABORTED', cause: { message: 'no' } });
    expect(model.requests).toEqual([]);
  });

  it('during the model cancels it through the signal and keeps the text that was released', async () => {
    const controller = new AbortController();
    const model = scriptedModel([hang('half an ans')]);
    const running = run(new Agent({ model }), controller);
    await settle();
    controller.abort();
    const { result } = await running;
    expect(model.aborted).toBe(1);
    expect(result).toMatchObject({ status: 'aborted', messages: [{}, { stopReason: 'aborted' }] });
    expect(transcript(result.messages)).toEqual(['user: go', 'assistant: half an ans']);
  });

  it('during tools cancels them through the signal; each call has its result', async () => {
    const controller = new AbortController();
    let aborted = 0;
    const waits = tool({
      name: 'waits',
      description: '',
      input,
      execute: (_, ctx) =>
        new Promise(() => {
          ctx.signal.addEventListener('abort', () => aborted++);
        }),
    });
    const running = run(
      new Agent({ model: scriptedModel([calls('free', 'waits', 'waits')]), tools: [free, waits] }),
      controller,
    );
    await settle();
    controller.abort(new Error('stop it'));
    const { result } = await running;
    expect(aborted).toBe(2);
    expect(transcript(result.messages).slice(2)).toEqual([
      'tool: free',
      'tool: Aborted: stop it',
      'tool: Aborted: stop it',
    ]);
  });

  it('leaves sequential calls that have not begun unrun', async () => {
    const controller = new AbortController();
    const ran: number[] = [];
    const agent = new Agent({
      model: scriptedModel([calls('a', 'a')]),
      toolExecution: 'sequential',
      tools: [
        tool({
          name: 'a',
          description: '',
          input,
          execute: ({ n }) => {
            ran.push(n!);
            controller.abort('now');
            return 'done';
          },
        }),
      ],
    });
    const { result } = await run(agent, controller);
    expect(ran).toEqual([0]);
    expect(transcript(result.messages).slice(2)).toEqual(['tool: done', 'tool: Aborted: now']);
  });

  const hooks = [
    'acceptMessage',
    'transformContext',
    'transformSystemPrompt',
    'convertToLlm',
    'resolveToolCall',
    'beforeToolCall',
    'afterToolCall',
    'afterModelResponse',
    'shouldStopAfterTurn',
    'onRunEnd',
  ];
  for (const hook of hooks) {
    it(`during ${hook} does not wait for a hook that ignores its signal`, async () => {
      const controller = new AbortController();
      const agent = new Agent({
        model: scriptedModel(script()),
        tools: [free],
        middleware: [{ [hook]: () => new Promise(() => {}) }],
      });
      const running = run(agent, controller);
      await settle();
      controller.abort();
      const { result, error } = await running;
      expect(result.status).toBe('aborted');
      expect(error).toMatchObject({ code: 'ABORTED' });
    });
  }

  it('between turns ends the run at the boundary', async () => {
    const controller = new AbortController();
    const model = scriptedModel([calls('free'), 'never']);
    const agent = new Agent({
      model,
      tools: [free],
      middleware: [{ shouldStopAfterTurn: () => void controller.abort() }],
    });
    expect((await run(agent, controller)).result.status).toBe('aborted');
    expect(model.requests).toHaveLength(1);
  });

  it('is noticed between turns that never wait', async () => {
    const controller = new AbortController();
    let turns = 0;
    const model: Model = {
      provider: 'test',
      id: 'instant',
      async *stream() {
        if (++turns > 100_000) throw new Error('Nobody could stop it.');
        yield { type: 'tool-call', id: `c${turns}`, name: 'free', arguments: '{}' };
        yield { type: 'finish', reason: 'tool-calls' };
      },
    };
    const agent = new Agent({ model, tools: [free], limits: { turns: Number.POSITIVE_INFINITY } });
    setImmediate(() => controller.abort());
    await expect(agent.run('go', { signal: controller.signal })).rejects.toMatchObject({ code: 'ABORTED' });
  });

  it('ends all runs of one signal, with one listener for all of them and none afterwards', async () => {
    const controller = new AbortController();
    const { signal } = controller;
    const listeners = () => getEventListeners(signal, 'abort').length;
    const instant = new Agent({ model: scriptedModel(['hi'], { repeat: true }) });
    await Promise.all(Array.from({ length: 20 }, () => instant.run('go', { signal })));
    expect(listeners()).toBe(0);
    const agent = new Agent({ model: scriptedModel([hang()], { repeat: true }) });
    const runs = Array.from({ length: 20 }, () => agent.run('go', { signal }).catch((error) => error));
    await instant.run('go', { signal });
    expect(listeners()).toBe(1);
    const why = new Error('enough');
    controller.abort(why);
    for (const error of await Promise.all(runs)) expect(error).toMatchObject({ code: 'ABORTED', cause: why });
    await expect(instant.run('go', { signal })).rejects.toMatchObject({ code: 'ABORTED', cause: why });
    expect(listeners()).toBe(0);
  });

  it('by session.abort() says why', async () => {
    const agent = new Agent({ model: scriptedModel([hang()]) });
    const session = agent.session('s');
    const running = watched(session, 'go');
    await settle();
    await session.abort('tired');
    expect((await running).error).toMatchObject({ code: 'ABORTED', message: 'The run was aborted: tired' });
  });

  it('reaches a sub-agent and its tools', async () => {
    const controller = new AbortController();
    const inner = scriptedModel([hang()]);
    const child = new Agent({ model: inner });
    const ask = tool({
      name: 'ask',
      description: '',
      input,
      execute: async (_, ctx) => (await child.run('sub', { parent: ctx })).text,
    });
    const running = run(new Agent({ model: scriptedModel([calls('ask')]), tools: [ask] }), controller);
    await settle();
    controller.abort();
    expect((await running).result.status).toBe('aborted');
    expect(inner.aborted).toBe(1);
  });

  it('with layers that ignore it ends after teardownTimeoutMs with every call answered', async () => {
    for (const stuck of [
      { wrapTool: () => new Promise(() => {}) },
      { wrapModel: () => new Promise(() => {}) },
      { beforeTool: () => new Promise(() => {}) },
    ] as Middleware[]) {
      const clock = fakeClock();
      const controller = new AbortController();
      const agent = new Agent({
        model: scriptedModel([calls('free', 'free')]),
        tools: [free],
        clock,
        store: memoryStore(),
        middleware: [stuck],
      });
      const session = agent.session('s');
      const running = watched(session, 'go', { signal: controller.signal });
      await settle();
      controller.abort();
      await clock.advance(5000);
      await clock.advance(5000);
      expect((await running).result.status).toBe('aborted');
      expectValidHistory(await session.messages());
      expect(
        (await watched(new Agent({ model: scriptedModel(['ok']), store: agent.store }).session('s'), 'again'))
          .result.text,
      ).toBe('ok');
    }
  });
});

describe('an abort that something inside the outermost layer ignores', () => {
  const never = () => new Promise<never>(() => {});
  const awaits: Middleware = {
    wrapModel: async (_, next) => {
      await next();
    },
    wrapTool: async (_, next) => {
      await next();
    },
  };
  const failsOpen = async (): Promise<never> => {
    await null;
    throw new Error('broken');
  };
  const OUTERMOST: Record<string, Middleware> = {
    'awaits next()': awaits,
    'fails open': { onFail: 'open', wrapModel: failsOpen, wrapTool: failsOpen },
  };
  const DEAF: Record<string, Middleware> = {
    'a layer': { wrapModel: never, wrapTool: never },
    'a hook': { afterModel: never, afterTool: never },
  };

  for (const [what, outermost] of Object.entries(OUTERMOST))
    for (const [who, deaf] of Object.entries(DEAF))
      for (const seam of ['model', 'tool'])
        it(`ends the ${seam} call in the time of one teardown: ${what}, ${who} is deaf`, async () => {
          const clock = fakeClock();
          const { wrapModel, wrapTool, afterModel, afterTool } = deaf;
          const inner = seam === 'model' ? { wrapModel, afterModel } : { wrapTool, afterTool };
          const given = Object.entries(inner).filter(([, hook]) => hook !== undefined);
          const agent = new Agent({
            model: scriptedModel([calls('free'), 'end']),
            tools: [free],
            middleware: [outermost, Object.fromEntries(given)],
            teardownTimeoutMs: 100,
            clock,
          });
          const controller = new AbortController();
          const running = watched(agent, 'go', { signal: controller.signal });
          await settle();
          controller.abort();
          await clock.advance(100);
          const { result, events } = await running;
          expect(result.status).toBe('aborted');
          expectValidHistory(result.messages);
          const last = result.messages.at(-1)!;
          if (seam === 'tool') expect(textOf(last)).toMatch(/^Aborted/);
          const types = events.map(({ type }) => type);
          expect(types.slice(-2)).toEqual(['turn_end', 'agent_end']);
          expect(types.filter((type) => type === 'tool_execution_start')).toHaveLength(
            seam === 'tool' ? 1 : 0,
          );
          expect(types.filter((type) => type === 'tool_execution_end')).toHaveLength(seam === 'tool' ? 1 : 0);
        });

  it('counts more than a stop that the layer has swallowed', async () => {
    const clock = fakeClock();
    const swallows: Middleware = {
      async wrapModel(ctx) {
        try {
          ctx.stop('guardrail', 'no');
        } catch {
          await never();
        }
      },
    };
    const agent = new Agent({
      model: scriptedModel(['end']),
      middleware: [swallows],
      teardownTimeoutMs: 100,
      clock,
    });
    const controller = new AbortController();
    const running = agent.run('go', { signal: controller.signal });
    const ended = expect(running).rejects.toMatchObject({ code: 'ABORTED' });
    await settle();
    controller.abort();
    await clock.advance(100);
    await ended;
  });
});

it('a run layer that forgets to await gets an error that says so, even while an inner layer takes its time', async () => {
  const clock = fakeClock();
  const slow: Middleware = { beforeRun: () => new Promise((resolve) => void clock.setTimer(resolve, 20)) };
  const forgets: Middleware = {
    wrapRun(_, next) {
      void next();
    },
  };
  const agent = new Agent({ model: scriptedModel(['end']), middleware: [forgets, slow], clock });
  const ended = expect(agent.run('go')).rejects.toMatchObject({ code: 'MISSING_AWAIT' });
  await settle();
  await clock.advance(20);
  await clock.advance(5000);
  await ended;
});

describe('the session after a stop, an abort or an error', () => {
  it('goes on with the next message', async () => {
    const store = memoryStore();
    const endings: Middleware[] = [
      { beforeTool: (ctx) => ctx.stop() },
      { beforeTool: () => Promise.reject(new Error('x')) },
      { afterModelResponse: () => Promise.reject(new Error('y')) },
    ];
    for (const ending of endings) {
      const broken = new Agent({
        model: scriptedModel([calls('free'), 'end']),
        tools: [free],
        store,
        middleware: [ending],
      });
      await broken
        .session('s')
        .run('go')
        .catch(() => {});
      const agent = new Agent({ model: scriptedModel(['fine']), store });
      expect((await agent.session('s').run([userMessage('and now?')])).text).toBe('fine');
    }
    const messages = await new Agent({ model: scriptedModel([]), store }).session('s').messages();
    expectValidHistory(messages);
    expect(messages.filter(({ role }) => role === 'user').map(textOf)).toHaveLength(6);
  });
});
