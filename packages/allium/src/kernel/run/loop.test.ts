/** What follows a turn, in which order, and what is told and written about it. */
import {
  Agent,
  type AgentEvent,
  type Entry,
  type Middleware,
  memoryStore,
  StopRun,
  type Store,
  textOf,
  tool,
  userMessage,
} from 'allium';
import { collect, failWith, hang, scriptedModel, text, toolCalls } from 'allium/testing';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import {
  breakingStore,
  deferred,
  expectBalanced,
  expectValidHistory,
  settle,
  storeWith,
  transcript,
  watch,
  watched,
} from '../../../../../test/run-checks.js';

const echo = tool({
  name: 'echo',
  description: '',
  input: z.object({ text: z.string().default('hi') }),
  execute: ({ text: said }) => said,
});
const call = () => toolCalls({ name: 'echo' });

/** Says these while the model answers in the first turn. */
function saying(said: { readonly steer?: string; readonly followUp?: string }): Middleware {
  return {
    name: 'saying',
    async afterModel(ctx) {
      if (ctx.turn > 1) return;
      const session = ctx.agent.session(ctx.sessionId);
      if (said.followUp) await session.followUp(said.followUp);
      if (said.steer) await session.steer(said.steer);
    },
  };
}

describe('after turn_end', () => {
  it('(1) a latched control signal ends the run: only afterRun follows', async () => {
    const order: string[] = [];
    const agent = new Agent({
      model: scriptedModel([call()]),
      tools: [
        tool({
          name: 'echo',
          description: '',
          input: z.object({}),
          execute: (_, ctx) => ctx.stop('stopped', 'Enough.'),
        }),
      ],
      middleware: [
        {
          shouldStopAfterTurn: () => order.push('shouldStopAfterTurn') > 99,
          onRunEnd: () => void order.push('onRunEnd'),
          afterRun: () => void order.push('afterRun'),
        },
      ],
    });
    const { result } = await watched(agent, 'go');
    expect(order).toEqual(['afterRun']);
    expect(result).toMatchObject({ status: 'stopped', stop: { reason: 'stopped', message: 'Enough.' } });
  });

  it('(1) a kernel limit ends the run: queues untouched, only afterRun follows', async () => {
    const order: string[] = [];
    const agent = new Agent({
      model: scriptedModel([call()]),
      tools: [echo],
      limits: { turns: 1 },
      store: memoryStore(),
      middleware: [
        { onRunEnd: () => void order.push('onRunEnd'), afterRun: () => void order.push('afterRun') },
        saying({ steer: 'wait' }),
      ],
    });
    const session = agent.session('s');
    const { result } = await watched(session, 'go');
    expect(result).toMatchObject({ status: 'stopped', stop: { reason: 'max_turns', by: 'kernel' } });
    expect(transcript(result.queued)).toEqual(['user: wait']);
    expect(transcript(result.messages)).toEqual(['user: go', 'assistant: <echo>', 'tool: hi']);
    expect(order).toEqual(['afterRun']);
  });

  it('(1) a limit does not end a run that is already finished', async () => {
    const agent = new Agent({ model: scriptedModel(['done']), limits: { turns: 1, tokens: 100 } });
    expect((await watched(agent, 'go')).result).toMatchObject({ status: 'done', stop: { reason: 'final' } });
  });

  it('(1) a limit that leaves no room for a queued message leaves it queued', async () => {
    const agent = new Agent({ model: scriptedModel(['done']), limits: { turns: 1 }, store: memoryStore() });
    const session = agent.session('s');
    await session.followUp('later');
    const { result } = await watched(session, 'go');
    expect(result.stop.reason).toBe('max_turns');
    expect(transcript(result.queued)).toEqual(['user: later']);
    expect(transcript(result.messages)).toEqual(['user: go', 'assistant: done']);
  });

  it('(2) a stop leaves the queues untouched and goes to onRunEnd', async () => {
    for (const stopping of [
      { shouldStopAfterTurn: () => true },
      { afterModelResponse: () => ({ decision: 'stop' }) },
    ] as Middleware[]) {
      const ended: number[] = [];
      const agent = new Agent({
        model: scriptedModel(['a']),
        store: memoryStore(),
        middleware: [
          { ...stopping, onRunEnd: (ctx) => void ended.push(ctx.turn) },
          saying({ steer: 'steering', followUp: 'follow-up' }),
        ],
      });
      const session = agent.session('s');
      const { result } = await watched(session, 'go');
      expect(result.status).toBe('stopped');
      expect(ended).toEqual([1]);
      expect(transcript(result.queued)).toEqual(['user: follow-up', 'user: steering']);
      const next = new Agent({ model: scriptedModel(['b', 'c']), store: agent.store });
      expect(transcript((await watched(next.session('s'), 'again')).result.messages)).toEqual([
        'user: again',
        'user: steering',
        'assistant: b',
        'user: follow-up',
        'assistant: c',
      ]);
    }
  });

  it('(3) with more tools or a loop: steering, then the next turn; follow-ups wait', async () => {
    const agent = new Agent({
      model: scriptedModel([call(), text('b'), text('c'), text('d')]),
      tools: [echo],
      store: memoryStore(),
      middleware: [
        { afterModelResponse: (_, ctx) => (ctx.turn === 2 ? { decision: 'loop_to_model' } : undefined) },
        saying({ steer: 'soon', followUp: 'last' }),
      ],
    });
    const session = agent.session('s');
    const { result } = await watched(session, 'go');
    expect(transcript(result.messages)).toEqual([
      'user: go',
      'assistant: <echo>',
      'tool: hi',
      'user: soon',
      'assistant: b',
      'assistant: c',
      'user: last',
      'assistant: d',
    ]);
  });

  it('(3) at the end of a text turn: steering first, then follow-ups', async () => {
    const middleware = [saying({ steer: 'first', followUp: 'second' })];
    const agent = new Agent({ model: scriptedModel(['a', 'b', 'c']), store: memoryStore(), middleware });
    const session = agent.session('s');
    const { result } = await watched(session, 'go');
    expect(transcript(result.messages)).toEqual([
      'user: go',
      'assistant: a',
      'user: first',
      'assistant: b',
      'user: second',
      'assistant: c',
    ]);
    expect(result.queued).toEqual([]);
  });

  it('(3) takes steering that comes while a tool runs', async () => {
    const model = scriptedModel([call(), text('end')]);
    const agent = new Agent({
      model,
      tools: [
        tool({
          name: 'echo',
          description: '',
          input: z.object({}),
          execute: async (_, ctx) => {
            await ctx.agent.session(ctx.sessionId).steer('hurry');
            return 'slow';
          },
        }),
      ],
    });
    await watched(agent, 'go');
    expect(transcript(model.requests[1]!.messages)).toEqual([
      'user: go',
      'assistant: <echo>',
      'tool: slow',
      'user: hurry',
    ]);
  });

  it('(4) onRunEnd comes after the queues are empty', async () => {
    const seen: string[][] = [];
    const agent = new Agent({
      model: scriptedModel(['a', 'b']),
      store: memoryStore(),
      middleware: [{ onRunEnd: (ctx) => void seen.push(transcript(ctx.newMessages)) }],
    });
    const session = agent.session('s');
    await session.followUp('more');
    await watched(session, 'go');
    expect(seen).toEqual([['user: go', 'assistant: a', 'user: more', 'assistant: b']]);
  });

  it('(5) ends', async () => {
    const { result, types } = await watched(new Agent({ model: scriptedModel(['a']) }), 'go');
    expect(result).toMatchObject({
      status: 'done',
      stop: { reason: 'final' },
      text: 'a',
      turns: 1,
      queued: [],
      pending: [],
    });
    expect(types).toEqual([
      'agent_start',
      'message_start',
      'message_end',
      'turn_start',
      'message_start',
      'message_update',
      'message_end',
      'turn_end',
      'agent_end',
    ]);
  });
});

describe('onRunEnd does not fire', () => {
  const cases: Record<
    string,
    { hooks?: Middleware; model?: ReturnType<typeof scriptedModel>; abort?: boolean }
  > = {
    'after StopRun': { hooks: { afterModel: (ctx) => ctx.stop() } },
    'after a limit': { model: scriptedModel([call()]) },
    'after an error': { model: scriptedModel([failWith(new Error('down'))]) },
    'after an abort': { model: scriptedModel([hang()]), abort: true },
    'after a suspension': { model: scriptedModel([call()]), hooks: { beforeToolCall: () => ({ ask: {} }) } },
  };
  for (const [name, { hooks = {}, model = scriptedModel(['a']), abort }] of Object.entries(cases)) {
    it(name, async () => {
      const fired: string[] = [];
      const agent = new Agent({
        model,
        tools: [echo],
        limits: { turns: 1 },
        middleware: [
          {
            ...hooks,
            onRunEnd: () => void fired.push('onRunEnd'),
            afterRun: () => void fired.push('afterRun'),
          },
        ],
      });
      const controller = new AbortController();
      const running = watched(agent, 'go', { signal: controller.signal });
      await settle();
      if (abort) controller.abort();
      const { result } = await running;
      expect(result.status).not.toBe('done');
      expect(fired).toEqual(['afterRun']);
    });
  }
});

describe("decision: 'stop'", () => {
  const stops = (why?: string): Middleware => ({
    name: 'judge',
    afterModelResponse: () => ({ decision: 'stop', ...(why && { why }) }),
  });

  it('says why, if the hook does, and otherwise who', async () => {
    const stopOf = async (...middleware: Middleware[]) =>
      (await new Agent({ model: scriptedModel(['ok']), middleware }).run('go')).stop;
    expect(await stopOf(stops('It is enough.'))).toEqual({
      reason: 'stopped',
      message: 'It is enough.',
      by: 'judge',
    });
    expect(await stopOf(stops())).toMatchObject({ message: '"judge" stopped the run.' });
    // The last decision wins, with its own reason.
    const later = { ...stops('Later.'), name: 'later' };
    expect(await stopOf(stops('It is enough.'), later)).toMatchObject({ message: 'Later.', by: 'later' });
    expect(await stopOf(stops('It is enough.'), { ...stops(), name: 'later' })).toMatchObject({
      message: '"later" stopped the run.',
    });
  });
});

describe("decision: 'stop' or 'loop_to_model' with pending calls", () => {
  for (const decision of ['stop', 'loop_to_model'] as const) {
    it(`answers each call of '${decision}' with "Not run: …", with events and afterToolCall (blocked)`, async () => {
      const after: string[] = [];
      const ran: number[] = [];
      const agent = new Agent({
        model: scriptedModel([toolCalls({ name: 'echo' }, { name: 'echo', id: 'c2' }), text('end')]),
        tools: [tool({ name: 'echo', description: '', input: z.object({}), execute: () => ran.push(1) })],
        middleware: [
          {
            afterModelResponse: (_, ctx) =>
              ctx.turn === 1 ? { decision, injectMessages: [userMessage('because')] } : undefined,
            beforeToolCall: () => void after.push('before'),
            afterToolCall: (ctx) => void after.push(`${ctx.toolCall.id} ${ctx.blocked} ${ctx.isError}`),
          },
        ],
      });
      const { result, types } = await watched(agent, 'go');
      const why = decision === 'stop' ? 'the run was stopped.' : 'the model was asked again instead.';
      expect(transcript(result.messages).slice(0, 5)).toEqual([
        'user: go',
        'assistant: <echo><echo>',
        `tool: Not run: ${why}`,
        `tool: Not run: ${why}`,
        'user: because',
      ]);
      expect(after).toEqual(['call_1 true true', 'c2 true true']);
      expect(ran).toEqual([]);
      expect(types.filter((type) => type === 'tool_execution_end')).toHaveLength(2);
      expect(result).toMatchObject(
        decision === 'stop' ? { status: 'stopped', turns: 1 } : { status: 'done', turns: 2 },
      );
    });
  }
});

describe('forceContinue is looked at last', () => {
  const force: Middleware = {
    afterModel: (ctx) => {
      if (ctx.turn === 1) ctx.forceContinue = true;
    },
  };
  it('gives one more turn after a natural decision without calls', async () => {
    const agent = new Agent({ model: scriptedModel(['a', 'b']), middleware: [force] });
    expect((await watched(agent, 'go')).result).toMatchObject({ status: 'done', turns: 2, text: 'b' });
  });
  it('yields to a stop decision, to shouldStopAfterTurn and to terminate', async () => {
    const run = async (...middleware: Middleware[]) =>
      (
        await watched(
          new Agent({ model: scriptedModel([call()]), tools: [echo], middleware: [force, ...middleware] }),
          'go',
        )
      ).result.turns;
    expect(await run({ afterModelResponse: () => ({ decision: 'stop' }) })).toBe(1);
    expect(await run({ shouldStopAfterTurn: () => true })).toBe(1);
    expect(await run({ afterToolCall: () => ({ terminate: true }) })).toBe(1);
  });
});

describe('terminate', () => {
  const ending = tool({ name: 'ending', description: '', input: z.object({}), execute: () => 'over' });
  const terminates: Middleware = {
    afterToolCall: (ctx) => (ctx.toolCall.name === 'ending' ? { terminate: true } : undefined),
  };

  it('ends the run when every result of the batch says so', async () => {
    const agent = new Agent({
      model: scriptedModel([toolCalls({ name: 'ending' }, { name: 'ending', id: 'b' })]),
      tools: [ending],
      middleware: [terminates],
    });
    expect((await watched(agent, 'go')).result).toMatchObject({
      status: 'done',
      stop: { reason: 'final' },
      turns: 1,
    });
  });
  it('does not end the run if one result does not say so', async () => {
    const agent = new Agent({
      model: scriptedModel([toolCalls({ name: 'ending' }, { name: 'echo', id: 'b' }), 'end']),
      tools: [ending, echo],
      middleware: [terminates],
    });
    expect((await watched(agent, 'go')).result).toMatchObject({ status: 'done', turns: 2 });
  });
  it('still lets shouldStopAfterTurn, queued messages and onRunEnd have their say', async () => {
    const order: string[] = [];
    const agent = new Agent({
      model: scriptedModel([toolCalls({ name: 'ending' }), 'answer']),
      tools: [ending],
      store: memoryStore(),
      middleware: [
        {
          ...terminates,
          shouldStopAfterTurn: (ctx) => void order.push(`stop? ${ctx.turn}`),
          onRunEnd: () => void order.push('end'),
        },
      ],
    });
    const session = agent.session('s');
    await session.followUp('and then?');
    expect((await watched(session, 'go')).result.text).toBe('answer');
    expect(order).toEqual(['stop? 1', 'stop? 2', 'end']);
  });
});

describe('events', () => {
  const endings: Record<string, () => Promise<AgentEvent[]>> = {
    finished: () => of(new Agent({ model: scriptedModel([call(), 'a']), tools: [echo] })),
    'failed in the model': () =>
      of(new Agent({ model: scriptedModel([call(), failWith(new Error('down'), 'half')]), tools: [echo] })),
    'failed in a hook before the first turn': () =>
      of(
        new Agent({
          model: scriptedModel([]),
          middleware: [{ acceptMessage: () => Promise.reject(new Error('x')) }],
        }),
      ),
    'failed after the model': () =>
      of(
        new Agent({
          model: scriptedModel(['a']),
          middleware: [{ afterModelResponse: () => Promise.reject(new Error('x')) }],
        }),
      ),
    'stopped before the first turn': () =>
      of(new Agent({ model: scriptedModel([]), middleware: [{ beforeRun: (ctx) => ctx.stop() }] })),
    'stopped in a tool': () =>
      of(
        new Agent({
          model: scriptedModel([call()]),
          tools: [echo],
          middleware: [{ beforeTool: (ctx) => ctx.stop() }],
        }),
      ),
    'cut by a limit': () =>
      of(new Agent({ model: scriptedModel([call()]), tools: [echo], limits: { toolCalls: 0 } })),
    suspended: () =>
      of(
        new Agent({
          model: scriptedModel([call()]),
          tools: [echo],
          middleware: [{ beforeToolCall: () => ({ ask: {} }) }],
        }),
      ),
    'suspended in a tool': () =>
      of(
        new Agent({
          model: scriptedModel([call()]),
          tools: [
            tool({
              name: 'echo',
              description: '',
              input: z.object({}),
              execute: (_, ctx) => ctx.suspend({}),
            }),
          ],
        }),
      ),
    'refused by a guard': () =>
      of(
        new Agent({
          model: scriptedModel(['bad']),
          middleware: [{ guard: { on: ['output'], judge: () => ({ type: 'deny' }) } }],
        }),
      ),
  };
  const of = async (agent: Agent): Promise<AgentEvent[]> => [...(await collect(agent.stream('go'))).events];
  for (const [name, run] of Object.entries(endings)) {
    it(`balance: ${name}`, async () => {
      const events = await run();
      expectBalanced(events);
      expect(events.length).toBeGreaterThan(1);
    });
  }

  it('balance if the journal refuses an append, whichever it is', async () => {
    const whole = breakingStore(memoryStore(), Number.POSITIVE_INFINITY);
    const run = (store: Store) =>
      collect(
        new Agent({
          model: scriptedModel([toolCalls({ name: 'echo' }, { name: 'echo', id: 'b' }), 'a']),
          tools: [echo],
          store,
        })
          .session('s')
          .stream('go'),
      );
    await run(whole.store);
    const { appends } = whole;
    expect(appends()).toBeGreaterThan(4);
    for (let n = 1; n <= appends(); n++) {
      const { events, error } = await run(breakingStore(memoryStore(), n).store);
      expect(error, `append ${n}`).toMatchObject({ cause: { message: 'disk full' } });
      expectBalanced(events);
    }
  });

  it('are sent after the journal has the fact', async () => {
    const store = memoryStore();
    const missing: string[] = [];
    const agent = new Agent({ model: scriptedModel([call(), 'end']), tools: [echo], store });
    const stream = agent.session('s').stream('go');
    for await (const event of stream) {
      const entries = (await store.read('s', 1)) as readonly Entry[];
      const has = (id: string) => entries.some((entry) => 'message' in entry && entry.message.id === id);
      if (event.type === 'message_end' && event.message && !has(event.message.id))
        missing.push(event.messageId);
      if (event.type === 'tool_execution_end' && !has(event.message!.id)) missing.push(event.toolCall.id);
      if (event.type === 'agent_end' && entries.at(-1)?.type !== 'run_end') missing.push('run_end');
    }
    expect(missing).toEqual([]);
  });

  it('wait for a slow journal', async () => {
    const store = memoryStore();
    const gate = deferred();
    const slow = storeWith(store, {
      append: async (id, seq, entries) => {
        await gate.promise;
        return store.append(id, seq, entries);
      },
    });
    const types: string[] = [];
    const agent = new Agent({
      model: scriptedModel(['a']),
      store: slow,
      observers: [({ type }) => void types.push(type)],
    });
    const running = agent.run('go');
    await settle();
    // Where the run begins is no fact of the journal; everything in it is.
    expect(types).toEqual(['agent_start']);
    gate.resolve();
    await running;
    await agent.observersIdle();
    expect(types.at(-1)).toBe('agent_end');
  });
});

describe('one session runs one run at a time', () => {
  it('refuses a second with SESSION_BUSY, which says what to do, and lets other sessions run', async () => {
    const agent = new Agent({ model: scriptedModel([hang(), 'other', 'after']), store: memoryStore() });
    const session = agent.session('s');
    const running = watched(session, 'go');
    await settle();
    for (const second of [session, agent.session('s')]) {
      await expect(second.run('too early')).rejects.toMatchObject({
        code: 'SESSION_BUSY',
        message: expect.stringMatching(/steer\(\).*followUp\(\)/),
      });
    }
    expect((await watched(agent.session('t'), 'hi')).result.text).toBe('other');
    await session.abort();
    expect((await running).result.status).toBe('aborted');
    expect((await watched(session, 'again')).result.text).toBe('after');
  });
});

describe('cancel through the inbox', () => {
  it('aborts the run it was meant for, at the next boundary', async () => {
    const store = memoryStore();
    const agent = new Agent({
      model: scriptedModel([call()]),
      store,
      tools: [
        tool({
          name: 'echo',
          description: '',
          input: z.object({}),
          execute: async (_, ctx) => {
            await store.post(ctx.sessionId, { type: 'cancel', reason: 'from elsewhere' });
          },
        }),
      ],
    });
    const { result, error } = await watched(agent.session('s'), 'go');
    expect(result.status).toBe('aborted');
    expect(error).toMatchObject({ code: 'ABORTED', message: expect.stringContaining('from elsewhere') });
  });

  it('does not concern a run that begins later', async () => {
    const agent = new Agent({ model: scriptedModel([call(), 'a']), tools: [echo], store: memoryStore() });
    await agent.session('s').abort();
    expect((await watched(agent.session('s'), 'go')).result.status).toBe('done');
  });

  it('ends a run that waits, before any of its tools run', async () => {
    const ran: number[] = [];
    const agent = new Agent({
      model: scriptedModel([call(), 'next']),
      store: memoryStore(),
      tools: [tool({ name: 'echo', description: '', input: z.object({}), execute: () => ran.push(1) })],
      middleware: [{ beforeToolCall: () => ({ ask: {} }) }],
    });
    const { result } = await watched(agent.session('s'), 'go');
    await agent.session('s').abort('changed my mind');
    const answers = { [result.pending[0]!.id]: { type: 'approve' as const } };
    await expect(agent.session('s').resume({ answers })).rejects.toMatchObject({ code: 'SESSION_UNKNOWN' });
    expect(textOf((await agent.session('s').messages()).at(-1)!)).toBe('Aborted: changed my mind');
    expect(ran).toEqual([]);
  });
});

describe('a new message', () => {
  it('after a suspension first answers the open calls', async () => {
    const agent = new Agent({
      model: scriptedModel([call(), 'fine']),
      tools: [echo],
      store: memoryStore(),
      middleware: [{ beforeToolCall: () => ({ ask: {} }) }],
    });
    const session = agent.session('s');
    expect((await watched(session, 'go')).result.status).toBe('suspended');
    expect((await watched(session, 'never mind')).result.status).toBe('done');
    const messages = await session.messages();
    expectValidHistory(messages);
    expect(transcript(messages)[2]).toContain('Not run: a new message came');
  });

  it('after a suspension lets observers see that the open calls have ended', async () => {
    const seen: AgentEvent[] = [];
    const agent = new Agent({
      model: scriptedModel([call(), 'fine']),
      tools: [echo],
      store: memoryStore(),
      middleware: [{ beforeToolCall: () => ({ ask: {} }) }],
      observers: [(event) => void seen.push(event)],
    });
    const session = agent.session('s');
    const { runId } = await session.run('go');
    const { events } = await watched(session, 'never mind');
    await agent.observersIdle();
    const of = (type: AgentEvent['type']) => seen.filter((event) => event.type === type);
    expect(of('tool_execution_start')).toHaveLength(1);
    expect(of('tool_execution_end')).toMatchObject([{ runId, message: { isError: true } }]);
    expect(of('turn_start')).toHaveLength(of('turn_end').length);
    // The stream of the new run has only its own events.
    expect(events.every((event) => !('runId' in event) || event.runId !== runId)).toBe(true);
  });

  it('may be a whole conversation, which is checked before it is appended', async () => {
    const model = scriptedModel(['ok']);
    const agent = new Agent({ model });
    const history = [
      userMessage('earlier'),
      {
        id: '',
        role: 'assistant' as const,
        content: [{ type: 'tool-call' as const, id: 'x', name: 'echo', arguments: '{}' }],
        stopReason: 'tool-calls' as const,
      },
      {
        id: '',
        role: 'tool' as const,
        toolCallId: 'x',
        toolName: 'echo',
        content: [{ type: 'text' as const, text: 'hi' }],
        isError: false,
      },
      userMessage('now'),
    ];
    const { result } = await watched(agent, history);
    expect(transcript(result.messages)).toEqual([
      'user: earlier',
      'assistant: <echo>',
      'tool: hi',
      'user: now',
      'assistant: ok',
    ]);
    for (const broken of [
      history.slice(0, 2),
      [history[0]!, history[2]!],
      [history[1]!, history[0]!, history[2]!],
    ]) {
      await expect(new Agent({ model: scriptedModel([]) }).run(broken)).rejects.toMatchObject({
        code: 'INVALID_MESSAGE',
      });
    }
  });
});

describe('StopRun', () => {
  it('thrown as a class of another copy of this package is recognised by its brand', async () => {
    const foreign = Object.assign(new Error('from afar'), {
      [Symbol.for('allium.control')]: 'stop',
      reason: 'guardrail',
    });
    const agent = new Agent({
      model: scriptedModel(['a']),
      middleware: [{ afterModel: () => Promise.reject(foreign) }],
    });
    expect((await watched(agent, 'go')).result).toMatchObject({
      status: 'stopped',
      stop: { reason: 'guardrail', message: 'from afar' },
    });
    expect(foreign).not.toBeInstanceOf(StopRun);
  });
});

describe('a resumed run', () => {
  it('goes on as the same run after its last answer was written and nothing more', async () => {
    const store = memoryStore();
    const first = breakingStore(store, 3);
    const crashed = new Agent({ model: scriptedModel(['answer']), store: first.store });
    await expect(crashed.session('s').run('go')).rejects.toMatchObject({ cause: { message: 'disk full' } });
    const entries = await store.read('s', 1);
    expect(entries.map(({ type }) => type)).toEqual(['run_start', 'message', 'message']);
    const result = await watch(new Agent({ model: scriptedModel([]), store }).session('s').resumeStream());
    expect(result.result).toMatchObject({ status: 'done', turns: 1, text: 'answer' });
    expect(textOf(result.result.messages[1]!)).toBe('answer');
  });
});
