/** Questions to people, what their answers do, and that nobody is asked or judged twice. */
import {
  Agent,
  type Decision,
  defineState,
  type Middleware,
  memoryStore,
  type PendingRequest,
  type Tool,
  textOf,
  tool,
} from 'allium';
import { fakeClock, scriptedModel, text, toolCalls } from 'allium/testing';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { asks, calls, idOf, results, withoutResults, world } from '../../../../../test/approval-setup.js';
import {
  breakingStore,
  deferred,
  settle,
  transcript,
  type Watched,
  watch,
  watched,
} from '../../../../../test/run-checks.js';

describe('an ask', () => {
  it('suspends the run; nothing of the batch runs', async () => {
    const { start, ran } = world([asks()]);
    const { result, types } = await start('free', 'a');
    expect(result).toMatchObject({ status: 'suspended', stop: { reason: 'suspended' }, turns: 1 });
    expect(result.pending).toMatchObject([
      { kind: 'ask', title: 'May it?', toolName: 'a', arguments: '{"n":1}', callId: 'c1', by: 'asks' },
    ]);
    expect(ran).toEqual([]);
    expect(types.slice(-3)).toEqual(['turn_end', 'suspended', 'agent_end']);
  });

  const decisions: Record<string, { decision: Decision; ran: string[]; result: RegExp; isError?: boolean }> =
    {
      approve: { decision: { type: 'approve' }, ran: ['a 0'], result: /^a 0$/ },
      edit: { decision: { type: 'edit', args: { n: 9 } }, ran: ['a 9'], result: /^a 9$/ },
      reject: {
        decision: { type: 'reject', reason: 'Not on my watch.' },
        ran: [],
        result: /^Not on my watch\.$/,
        isError: true,
      },
      'reject without a reason': {
        decision: { type: 'reject' },
        ran: [],
        result:
          /^A person rejected this call, so it was not run\. Do not make it again unless you are asked to\.$/,
        isError: true,
      },
      respond: {
        decision: { type: 'respond', text: 'I did it myself.' },
        ran: [],
        result: /^I did it myself\.$/,
      },
    };
  for (const [name, { decision, ran, result: wanted, isError = false }] of Object.entries(decisions)) {
    it(`is answered by: ${name}, through another agent over the same store`, async () => {
      const it = world([asks()]);
      const first = await it.start('a');
      const second = await it.resume({ [first.result.pending[0]!.id]: decision });
      expect(it.ran).toEqual(ran);
      expect(results(second)[0]).toMatch(wanted);
      expect(second.result.messages[2]).toMatchObject({ isError });
      expect(second.result).toMatchObject({
        status: 'done',
        runId: first.result.runId,
        turns: 2,
        pending: [],
      });
    });
  }

  it('is answered by the same agent instance', async () => {
    const agent = new Agent({
      model: scriptedModel([calls('a'), 'end']),
      tools: [tool({ name: 'a', description: '', input: z.any(), execute: () => 'ran' })],
      middleware: [asks()],
    });
    const session = agent.session('s');
    const { result } = await watched(session, 'go');
    const resumed = await watch(
      session.resumeStream({ answers: { [result.pending[0]!.id]: { type: 'approve' } } }),
    );
    expect(results(resumed)).toEqual(['ran']);
    expect(resumed.types.slice(0, 2)).toEqual(['agent_start', 'turn_start']);
  });

  it('keeps waiting if nobody has answered yet', async () => {
    const it = world([asks()]);
    const first = await it.start('a');
    const again = await it.resume({});
    expect(again.result).toMatchObject({ status: 'suspended', pending: first.result.pending });
    expect(it.ran).toEqual([]);
  });

  it('lets part of the answers come first', async () => {
    const it = world([asks()]);
    const { result } = await it.start('a', 'free', 'a');
    const [first, second] = [idOf(result.pending, 'c0'), idOf(result.pending, 'c2')];
    const partly = await it.resume({ [second]: { type: 'reject', reason: 'no' } });
    expect(partly.result.pending.map(({ id }) => id)).toEqual([first]);
    expect(it.ran).toEqual([]);
    const done = await it.resume({ [first]: { type: 'approve' } });
    expect(results(done)).toEqual(['a 0', 'free 1', 'no']);
  });

  it('is answered through the inbox as well', async () => {
    const it = world([asks()]);
    const { result } = await it.start('a');
    await it.session().answer(result.pending[0]!.id, { type: 'approve' });
    expect(results(await it.resume({}))).toEqual(['a 0']);
  });

  it('is answered in place by onRequest; undefined suspends after all', async () => {
    const seen: PendingRequest[] = [];
    const agent = (decision: Decision | undefined) =>
      new Agent({
        model: scriptedModel([calls('a'), 'end']),
        tools: [tool({ name: 'a', description: '', input: z.any(), execute: () => 'ran' })],
        middleware: [asks()],
        onRequest: (request) => {
          seen.push(request);
          return decision;
        },
      });
    expect(results(await watched(agent({ type: 'approve' }), 'go'))).toEqual(['ran']);
    const { result } = await watched(agent(undefined), 'go');
    expect(result).toMatchObject({ status: 'suspended', pending: [{ callId: 'c0' }] });
    expect(seen).toHaveLength(2);
  });
});

describe('verdicts', () => {
  it('are journaled and not made again', async () => {
    const judged: string[] = [];
    const counts: Middleware = {
      name: 'counts',
      beforeToolCall: ({ toolCall }) => void judged.push(toolCall.id),
    };
    const it = world([counts, asks()]);
    const { result } = await it.start('free', 'a', 'a');
    await it.resume({});
    await it.resume({ [idOf(result.pending, 'c1')]: { type: 'edit', args: { n: 5 } } });
    await it.resume({ [idOf(result.pending, 'c2')]: { type: 'approve' } });
    // Once for each call, and once for the edited arguments.
    expect(judged).toEqual(['c0', 'c1', 'c2', 'c1']);
    expect(it.ran).toEqual(['free 0', 'a 5', 'a 2']);
  });

  it('of a hook that failed stand as a refusal', async () => {
    let broken = true;
    const fragile: Middleware = {
      name: 'fragile',
      beforeToolCall: ({ toolCall }) => {
        if (broken && toolCall.name === 'free') throw new Error('broken');
      },
    };
    const it = world([fragile, asks()]);
    const { result } = await it.start('free', 'a');
    broken = false;
    const done = await it.resume({ [result.pending[0]!.id]: { type: 'approve' } });
    expect(results(done)).toEqual(['"free" was not completed: middleware "fragile" failed: broken', 'a 1']);
    expect(it.ran).toEqual(['a 1']);
  });

  it('carry the state their hooks wrote, once', async () => {
    const count = defineState({ name: 'count', scope: 'session', initial: 0 });
    const counter: Middleware = {
      name: 'counter',
      state: [count],
      beforeToolCall: (ctx) => ctx.state.update(count, (n) => n + 1),
    };
    const seen: number[] = [];
    const reader: Middleware = { name: 'reader', onRunEnd: (ctx) => void seen.push(ctx.state.get(count)) };
    const it = world([counter, asks(), reader]);
    const { result } = await it.start('free', 'a');
    await it.resume({ [result.pending[0]!.id]: { type: 'approve' } });
    expect(seen).toEqual([2]);
  });

  it('of guards hold after a crash between the message and the result', async () => {
    const guard: Middleware = {
      name: 'guard',
      guard: { on: ['tool-args'], judge: () => ({ type: 'deny', reason: 'Denied.' }) },
    };
    const store = memoryStore();
    const crashed = world([guard], { store: breakingStore(store, 3).store });
    // Watched, so that the result is written at once.
    await expect(crashed.session(calls('a')).stream('go').result).rejects.toThrow('disk full');
    const it = world([guard], { store });
    expect(results(await it.resume({}))).toEqual(['Denied.']);
    expect(it.ran).toEqual([]);
  });
});

describe('an abort while a human is asked', () => {
  it('ends the wait at once and leaves a valid history', async () => {
    const controller = new AbortController();
    const agent = new Agent({
      model: scriptedModel([calls('a', 'a')]),
      tools: [tool({ name: 'a', description: '', input: z.any(), execute: () => 'ran' })],
      middleware: [asks()],
      onRequest: () => new Promise(() => {}),
    });
    const running = watched(agent, 'go', { signal: controller.signal });
    await settle();
    controller.abort(new Error('gone home'));
    const { result, error } = await running;
    expect(error).toMatchObject({ code: 'ABORTED', cause: { message: 'gone home' } });
    expect(transcript(result.messages).slice(2)).toEqual([
      'tool: Aborted: gone home',
      'tool: Aborted: gone home',
    ]);
  });
});

describe('a call in doubt', () => {
  it('is not run again after arguments a layer wrote were approved in place', async () => {
    const store = memoryStore();
    const limit: Middleware = {
      name: 'limit',
      beforeToolCall: ({ args }) => (args.n > 100 ? { ask: { title: 'So much?' } } : undefined),
    };
    const middleware = [
      limit,
      { name: 'tax', wrapTool: (_, next) => next({ args: { n: 120 } }) } as Middleware,
    ];
    const dying = world(middleware, { store: withoutResults(store) });
    const running = dying.session(calls('a'), 'end').run('go', { onRequest: () => ({ type: 'approve' }) });
    await expect(running).rejects.toThrow('gone');
    expect(dying.ran).toEqual(['a 120']);
    const it = world(middleware, { store });
    expect(results(await it.resume({}))[0]).toContain('In doubt');
    expect(it.ran).toEqual([]);
  });

  it('is not asked about, and so not run again, by a middleware that a resume adds', async () => {
    const store = memoryStore();
    const dying = world([], { store: withoutResults(store) });
    await expect(dying.session(calls('a'), 'end').run('go')).rejects.toThrow('gone');
    const it = world([asks()], { store });
    expect(results(await it.resume({}))[0]).toContain('In doubt');
    expect(it.ran).toEqual([]);
  });
});

describe('plans', () => {
  it('without a middleware of the suspended run are refused, unless allowed', async () => {
    const it = world([asks()]);
    const { result } = await it.start('a');
    const answers = { [result.pending[0]!.id]: { type: 'approve' as const } };
    const other = world([], { store: it.store });
    await expect(other.session('end').resume({ answers })).rejects.toMatchObject({ code: 'PLAN_MISMATCH' });
    expect((await other.session(text('end')).resume({ answers, allowPlanChange: true })).status).toBe('done');
  });

  it.each<[string, Decision | undefined, string[], string[]]>([
    ['no', { type: 'reject', reason: 'No!' }, ['No!'], []],
    ['other arguments', { type: 'edit', args: { n: 5 } }, ['a 5'], ['a 5']],
    ['words', { type: 'respond', text: 'Done by hand.' }, ['Done by hand.'], []],
    ['nothing yet', undefined, [], []],
  ])('without the middleware that asked still follow the answer: %s', async (_, decision, said, ran) => {
    const it = world([asks()]);
    const { result } = await it.start('a');
    const answers = decision && { [result.pending[0]!.id]: decision };
    const other = world([], { store: it.store });
    const { messages, pending } = await other
      .session('end')
      .resume({ ...(answers && { answers }), allowPlanChange: true });
    expect(messages.filter(({ role }) => role === 'tool').map(textOf)).toEqual(said);
    expect(other.ran).toEqual(ran);
    expect(pending).toHaveLength(decision ? 0 : 1);
  });
});

describe('after a resume', () => {
  it('a call of a tool that was not offered does not run, just as before', async () => {
    const hides: Middleware = {
      name: 'hides',
      beforeModel(ctx) {
        ctx.tools = ctx.tools.filter(({ name }) => name !== 'free');
      },
    };
    const one = world([hides, asks()]);
    const first = await one.start('a', 'free');
    expect(first.result.status).toBe('suspended');
    const second = await one.resume({ [idOf(first.result.pending, 'c0')]: { type: 'approve' } });
    expect(one.ran).toEqual(['a 0']);
    expect(results(second)[1]).toContain('There is no tool "free"');
  });
});

it('an answer that was posted in time counts even if a handler here lets the question lapse', async () => {
  const clock = fakeClock();
  const { session, ran } = world([asks({ title: 'May it?', timeoutMs: 100 })], { clock });
  const asked = deferred();
  const running = session(calls('a'), text('end')).run('go', {
    onRequest: () => {
      asked.resolve();
      return new Promise(() => {});
    },
  });
  await asked.promise;
  const other = session();
  const [request] = await other.pending();
  await other.answer(request!.id, { type: 'approve' });
  await clock.advance(100);
  expect(await running).toMatchObject({ status: 'done', text: 'end' });
  expect(ran).toEqual(['a 0']);
});

describe('events of calls that somebody is asked about', () => {
  const about = (...streams: readonly Watched[]) =>
    streams
      .flatMap(({ events }) => events)
      .flatMap((event) => ('toolCall' in event ? [`${event.type.slice(15)} ${event.toolCall.id}`] : []));
  const asking = tool({
    name: 'a',
    description: '',
    input: z.any(),
    execute: async (_, ctx) => (await ctx.suspend({ title: 'Sure?' })).type,
  });
  const approve = { type: 'approve' } as const;

  it('start, wait and end, where a handler answers in place', async () => {
    const it = world([asks()]);
    const session = it.session(calls('a', 'free'), 'end');
    const done = await watch(session.stream('go', { onRequest: () => approve }));
    expect(about(done).sort()).toEqual(['end c0', 'end c1', 'start c0', 'start c1', 'waiting c0']);
    expect(about(done).slice(0, 2)).toEqual(['start c0', 'waiting c0']);
  });

  it.each<[string, readonly Middleware[], { tools?: readonly Tool[] }]>([
    ['by beforeToolCall', [asks()], {}],
    ['by the tool', [], { tools: [asking] }],
    [
      'by a guard',
      [{ name: 'g', guard: { on: ['tool-args'], judge: () => ({ type: 'ask', request: { title: '?' } }) } }],
      {},
    ],
  ])('start once and end once over a resume: asked %s', async (_, middleware, options) => {
    const it = world(middleware, options);
    const first = await it.start('a');
    expect(about(first)).toEqual(['start c0', 'waiting c0']);
    const waiting = first.events.find(({ type }) => type === 'tool_execution_waiting');
    expect(waiting).toMatchObject({ pending: first.result.pending });
    const done = await it.resume({ [first.result.pending[0]!.id]: approve });
    expect(about(done)).toEqual(['end c0']);
  });

  it('wait again when a resume brings part of the answers', async () => {
    const it = world([asks()]);
    const first = await it.start('a', 'a', 'free');
    const partly = await it.resume({ [idOf(first.result.pending, 'c1')]: approve });
    const done = await it.resume({ [idOf(first.result.pending, 'c0')]: approve });
    expect(about(first)).toEqual(['start c0', 'waiting c0', 'start c1', 'waiting c1']);
    expect(about(partly)).toEqual(['waiting c0']);
    expect(about(done).sort()).toEqual(['end c0', 'end c1', 'end c2', 'start c2']);
  });

  it('end when they are rejected, and when the run is aborted while they wait', async () => {
    const it = world([asks()]);
    const first = await it.start('a');
    const done = await it.resume({ [first.result.pending[0]!.id]: { type: 'reject' } });
    expect(about(first, done)).toEqual(['start c0', 'waiting c0', 'end c0']);
    const stop = new AbortController();
    const aborted = await watch(
      world([asks()])
        .session(calls('a'))
        .stream('go', { signal: stop.signal, onRequest: () => stop.abort() as undefined }),
    );
    expect(about(aborted)).toEqual(['start c0', 'waiting c0', 'end c0']);
  });

  it('of a sub-agent: the call that started it waits', async () => {
    const store = memoryStore();
    const make = (
      script: Parameters<typeof scriptedModel>[0],
      inner: Parameters<typeof scriptedModel>[0],
    ) => {
      const child = new Agent({ model: scriptedModel(inner), tools: [asking] });
      return new Agent({
        model: scriptedModel(script),
        tools: [child.asTool({ name: 'child', description: '' })],
        store,
      }).session('s');
    };
    const call = toolCalls({ name: 'child', args: { prompt: 'go' }, id: 'p' });
    const first = await watch(make([call], [calls('a')]).stream('go'));
    const answers = { [first.result.pending[0]!.id]: approve };
    const done = await watch(make(['end'], ['inner end']).resumeStream({ answers }));
    expect(done.result.status).toBe('done');
    expect(about(first, done)).toEqual(['start p', 'waiting p', 'end p']);
  });
});
