/** Runs that end with calls still open: whatever ends them, the history is valid and nothing that was written is lost. */
import {
  Agent,
  type AgentOptions,
  type Middleware,
  memoryStore,
  type RunError,
  type RunResult,
  type Session,
  StopRun,
  type Store,
  type ToolContext,
  textOf,
  tool,
  window,
} from 'allium';
import { scriptedModel, text, toolCalls } from 'allium/testing';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import {
  expectBalanced,
  expectValidHistory,
  settle,
  storeWith,
  transcript,
  watch,
} from '../../../../../test/run-checks.js';
import { runResult } from '../../../../../test/seams.js';

const calls = (...names: string[]) =>
  toolCalls(...names.map((name, n) => ({ name, args: {}, id: `${name}-${n}` })));

/** One store, agents that take turns with it, and what its tools did. */
function world(options: Partial<AgentOptions> = {}) {
  const ran: string[] = [];
  const store = memoryStore();
  const make = (name: string, more: object = {}) =>
    tool({
      name,
      description: '',
      input: z.object({}),
      execute: () => {
        ran.push(name);
        return `${name} done`;
      },
      ...more,
    });
  const asks = tool({
    name: 'asks',
    description: '',
    input: z.object({}),
    execute: async (_, ctx) => {
      const { type } = await ctx.suspend({ title: 'May it?' });
      ran.push(`asks: ${type}`);
      return type;
    },
  });
  const tools = [make('pay'), make('look', { idempotent: true }), asks];
  const agent = (script: Parameters<typeof scriptedModel>[0], more: Partial<AgentOptions> = {}): Agent =>
    new Agent({ model: scriptedModel(script), tools, store, ...options, ...more });
  const session = (...script: Parameters<typeof scriptedModel>[0]): Session => agent(script).session('s');
  return { ran, store, tools, agent, session };
}

async function failed(work: Promise<unknown>): Promise<RunError & { result: RunResult }> {
  return (await work.then(
    (value) => expect.fail(`resolved with ${JSON.stringify(value)}`),
    (error) => error,
  )) as never;
}

/** Dies at the first append that `when` is true of, and stays dead: as if the process had. */
function dying(store: Store, when: (types: readonly string[]) => boolean): Store {
  let dead = false;
  const append: Store['append'] = (id, seq, entries) => {
    dead ||= when(entries.map(({ type }) => type));
    if (dead) throw new Error('power cut');
    return store.append(id, seq, entries);
  };
  return storeWith(store, { append });
}

describe('a suspended run that is resumed only to end', () => {
  const ends: [string, (session: Session, store: Store) => Promise<unknown>, string][] = [
    [
      'by a cancel in the inbox',
      async (session, store) => {
        await store.post('s', { type: 'cancel', reason: 'no more' });
        await session.resume();
      },
      'no more',
    ],
    [
      'by a signal that is aborted already',
      (session) => session.resume({ signal: AbortSignal.abort('too late') }),
      'too late',
    ],
  ];
  it.each(ends)('%s answers every call and keeps the results that are there', async (_, end, why) => {
    const { session, store, ran } = world();
    const run = await session(calls('pay', 'asks')).run('go');
    expect(run.status).toBe('suspended');
    const again = session('never asked');
    const error = await failed(end(again, store));
    expect(error).toMatchObject({ code: 'ABORTED', result: { status: 'aborted', pending: [] } });
    expect(transcript(error.result.messages)).toEqual([
      'user: go',
      'assistant: <pay><asks>',
      'tool: pay done',
      `tool: Aborted: ${why}`,
    ]);
    expectValidHistory(await again.messages());
    expect(await again.pending()).toEqual([]);
    expect((await session('fine').run('and now?')).text).toBe('fine');
    expect(ran).toEqual(['pay']);
  });

  it.each([
    ['beforeRun', { beforeRun: (ctx: any) => ctx.stop('stopped', 'enough') }],
    [
      'wrapRun',
      {
        wrapRun: () => {
          throw new StopRun('stopped', 'enough');
        },
      },
    ],
  ])('by a stop in %s answers every call', async (_, hook) => {
    const { session, agent } = world();
    await session(calls('pay', 'asks')).run('go');
    const stopping: Middleware = { name: 'stopping', ...hook };
    const { result, events } = await watch(
      agent(['never asked'], { middleware: [stopping] })
        .session('s')
        .resumeStream(),
    );
    expect(result).toMatchObject({ status: 'stopped', pending: [] });
    expect(textOf(result.messages.at(-1)!)).toBe('Not run: the run was stopped: enough');
    expectBalanced(events);
  });

  it('reports calls that had begun as in doubt', async () => {
    const { store, session, agent, ran } = world();
    const dies = dying(store, (types) => types.includes('tool_finished'));
    await failed(
      agent([calls('pay', 'look')], { store: dies })
        .session('s')
        .run('go'),
    );
    const error = await failed(session().resume({ signal: AbortSignal.abort('stop') }));
    expect(error.result.messages.slice(2).map(textOf)).toEqual([
      expect.stringContaining('In doubt: "pay"'),
      expect.stringContaining('In doubt: "look"'),
    ]);
    expect(ran).toEqual(['pay', 'look']);
  });
});

describe('a run layer that fails', () => {
  const broken: [string, Middleware][] = [
    ['afterRun', { name: 'log', afterRun: () => Promise.reject(new Error('no server')) }],
    [
      'wrapRun after next()',
      {
        name: 'log',
        wrapRun: async (_, next) => {
          await next();
          throw new Error('no server');
        },
      },
    ],
  ];
  it.each(broken)('after the run was suspended leaves it suspended: %s', async (_, log) => {
    const { session, agent, ran } = world();
    const error = await failed(
      agent([calls('asks')], { middleware: [log] })
        .session('s')
        .run('go'),
    );
    expect(error).toMatchObject({ code: 'MIDDLEWARE_ERROR', result: { status: 'error', pending: [{}] } });
    const [request] = await session().pending();
    const done = await agent(['thanks'], { middleware: [{ name: 'log', beforeRun() {} }] })
      .session('s')
      .resume({ answers: { [request!.id]: { type: 'approve' } } });
    expect(done).toMatchObject({ status: 'done', text: 'thanks' });
    expect(ran).toEqual(['asks: approve']);
  });

  it('before a resumed run goes on leaves it open, with its answers', async () => {
    const { session, agent, ran } = world();
    const [request] = (await session(calls('asks')).run('go')).pending;
    const down: Middleware = { name: 'down', beforeRun: () => Promise.reject(new Error('no server')) };
    const answers = { [request!.id]: { type: 'approve' as const } };
    await failed(
      agent([], { middleware: [down] })
        .session('s')
        .resume({ answers }),
    );
    expect(await session('thanks').resume()).toMatchObject({ status: 'done', text: 'thanks' });
    expect(ran).toEqual(['asks: approve']);
  });

  it('cannot make a suspended run a finished one without its calls being answered', async () => {
    const { agent, session } = world();
    const hides: Middleware = {
      name: 'hides',
      wrapRun: async (_, next) => ({ ...(await next()), status: 'done', stop: { reason: 'final' } }),
    };
    const { status, messages } = await agent([calls('asks')], { middleware: [hides] })
      .session('s')
      .run('go');
    expect(status).toBe('done');
    expectValidHistory(messages);
    expectValidHistory(await session().messages());
  });

  it.each(['error', 'aborted', 'fine'])('cannot make up a result with the status %s', async (status) => {
    const made: Middleware = {
      name: 'made',
      wrapRun: async (_, next) => ({ ...(await next()), status }) as never,
    };
    const agent = new Agent({ model: scriptedModel(['ok']), middleware: [made] });
    expect(await failed(agent.run('go'))).toMatchObject({ code: 'INVALID_HOOK_RESULT' });
  });

  it('cannot undo an abort by swallowing it', async () => {
    const controller = new AbortController();
    const swallows: Middleware = {
      name: 'swallows',
      wrapRun: async (ctx, next) => {
        await next().catch(() => {});
        return runResult(ctx, 'all is well');
      },
    };
    const hangs = { provider: 'test', id: 'm', stream: () => ({ [Symbol.asyncIterator]: () => never }) };
    const never = { next: () => new Promise<never>(() => {}) };
    const run = new Agent({ model: hangs, middleware: [swallows] }).run('go', { signal: controller.signal });
    await settle();
    controller.abort(new Error('enough'));
    expect(await failed(run)).toMatchObject({ code: 'ABORTED', result: { status: 'aborted' } });
  });
});

describe('a requested stop', () => {
  const secret = { on: ['tool-result'], hold: window(8), find: () => [{ start: 0, end: 1 }], action: 'stop' };
  const stops: [string, Partial<AgentOptions>, string[]][] = [
    [
      'in afterToolCall',
      { middleware: [{ name: 'm', afterToolCall: (ctx: any) => ctx.stop('guardrail', 'no') }] },
      ['pay'],
    ],
    ['by a guard of results', { middleware: [{ name: 'm', guard: secret } as never] }, ['pay']],
    ['by the limit of tool calls', { limits: { toolCalls: 1 } }, ['pay']],
  ];
  it.each(stops)(
    '%s holds after a crash, and calls that were not to run do not',
    async (_, options, wanted) => {
      const { store, tools, agent, ran } = world({ ...options, toolExecution: 'sequential' });
      const script = [calls('pay', 'look'), text('never said')];
      const model = scriptedModel(script);
      const calm = await new Agent({ ...options, toolExecution: 'sequential', model, tools }).run('go');
      // Of a run that nobody watches the last result is written together with what follows it.
      for (const [at, watched] of [
        ['run_end', false],
        ['run_end', true],
        ['tool_finished', true],
      ] as const) {
        ran.length = 0;
        const id = `dies at ${at}${watched ? ', watched' : ''}`;
        let finished = 0;
        const dies = dying(store, (types) => types.includes(at) && (at === 'run_end' || ++finished > 1));
        const session = agent(script, { store: dies }).session(id);
        await failed(watched ? session.stream('go').result : session.run('go'));
        const result = await agent([text('never said')])
          .session(id)
          .resume();
        expect(result.status, id).toBe(calm.status);
        expect(result.stop, id).toEqual(calm.stop);
        expect(transcript(result.messages), id).toEqual(transcript(calm.messages));
        expect(ran, id).toEqual(wanted);
      }
    },
  );
});

describe('a stop and then a crash', () => {
  const words = 'May have run, result unknown: the run was stopped';
  /** Both calls begin; one stops the run, which dies before the result of the other is written. */
  async function crashed(more: Partial<AgentOptions> = {}) {
    const { store, agent, ran, tools } = world();
    const make = (name: string, execute: (args: object, ctx: ToolContext) => Promise<string>) =>
      tool({ name, description: '', input: z.object({}), idempotent: true, execute });
    const stops = make('stops', async (_, ctx) => {
      await Promise.resolve();
      return ctx.stop('stopped', 'enough');
    });
    const slow = make('slow', async () => {
      ran.push('slow');
      await settle();
      return 'slow done';
    });
    const options = { tools: [...tools, stops, slow], ...more };
    let finished = 0;
    const dies = dying(store, (types) => types.includes('tool_finished') && ++finished > 1);
    await failed(
      agent([calls('stops', 'slow')], { ...options, store: dies })
        .session('s')
        .stream('go').result,
    );
    return { resumed: (and: object = {}) => agent([], options).session('s').resume(and), ran };
  }

  it('leave it open whether a call ran if nothing was written about it', async () => {
    const { resumed, ran } = await crashed();
    const { status, messages } = await resumed();
    expect([status, ran]).toEqual(['stopped', ['slow']]);
    expect(textOf(messages.at(-1)!)).toBe(`${words}: enough`);
  });

  it('leave it open, and calls in doubt, if a guard has to judge the text', async () => {
    const guard = { on: ['tool-result' as const], judge: async () => undefined };
    const middleware = [{ name: 'judges', guard }];
    const { resumed } = await crashed({ middleware });
    expect(textOf((await resumed()).messages.at(-1)!)).toBe(`${words}.`);
    const { store, agent } = world({ middleware });
    const dies = dying(store, (types) => types.includes('tool_finished'));
    const first = agent([calls('pay')], { store: dies }).session('s');
    await failed(first.run('go'));
    const { result } = await failed(
      agent([])
        .session('s')
        .resume({ signal: AbortSignal.abort('no') }),
    );
    expect(textOf(result.messages.at(-1)!)).toContain('In doubt: "pay" had started');
  });

  it('say that calls waiting for their turn did not run', async () => {
    const { resumed, ran } = await crashed({ toolExecution: 'sequential' });
    const { messages } = await resumed();
    expect(textOf(messages.at(-1)!)).toBe('Not run: the run was stopped: enough');
    expect(ran).toEqual([]);
  });
});

it('calls with open questions have not run when another call stops the run', async () => {
  const asks: Middleware = { name: 'asks', beforeToolCall: () => ({ ask: { title: 'May it?' } }) };
  const { agent, tools, ran } = world({ middleware: [asks] });
  const stops = tool({
    name: 'stops',
    description: '',
    input: z.object({}),
    execute: (_, ctx) => ctx.stop('stopped', 'enough'),
  });
  const options = { tools: [...tools, stops] };
  const { pending } = await agent([calls('stops', 'look')], options)
    .session('s')
    .run('go');
  const answers = Object.fromEntries(pending.map(({ id }) => [id, { type: 'approve' as const }]));
  const { messages } = await agent([], options).session('s').resume({ answers });
  expect(textOf(messages.at(-1)!)).toBe('Not run: the run was stopped: enough');
  expect(ran).toEqual([]);
});

it('an abort after a crash leaves it open whether a call ran if nothing was written about it', async () => {
  const { store, agent, session } = world();
  const dies = dying(store, (types) => types.includes('tool_finished'));
  const first = agent([calls('look')], { store: dies }).session('s');
  await failed(first.run('go'));
  const { result } = await failed(session().resume({ signal: AbortSignal.abort('too late') }));
  expect(textOf(result.messages.at(-1)!)).toBe('May have run, result unknown: the run was aborted: too late');
});

it('a sub-agent that asked when another call stopped the run may have done something', async () => {
  const { tools, ran } = world();
  const child = new Agent({ name: 'child', model: scriptedModel([calls('pay'), calls('asks')]), tools });
  const stops = tool({
    name: 'stops',
    description: '',
    input: z.object({}),
    execute: async (_, ctx) => {
      while (!ran.includes('pay')) await settle();
      await settle();
      ctx.stop('stopped', 'enough');
    },
  });
  const both = toolCalls({ name: 'child', args: { prompt: 'go' } }, { name: 'stops', args: {} });
  const { messages } = await new Agent({
    model: scriptedModel([both]),
    tools: [child.asTool({ name: 'child', description: '' }), stops],
  }).run('go');
  expect(textOf(messages[2]!)).toBe('May have run, result unknown: the run was stopped: enough');
});

describe('a cancel from another process', () => {
  it('that comes while the run is about to suspend ends it', async () => {
    const { store, agent, ran } = world();
    const cancels: Middleware = {
      name: 'cancels',
      afterModelResponse: () => void store.post('s', { type: 'cancel', reason: 'stop it' }),
    };
    const error = await failed(
      agent([calls('asks')], { middleware: [cancels] })
        .session('s')
        .run('go'),
    );
    expect(error).toMatchObject({ code: 'ABORTED', result: { status: 'aborted', pending: [] } });
    expectValidHistory(error.result.messages);
    expect(ran).toEqual([]);
  });

  it('is not lost when the process that takes it dies before it has written the end', async () => {
    const { store, agent, session, ran } = world();
    const [request] = (await session(calls('asks')).run('go')).pending;
    await session().answer(request!.id, { type: 'approve' });
    await store.post('s', { type: 'cancel', reason: 'stop it' });
    const dies = dying(store, (types) => types.includes('run_end'));
    await failed(agent([], { store: dies }).session('s').resume());
    expect(await failed(session('never said').resume())).toMatchObject({ code: 'ABORTED' });
    expect(ran).toEqual([]);
  });
});

describe('a cancel beside a layer that fails', () => {
  it.each([
    ['beforeRun of the resume', { beforeRun: () => Promise.reject(new Error('no server')) }],
    ['afterRun of the resume', { afterRun: () => Promise.reject(new Error('no server')) }],
  ])('still ends the run: %s', async (_, hook) => {
    const { store, agent, session, ran } = world();
    const [request] = (await session(calls('asks')).run('go')).pending;
    await session().answer(request!.id, { type: 'approve' });
    await store.post('s', { type: 'cancel', reason: 'stop it' });
    const failing: Middleware = { name: 'failing', ...hook };
    const error = await failed(
      agent([], { middleware: [failing] })
        .session('s')
        .resume(),
    );
    expect(error).toMatchObject({ code: 'ABORTED' });
    expect(await failed(session('never said').resume())).toMatchObject({ code: 'SESSION_UNKNOWN' });
    expectValidHistory(await session().messages());
    expect(ran).toEqual([]);
  });
});

describe('the limit of tool calls, after a crash', () => {
  it('of a session that is used up does not end a run that calls no tool', async () => {
    const { store, agent } = world({ sessionLimits: { toolCalls: 1 } });
    expect(
      (
        await agent([calls('pay', 'look')])
          .session('s')
          .run('go')
      ).stop.reason,
    ).toBe('max_tool_calls');
    const dies = dying(store, (types) => types.includes('run_end'));
    await failed(agent(['fine'], { store: dies }).session('s').run('and now?'));
    expect(await agent([]).session('s').resume()).toMatchObject({ status: 'done', text: 'fine' });
  });

  it('ends the run even if only calls are left that may run', async () => {
    let runs = 0;
    const slow = tool({
      name: 'slow',
      description: '',
      input: z.object({}),
      idempotent: true,
      execute: async () => {
        await settle();
        return `run ${++runs}`;
      },
    });
    const { store, agent, tools } = world({ limits: { toolCalls: 1 } });
    // The refused call has its result at once; the one that may run is cut off.
    let finished = 0;
    const dies = dying(store, (types) => types.includes('tool_finished') && ++finished > 1);
    const all = [...tools, slow];
    await failed(
      agent([calls('slow', 'pay')], { store: dies, tools: all })
        .session('s')
        .run('go'),
    );
    const result = await agent(['never said'], { tools: all }).session('s').resume();
    expect(result).toMatchObject({ status: 'stopped', stop: { reason: 'max_tool_calls', by: 'kernel' } });
    expect(textOf(result.messages[2]!)).toBe('run 2');
  });
});

it('an error caused by an abort counts as that abort', async () => {
  const controller = new AbortController();
  const any: Middleware = { name: 'any', wrapModel: (_, next) => Promise.any([next(), next()]) };
  const hang = new Promise<never>(() => {});
  const model = {
    provider: 'test',
    id: 'm',
    stream: () => ({ [Symbol.asyncIterator]: () => ({ next: () => hang }) }),
  };
  const run = new Agent({ model, middleware: [any] }).run('go', { signal: controller.signal });
  await settle();
  controller.abort('enough');
  expect(await failed(run)).toMatchObject({ code: 'ABORTED' });
});

it('a run without a store that failed around a question can be resumed', async () => {
  const down: Middleware = { name: 'down', afterRun: () => Promise.reject(new Error('no server')) };
  const { tools } = world();
  const agent = new Agent({ model: scriptedModel([calls('asks'), text('thanks')]), tools });
  const { result } = await failed(agent.run('go', { middleware: [down] }));
  const answers = { [result.pending[0]!.id]: { type: 'approve' as const } };
  const session = agent.session(result.sessionId);
  expect(await session.resume({ answers, allowPlanChange: true })).toMatchObject({ text: 'thanks' });
});

describe('a new message after a crash', () => {
  it('reports a started call as in doubt, and an idempotent one as possibly run', async () => {
    const { store, agent, session } = world();
    const dies = dying(store, (types) => types.includes('tool_finished'));
    await failed(
      agent([calls('pay')], { store: dies })
        .session('s')
        .run('go'),
    );
    await session('sorry').run('did it work?');
    const told = (await session().messages()).filter(({ role }) => role === 'tool').map(textOf);
    expect(told).toEqual([expect.stringContaining('In doubt: "pay" had started')]);
    const late = dying(store, (types) => types.includes('tool_finished'));
    await failed(
      agent([calls('look')], { store: late })
        .session('other')
        .run('go'),
    );
    const other = agent(['sorry']).session('other');
    await other.run('did it work?');
    expect(textOf((await other.messages())[2]!)).toBe(
      'May have run, result unknown: a new message came before this call was settled.',
    );
  });

  it('ends the previous run and answers its calls in one append, so no crash can come in between', async () => {
    const { store, agent, session } = world();
    await session(calls('asks')).run('go');
    const appends: string[][] = [];
    const append: Store['append'] = (id, seq, entries) => {
      appends.push(entries.map(({ type }) => type));
      return store.append(id, seq, entries);
    };
    await agent(['fine'], { store: storeWith(store, { append }) })
      .session('s')
      .run('never mind');
    expect(appends[0]).toEqual(['tool_finished', 'run_end']);
  });
});

describe('a resumed run', () => {
  it('has the limits and the metadata that it was begun with', async () => {
    const seen: unknown[] = [];
    const { agent } = world({
      limits: { turns: 3, toolCalls: 9 },
      middleware: [{ name: 'sees', beforeModel: (ctx) => void seen.push(ctx.runMetadata) }],
    });
    const options = { limits: { turns: 2, toolCalls: Number.POSITIVE_INFINITY }, metadata: { user: 'ann' } };
    const [request] = (
      await agent([calls('asks')])
        .session('s')
        .run('go', options)
    ).pending;
    const answers = { [request!.id]: { type: 'approve' as const } };
    const result = await agent([calls('pay'), calls('look'), text('never said')])
      .session('s')
      .resume({ answers, metadata: { shift: 2 } });
    expect(result).toMatchObject({ status: 'stopped', stop: { reason: 'max_turns' }, turns: 2 });
    expect(seen).toEqual([{ user: 'ann' }, { user: 'ann', shift: 2 }]);
  });

  it('reports that a tool is gone which a layer had added for one call', async () => {
    const extra = tool({ name: 'extra', description: '', input: z.object({}), execute: () => 'extra' });
    const { agent } = world({
      middleware: [
        {
          name: 'adds',
          beforeModel: (ctx) => {
            ctx.tools = [...ctx.tools, extra];
          },
        },
        { name: 'asks-first', beforeToolCall: () => ({ ask: { title: 'May it?' } }) },
      ],
    });
    const [request] = (
      await agent([calls('extra')])
        .session('s')
        .run('go')
    ).pending;
    const answers = { [request!.id]: { type: 'approve' as const } };
    const { messages } = await agent(['ok']).session('s').resume({ answers });
    expect(textOf(messages[2]!)).toContain('"extra" was offered by a middleware');
  });
});

describe('an abort', () => {
  it('does not wait for a schema that never answers', async () => {
    const slow = tool({
      name: 'slow',
      description: '',
      input: {
        '~standard': { version: 1, vendor: 'test', validate: () => new Promise<never>(() => {}) },
      } as never,
      toJsonSchema: () => ({ type: 'object' }),
      execute: () => 'never',
    } as never);
    const controller = new AbortController();
    const agent = new Agent({ model: scriptedModel([calls('slow')]), tools: [slow] });
    const watching = watch(agent.stream('go', { signal: controller.signal }));
    await settle();
    controller.abort('enough');
    const { result } = await watching;
    expect(result.status).toBe('aborted');
    expect(textOf(result.messages.at(-1)!)).toBe('Aborted: enough');
  });
});

describe('a message that was posted but not taken', () => {
  it('is in the result, with run layers and without', async () => {
    for (const middleware of [[], [{ name: 'layer', beforeRun() {} }]]) {
      const store = memoryStore();
      const stops: Middleware = {
        name: 'stops',
        shouldStopAfterTurn: () => {
          store.post('s', { type: 'follow_up', message: { id: 'q', role: 'user', content: [] } as never });
          return true;
        },
      };
      const agent = new Agent({ model: scriptedModel(['ok']), store, middleware: [stops, ...middleware] });
      const result = await agent.session('s').run('go');
      expect(result.queued.map(({ id }) => id)).toEqual(['q']);
      expect(Object.isFrozen(result)).toBe(true);
    }
  });
});
