import { inspect } from 'node:util';
import { describe, expect, it, vi } from 'vitest';
import { z } from 'zod';
import {
  Agent,
  type AgentEvent,
  defineMiddleware,
  defineState,
  ENTRY_VERSION,
  type Entry,
  type Middleware,
  memoryStore,
  RunError,
  type RunResult,
  type Session,
  type Store,
  textOf,
  tool,
} from '../../index.js';
import {
  chunks,
  collect,
  failWith,
  fakeClock,
  hang,
  scriptedModel,
  text,
  toolCalls,
} from '../../testing/index.js';

const echo = tool({
  name: 'echo',
  description: 'Says it again.',
  input: z.object({ say: z.string() }),
  execute: ({ say }) => say,
});

/** Ids that count up, so that two runs of the same script are comparable. */
function counting(): () => string {
  let n = 0;
  return () => `id${++n}`;
}

async function entriesOf(store: Store, id: string): Promise<readonly Entry[]> {
  return store.read(id, 1);
}

/** A store that answers with promises, as those over a network do. */
function answeringLater(store: Store): Store {
  return new Proxy(store, {
    get:
      (target, key) =>
      async (...args: never[]) =>
        ((target as never)[key as never] as (...all: never[]) => unknown).apply(target, args),
  });
}

const STORES: readonly [string, () => Store][] = [
  ['at once', () => memoryStore()],
  ['later', () => answeringLater(memoryStore())],
];

describe('sessions', () => {
  it('goes on with the same history in the next run', async () => {
    const model = scriptedModel([text('one'), text('two')]);
    const session = new Agent({ model, store: memoryStore() }).session('chat');
    await session.run('first');
    await session.run('second');
    expect(model.requests[1]!.messages.map(({ role }) => role)).toEqual(['user', 'assistant', 'user']);
    expect((await session.messages()).length).toBe(4);
  });

  it('is found again by another agent over the same store', async () => {
    const store = memoryStore();
    await new Agent({ model: scriptedModel([text('one')]), store }).session('chat').run('first');
    const model = scriptedModel([text('two')]);
    await new Agent({ model, store }).session('chat').run('second');
    expect(model.requests[0]!.messages.length).toBe(3);
  });

  it('numbers messages by run: runId.1, runId.2, …', async () => {
    const model = scriptedModel([
      toolCalls({ name: 'echo', args: { say: 'a' } }, { name: 'echo', args: { say: 'b' } }),
      text('done'),
    ]);
    const result = await new Agent({ model, tools: [echo], newId: counting() }).run('hi');
    expect(result.messages.map(({ id }) => id)).toEqual([1, 2, 3, 4, 5].map((n) => `r_id2.${n}`));
  });

  it('freezes the history it hands out', async () => {
    const session = new Agent({ model: scriptedModel([text('one')]), store: memoryStore() }).session('chat');
    const result = await session.run('first');
    const messages = await session.messages();
    for (const list of [messages, result.messages]) {
      expect(() => (list as unknown[]).push('x')).toThrow(TypeError);
      expect(() => Object.assign(list[0]!, { role: 'tool' })).toThrow(TypeError);
      expect(() => Object.assign(list[1]!.content[0]!, { text: 'forged' })).toThrow(TypeError);
    }
  });

  it('refuses a second run at a time with SESSION_BUSY, which says to steer or follow up', async () => {
    const agent = new Agent({ model: scriptedModel([hang()]) });
    const session = agent.session('chat');
    const first = session.run('hi');
    await expect(agent.session('chat').run('again')).rejects.toMatchObject({
      code: 'SESSION_BUSY',
      message: expect.stringMatching(/steer\(\).*followUp\(\)/),
    });
    await session.abort('enough');
    await expect(first).rejects.toMatchObject({ code: 'ABORTED' });
  });

  it('runs any number of sessions at once on one agent', async () => {
    const agent = new Agent({ model: scriptedModel([text('same')], { repeat: true }) });
    const results = await Promise.all(
      Array.from({ length: 50 }, (_, i) => agent.session(`s${i}`).run(`hi ${i}`)),
    );
    expect(new Set(results.map(({ runId }) => runId)).size).toBe(50);
    expect(results.every(({ messages }) => messages.length === 2)).toBe(true);
  });

  it('belongs to one tenant: another gets TENANT_MISMATCH and nothing is written', async () => {
    const store = memoryStore();
    const agent = new Agent({ model: scriptedModel([text('one'), text('two')]), store });
    await agent.session('chat').run('hi', { tenant: 'acme' });
    const before = await store.head('chat');
    await expect(agent.session('chat').run('hi', { tenant: 'other' })).rejects.toMatchObject({
      code: 'TENANT_MISMATCH',
    });
    await expect(agent.session('chat').run('hi')).rejects.toMatchObject({ code: 'TENANT_MISMATCH' });
    expect(await store.head('chat')).toBe(before);
    await expect(agent.session('chat').run('hi', { tenant: 'acme' })).resolves.toMatchObject({ text: 'two' });
  });

  it('two runners on one session: the second append fails with SESSION_CONFLICT and nothing is interleaved', async () => {
    const store = memoryStore();
    const slow = new Agent({ model: scriptedModel([chunks('tick', 'slow')]), store });
    const fast = new Agent({ model: scriptedModel([text('fast')]), store });
    const outcomes = await Promise.allSettled([slow.session('chat').run('a'), fast.session('chat').run('b')]);
    const failed = outcomes.filter(({ status }) => status === 'rejected') as PromiseRejectedResult[];
    expect(failed.length).toBe(1);
    expect(failed[0]!.reason).toMatchObject({ code: 'SESSION_CONFLICT' });
    const runs = (await entriesOf(store, 'chat')).flatMap((entry) =>
      'runId' in entry && entry.type !== 'state' ? [entry.runId] : [],
    );
    expect(runs).toEqual([...runs].sort((a, b) => runs.indexOf(a!) - runs.indexOf(b!)));
  });

  it('forgets single runs when no store was given, and keeps them when one was', async () => {
    const store = memoryStore();
    const kept = await new Agent({ model: scriptedModel([text('x')]), store }).run('hi');
    expect(await store.head(kept.sessionId)).toBeGreaterThan(0);
    const agent = new Agent({ model: scriptedModel([text('x')]) });
    const forgotten = await agent.run('hi');
    expect(await agent.store.head(forgotten.sessionId)).toBe(0);
  });
});

describe('the journal', () => {
  it('appends what is new and nothing else: entries per turn are constant', async () => {
    const store = memoryStore();
    const script = [
      ...Array.from({ length: 60 }, (_, i) => toolCalls({ name: 'echo', args: { say: 'x' }, id: `c${i}` })),
      text('done'),
    ];
    const sizes: number[] = [];
    const agent = new Agent({
      model: scriptedModel(script),
      tools: [echo],
      store,
      observers: [
        (event: AgentEvent) => void (event.type === 'turn_end' && sizes.push(store.head('chat') as number)),
      ],
    });
    await agent.session('chat').run('hi');
    await agent.observersIdle();
    const entries = await entriesOf(store, 'chat');
    const turns = entries.filter(({ type }) => type === 'message').length;
    expect(entries.length).toBeLessThanOrEqual(turns * 3 + 4);
    expect(entries.map(({ seq }) => seq)).toEqual(entries.map((_, i) => i + 1));
    expect(entries.every((entry) => entry.v === ENTRY_VERSION && typeof entry.at === 'number')).toBe(true);
  });

  it('is plain JSON: every entry survives a round trip', async () => {
    const store = memoryStore();
    const notes = defineState({ name: 'notes', scope: 'session', initial: { count: 0 } });
    const counter = defineMiddleware({
      name: 'counter',
      state: [notes],
      afterModel: (ctx) => ctx.state.update(notes, ({ count }) => ({ count: count + 1 })),
    });
    await new Agent({
      model: scriptedModel([toolCalls({ name: 'echo', args: { say: 'ü\u2028' } }), text('done')]),
      tools: [echo],
      store,
      middleware: [counter],
    })
      .session('chat')
      .run('hi', { metadata: { from: 'test' } });
    for (const entry of await entriesOf(store, 'chat'))
      expect(JSON.parse(JSON.stringify(entry))).toEqual(entry);
  });

  it('a failing store ends the run with its error, and the history in the store stays valid', async () => {
    const store = memoryStore();
    let appends = 0;
    const failing: Store = {
      ...store,
      read: (id, from) => store.read(id, from),
      head: (id) => store.head(id),
      take: (id, after) => store.take(id, after),
      append(id, seq, entries) {
        if (++appends === 2) throw new Error('disk full');
        return store.append(id, seq, entries);
      },
    };
    for (const method of ['list', 'fork', 'delete', 'post'] as const)
      (failing as unknown as Record<string, unknown>)[method] = (...args: never[]) =>
        (store[method] as (...all: never[]) => unknown)(...args);
    const agent = new Agent({ model: scriptedModel([text('lost'), text('found')]), store: failing });
    const error = await agent
      .session('chat')
      .run('hi')
      .catch((thrown) => thrown);
    expect(error).toBeInstanceOf(RunError);
    expect(error.cause.message).toBe('disk full');
    const again = await agent.session('chat').run('once more');
    expect(again.text).toBe('found');
    expect((await agent.session('chat').messages()).map(({ role }) => role)).toEqual([
      'user',
      'user',
      'assistant',
    ]);
  });

  it('works the same over a store that answers with promises', async () => {
    const run = async (store: Store) => {
      const model = scriptedModel([
        toolCalls({ name: 'echo', args: { say: 'a' } }, { name: 'echo', args: { say: 'b' } }),
        text('done'),
      ]);
      const { events, result } = await collect(
        new Agent({ model, tools: [echo], store, newId: counting(), clock: fakeClock() })
          .session('chat')
          .stream('hi'),
      );
      return {
        types: events.map(({ type }) => type).sort(),
        messages: result!.messages,
        entries: await store.read('chat', 1),
      };
    };
    expect(await run(answeringLater(memoryStore()))).toEqual(await run(memoryStore()));
  });

  it('says what is wrong with a journal from newer code', async () => {
    const store = memoryStore();
    await store.append('chat', 0, [{ v: 99, at: 0, type: 'run_start', runId: 'r', plan: [] }]);
    await expect(
      new Agent({ model: scriptedModel([]), store }).session('chat').run('hi'),
    ).rejects.toMatchObject({ code: 'SESSION_CORRUPT', message: expect.stringContaining('version 99') });
  });

  it('says what is wrong with a damaged journal each time somebody looks', async () => {
    const store = memoryStore();
    await store.append('chat', 0, [
      { v: 1, at: 0, type: 'run_start', runId: 'r', plan: [] },
      { v: 1, at: 0, type: 'nonsense' } as never,
    ]);
    const session = new Agent({ model: scriptedModel([]), store }).session('chat');
    for (let look = 1; look <= 2; look++)
      await expect(session.messages()).rejects.toMatchObject({ code: 'SESSION_CORRUPT' });
  });
});

describe('resuming', () => {
  const ask = defineMiddleware({
    name: 'ask',
    suspends: true,
    beforeToolCall: () => ({ ask: { title: 'May I?' } }),
  });
  const script = () => scriptedModel([toolCalls({ name: 'echo', args: { say: 'a' } }), text('done')]);

  it('is the same run: id, turns and message numbers go on', async () => {
    const store = memoryStore();
    const agent = new Agent({ model: script(), tools: [echo], middleware: [ask], store });
    const first = await agent.session('chat').run('hi');
    expect(first).toMatchObject({ status: 'suspended', turns: 1, stop: { reason: 'suspended' } });
    const second = await agent
      .session('chat')
      .resume({ answers: { [first.pending[0]!.id]: { type: 'approve' } } });
    expect(second).toMatchObject({ status: 'done', runId: first.runId, turns: 2, text: 'done' });
    expect(second.messages.map(({ id }) => id)).toEqual([1, 2, 3, 4].map((n) => `${first.runId}.${n}`));
    expect(second.usage.totalTokens).toBe(30);
  });

  it('needs the middleware the run was started with: PLAN_MISMATCH names what is missing', async () => {
    const store = memoryStore();
    const first = await new Agent({ model: script(), tools: [echo], middleware: [ask], store })
      .session('chat')
      .run('hi');
    const bare = new Agent({ model: scriptedModel([text('done')]), tools: [echo], store }).session('chat');
    const answers = { [first.pending[0]!.id]: { type: 'approve' as const } };
    await expect(bare.resume({ answers })).rejects.toMatchObject({
      code: 'PLAN_MISMATCH',
      message: expect.stringContaining('"ask"'),
    });
    await expect(bare.resume({ answers, allowPlanChange: true })).resolves.toMatchObject({ status: 'done' });
  });

  it('PLAN_MISMATCH says where a missing one belongs, and what one without a name is known by', async () => {
    const store = memoryStore();
    const agentOf = (...middleware: Middleware[]) =>
      new Agent({ model: script(), tools: [echo], middleware, store }).session('chat');
    await agentOf({ beforeModel() {} }, ask).run('hi', { middleware: [{ name: 'once', beforeModel() {} }] });
    await expect(agentOf(ask, { beforeModel() {} }).resume()).rejects.toMatchObject({
      code: 'PLAN_MISMATCH',
      message: expect.stringMatching(
        /"middleware-1", "once", .* by its place in the list\. .* resume\(\{ middleware \}\) if it came with the run/,
      ),
    });
  });

  it('has nothing to resume when no run is open', async () => {
    const agent = new Agent({ model: scriptedModel(['hi']), store: memoryStore() });
    await expect(agent.session('never').resume()).rejects.toMatchObject({
      code: 'SESSION_UNKNOWN',
      message:
        'There is no run of session "never" in this store, so there is none to resume. Check the id and the store, or start with run().',
    });
    const { runId } = await agent.session('chat').run('hello');
    await expect(agent.session('chat').resume()).rejects.toMatchObject({
      code: 'SESSION_UNKNOWN',
      message: `Session "chat" has no run to resume: the last one, "${runId}", has ended as 'done'. Start another with run().`,
      data: { runId, status: 'done' },
    });
  });

  it('a new message while suspended settles the pending calls first, visibly', async () => {
    const model = scriptedModel([toolCalls({ name: 'echo', args: { say: 'a' } }), text('fine')]);
    const session = new Agent({ model, tools: [echo], middleware: [ask], store: memoryStore() }).session(
      'chat',
    );
    await session.run('hi');
    const result = await session.run('never mind');
    expect(result.text).toBe('fine');
    const messages = await session.messages();
    expect(messages.map(({ role }) => role)).toEqual(['user', 'assistant', 'tool', 'user', 'assistant']);
    expect(messages[2]).toMatchObject({
      isError: true,
      content: [{ text: expect.stringContaining('Not run') }],
    });
    expect(await session.pending()).toEqual([]);
  });

  it('takes answers another process posted to the inbox', async () => {
    const store = memoryStore();
    const first = await new Agent({ model: script(), tools: [echo], middleware: [ask], store })
      .session('chat')
      .run('hi');
    const elsewhere = new Agent({
      model: scriptedModel([text('done')]),
      tools: [echo],
      middleware: [ask],
      store,
    }).session('chat');
    await elsewhere.answer(first.pending[0]!.id, { type: 'approve', hash: first.pending[0]!.hash });
    await expect(elsewhere.resume()).resolves.toMatchObject({ status: 'done', text: 'done' });
  });
});

describe.each(STORES)('a session of another tenant, in a store that answers %s', (_, newStore) => {
  const MISMATCH = { code: 'TENANT_MISMATCH', message: expect.stringContaining('"acme", not "evil"') };
  const ways: readonly [string, (session: Session, requestId: string) => Promise<unknown>][] = [
    ['messages()', (session) => session.messages()],
    ['pending()', (session) => session.pending()],
    ['answer()', (session, requestId) => session.answer(requestId, { type: 'approve' })],
    ['steer()', (session) => session.steer('do evil')],
    ['followUp()', (session) => session.followUp('do evil')],
    ['abort()', (session) => session.abort('evil')],
    ['resume()', (session) => session.resume()],
    ['run()', (session) => session.run('hi')],
  ];

  it.each(ways)('tells nothing and takes nothing: %s', async (_way, enter) => {
    const store = newStore();
    const agent = new Agent({
      model: scriptedModel([toolCalls({ name: 'echo', args: { say: 'a' } })]),
      tools: [echo],
      beforeToolCall: () => ({ ask: { title: 'May I?' } }),
      tenant: 'acme',
      store,
    });
    const { pending } = await agent.session('chat').run('a secret');
    const before = await store.head('chat');
    const evil = new Agent({ model: scriptedModel([]), tenant: 'evil', store });
    await expect(enter(evil.session('chat'), pending[0]!.id)).rejects.toMatchObject(MISMATCH);
    await expect(enter(agent.session('chat', { tenant: 'evil' }), pending[0]!.id)).rejects.toMatchObject(
      MISMATCH,
    );
    expect(await store.head('chat')).toBe(before);
    expect(await store.take('chat', 0)).toEqual([]);
    expect(await agent.session('chat').pending()).toEqual(pending);
  });

  const whileRunning = ways.filter(([way]) => way !== 'run()' && way !== 'resume()');
  it.each(whileRunning)(
    'neither while a run is under way, from its beginning on: %s',
    async (_way, enter) => {
      const store = newStore();
      const agent = new Agent({ model: scriptedModel([text('one'), hang('so far')]), store });
      await agent.session('chat').run('hi', { tenant: 'acme' });
      const acme = agent.session('chat', { tenant: 'acme' });
      const running = acme.run('again');
      const evil = agent.session('chat', { tenant: 'evil' });
      await expect(enter(evil, 'r')).rejects.toMatchObject(MISMATCH);
      await expect(enter(evil, 'r')).rejects.toMatchObject(MISMATCH);
      expect(await store.take('chat', 0)).toEqual([]);
      await acme.abort('enough');
      await expect(running).rejects.toMatchObject({ code: 'ABORTED', cause: 'enough' });
    },
  );

  it('is opened with agent.session(id, { tenant }), which its runs then belong to', async () => {
    const store = newStore();
    const model = scriptedModel([
      toolCalls({ name: 'echo', args: { say: 'a' } }),
      text('two'),
      text('three'),
      text('four'),
    ]);
    const ask = () => ({ ask: { title: 'May I?' } });
    const agent = new Agent({ model, tools: [echo], beforeToolCall: ask, tenant: 'of the agent', store });
    const session = agent.session('chat', { tenant: 'acme' });
    await session.run('hi');
    expect((await store.list({ tenant: 'acme' })).sessions).toHaveLength(1);
    const [request] = await session.pending();
    await session.answer(request!.id, { type: 'approve' });
    expect(await session.resume()).toMatchObject({ status: 'done', text: 'two' });
    await session.followUp('and then?');
    expect(await session.stream('go on').result).toMatchObject({ text: 'four' });
    expect(await session.messages()).toHaveLength(8);
    await expect(session.run('hi', { tenant: 'other' })).rejects.toMatchObject({ code: 'TENANT_MISMATCH' });
  });

  it('is nobody’s before its first run: anybody may post to it', async () => {
    const store = newStore();
    await new Agent({ model: scriptedModel([]), tenant: 'other', store }).session('chat').steer('be brief');
    const agent = new Agent({ model: scriptedModel([text('one'), text('two')]), tenant: 'acme', store });
    await agent.session('chat').run('hi');
    expect((await agent.session('chat').messages()).map(textOf)).toEqual(['hi', 'be brief', 'one']);
  });
});

it('steering into a run of the same agent reads nothing from the store', async () => {
  const store = memoryStore();
  const read = vi.spyOn(store, 'read');
  const steering = tool({
    name: 'steer',
    description: 'Steers.',
    input: z.object({}),
    async execute() {
      read.mockClear();
      await agent.session('chat').steer('left');
      await agent.session('chat').followUp('and right');
      return `read ${read.mock.calls.length} times`;
    },
  });
  const model = scriptedModel([toolCalls({ name: 'steer' }), text('one'), text('two')]);
  const agent = new Agent({ model, tools: [steering], store });
  const { messages } = await agent.session('chat').run('go');
  expect(messages.map(textOf)).toEqual(['go', '', 'read 0 times', 'left', 'one', 'and right', 'two']);
});

it.each([
  [null, 'an object with tenant'],
  [{ tenant: 5 }, 'Expected `tenant` to be text, got 5'],
  [{ tenat: 'acme' }, 'Did you mean `tenant`?'],
])('agent.session(id, %j) is refused', (options, message) => {
  const agent = new Agent({ model: scriptedModel([]) });
  expect(() => agent.session('chat', options as never)).toThrow(
    expect.objectContaining({ code: 'INVALID_OPTION', message: expect.stringContaining(message) }),
  );
});

describe.each(STORES)('a session that was deleted, in a store that answers %s', (_, newStore) => {
  const script = (...answers: string[]) => scriptedModel(answers.map((one) => text(one)));

  it('is empty for whoever knew it, and can be begun anew', async () => {
    const store = newStore();
    const model = script('old', 'new');
    const session = new Agent({ model, store }).session('chat');
    await session.run('a secret');
    await store.delete('chat');
    expect(await session.messages()).toEqual([]);
    await session.run('hi');
    expect(model.requests[1]!.messages.map(textOf)).toEqual(['hi']);
  });

  it.each([
    ['shorter than', 1],
    ['as long as', 2],
    ['longer than', 3],
  ])('and made again, %s it was, holds and sends nothing of before', async (_length, runs) => {
    const store = newStore();
    const model = script('old 1', 'old 2', 'last');
    const agent = new Agent({ model, store });
    const [session, handle] = [agent.session('chat'), agent.session('chat')];
    await session.run('a secret');
    await session.run('another secret');
    expect(await handle.messages()).toHaveLength(4);
    await store.delete('chat');
    const other = new Agent({ model: script('new 1', 'new 2', 'new 3'), store }).session('chat');
    const expected: string[] = [];
    for (let n = 1; n <= runs; n++) {
      await other.run(`hi ${n}`);
      expected.push(`hi ${n}`, `new ${n}`);
    }
    expect((await handle.messages()).map(textOf)).toEqual(expected);
    await session.run('go on');
    expect(model.requests[2]!.messages.map(textOf)).toEqual([...expected, 'go on']);
    expect((await handle.messages()).map(textOf)).toEqual([...expected, 'go on', 'last']);
  });

  it('is not resumed, and what is posted to the new one is taken', async () => {
    const store = newStore();
    const model = scriptedModel([toolCalls({ name: 'echo', args: { say: 'a' } }), text('one'), text('two')]);
    const beforeToolCall = () => ({ ask: { title: 'May I?' } });
    const agent = new Agent({ model, tools: [echo], beforeToolCall, store });
    const [session, handle] = [agent.session('chat'), agent.session('chat')];
    await handle.steer('an old word');
    await session.run('hi');
    expect(await handle.pending()).toHaveLength(1);
    await store.delete('chat');
    await expect(handle.resume()).rejects.toMatchObject({ code: 'SESSION_UNKNOWN' });
    await handle.steer('a new word');
    await session.run('again');
    expect((await session.messages()).map(textOf)).toEqual(['again', 'a new word', 'one']);
  });
});

describe.each(STORES)('several Session objects of one agent, over a store that answers %s', (_, newStore) => {
  it('all see the run under way, and can answer what it asks', async () => {
    let giveUp!: (nothing: undefined) => void;
    const handler = new Promise<undefined>((resolve) => {
      giveUp = resolve;
    });
    const agent = new Agent({
      model: scriptedModel([text('one'), toolCalls({ name: 'echo', args: { say: 'a' } }), text('two')]),
      tools: [echo],
      beforeToolCall: () => ({ ask: { title: 'May I?' } }),
      store: newStore(),
    });
    await agent.session('chat').run('first');
    let running!: Promise<RunResult>;
    await new Promise<void>((asked) => {
      const onRequest = () => {
        asked();
        return handler;
      };
      running = agent.session('chat').run('second', { onRequest });
    });
    const messages = await agent.session('chat').messages();
    expect(messages.map(textOf)).toEqual(['first', 'one', 'second', '']);
    const [request] = await agent.session('chat').pending();
    const { id, hash } = request!;
    await agent.session('chat').answer(id, { type: 'approve', hash });
    await expect(agent.session('chat').answer(id, { type: 'reject' })).rejects.toMatchObject({
      code: 'REQUEST_UNKNOWN',
      message: expect.stringContaining('None is open.'),
    });
    giveUp(undefined);
    expect(await running).toMatchObject({ status: 'done', text: 'two', pending: [] });
  });

  it('any of them aborts the run, though its model hangs', async () => {
    const store = newStore();
    const agent = new Agent({ model: scriptedModel([hang('so far')]), store });
    const running = agent.session('chat').run('hi');
    await agent.session('chat').abort('enough');
    await expect(running).rejects.toMatchObject({ code: 'ABORTED', cause: 'enough' });
    expect(await store.take('chat', 0)).toEqual([]);
  });

  it('one may look several times at once, and begin a run meanwhile', async () => {
    const agent = new Agent({ model: scriptedModel([text('one'), text('two')]), store: newStore() });
    await agent.session('chat').run('first');
    const session = agent.session('chat');
    const [before, pending, result, during, again] = await Promise.all([
      session.messages(),
      session.pending(),
      session.run('second'),
      session.messages(),
      session.messages(),
    ]);
    expect(pending).toEqual([]);
    expect(result.text).toBe('two');
    for (const seen of [before, during, again])
      expect(seen.map(textOf).slice(0, 2)).toEqual(['first', 'one']);
    expect((await session.messages()).map(textOf)).toEqual(['first', 'one', 'second', 'two']);
  });

  it('a sub-agent’s session is where its run is: in the store of the caller', async () => {
    const seen: unknown[] = [];
    const look = tool({
      name: 'look',
      description: 'Looks.',
      input: z.object({}),
      async execute(_input, ctx) {
        seen.push((await clerk.session(ctx.sessionId).messages()).map(textOf));
        return 'ok';
      },
    });
    const clerk = new Agent({
      model: scriptedModel([toolCalls({ name: 'look' }), text('done')]),
      tools: [look],
      store: newStore(),
    });
    const boss = new Agent({
      model: scriptedModel([toolCalls({ name: 'clerk', args: { prompt: 'Look.' } }), text('done')]),
      tools: [clerk.asTool({ name: 'clerk', description: 'Looks.' })],
      store: newStore(),
    });
    await boss.session('chat').run('hi');
    expect(seen).toEqual([[]]);
  });
});

describe('what other parts of a run see', () => {
  const visits = defineState({ name: 'visits', scope: 'session', initial: 0 });

  it('state written in beforeRun holds inside the same run', async () => {
    const seen: string[] = [];
    const counter = defineMiddleware({
      name: 'visits',
      state: [visits],
      beforeRun: (ctx) => ctx.state.update(visits, (n) => n + 1),
      transformSystemPrompt: (prompt, ctx) => {
        seen.push(String(ctx.state.get(visits)));
        return prompt;
      },
    });
    const session = new Agent({
      model: scriptedModel([text('a'), text('b')]),
      middleware: [counter],
      store: memoryStore(),
    }).session('chat');
    await session.run('one');
    await session.run('two');
    expect(seen).toEqual(['1', '2']);
  });

  it('what the caller passes in stays the caller’s: hooks see frozen copies', async () => {
    const message = { role: 'user' as const, content: [{ type: 'text' as const, text: 'hi' }] };
    const metadata = { tags: ['a'] };
    const outcomes: boolean[] = [];
    const meddler = defineMiddleware({
      name: 'meddler',
      acceptMessage: (given, ctx) => {
        outcomes.push(
          Reflect.set(given, 'role', 'tool'),
          Reflect.set(given.content[0]!, 'text', 'x'),
          Reflect.set(ctx.runMetadata.tags as object, '0', 'x'),
        );
      },
    });
    await new Agent({ model: scriptedModel([text('ok')]), middleware: [meddler] }).run(message, { metadata });
    expect(outcomes).toEqual([false, false, false]);
    expect(message.content[0]!.text).toBe('hi');
    expect(metadata.tags).toEqual(['a']);
  });

  it('usage of a child run stays with its parent through suspend and resume', async () => {
    const child = new Agent({ model: scriptedModel([text('c', { inputTokens: 400, outputTokens: 100 })]) });
    const delegate = tool({
      name: 'delegate',
      description: 'Asks another agent.',
      input: z.object({}),
      execute: async (_, ctx) => (await child.run('go', { parent: ctx })).text,
    });
    const ask = defineMiddleware({
      name: 'ask',
      suspends: true,
      beforeToolCall: (ctx) => (ctx.toolCall.name === 'echo' ? { ask: {} } : undefined),
    });
    const model = scriptedModel([
      toolCalls({ name: 'delegate' }),
      toolCalls({ name: 'echo', args: { say: 'x' } }),
      text('done'),
    ]);
    const store = memoryStore();
    const agent = new Agent({ model, tools: [delegate, echo], middleware: [ask], store });
    const first = await agent.session('chat').run('hi');
    expect(first.usage.totalTokens).toBe(530);
    const second = await agent
      .session('chat')
      .resume({ answers: { [first.pending[0]!.id]: { type: 'approve' } } });
    expect(second.usage.totalTokens).toBe(545);
  });

  it('timeoutMs goes on counting through suspend and resume', async () => {
    const clock = fakeClock();
    const ask = defineMiddleware({
      name: 'ask',
      suspends: true,
      beforeToolCall: (ctx) => (ctx.toolCall.name === 'echo' ? { ask: {} } : undefined),
    });
    const wait = tool({
      name: 'wait',
      description: 'Waits.',
      input: z.object({}),
      execute: () => clock.advance(80),
    });
    const model = scriptedModel([
      toolCalls({ name: 'wait' }),
      toolCalls({ name: 'echo', args: { say: 'x' } }),
      toolCalls({ name: 'wait' }),
      text('done'),
    ]);
    const agent = new Agent({
      model,
      tools: [wait, echo],
      middleware: [ask],
      store: memoryStore(),
      clock,
      limits: { timeoutMs: 100 },
    });
    const first = await agent.session('chat').run('hi');
    expect(first.status).toBe('suspended');
    await clock.advance(1000);
    const second = await agent
      .session('chat')
      .resume({ answers: { [first.pending[0]!.id]: { type: 'approve' } } });
    expect(second).toMatchObject({ status: 'stopped', stop: { reason: 'timeout' } });
  });

  it('assistant messages that are seeded as input are no turns of the run', async () => {
    const seeded = {
      id: 'x',
      role: 'assistant' as const,
      content: [{ type: 'text' as const, text: 'earlier' }],
      stopReason: 'stop' as const,
    };
    const result = await new Agent({ model: scriptedModel([text('now')]), limits: { turns: 1 } }).run([
      'hello',
      seeded,
      'and?',
    ]);
    expect(result).toMatchObject({ status: 'done', turns: 1, text: 'now' });
  });
});

describe('what run() settles with', () => {
  it('rejects with a RunError that carries the code, the result so far and the original error', async () => {
    const cause = new Error('boom');
    const error = await new Agent({ model: scriptedModel([failWith(cause, 'half')]) })
      .run('hi')
      .catch((thrown) => thrown);
    expect(error).toBeInstanceOf(RunError);
    expect(error.code).toBe('MODEL_ERROR');
    expect(error.cause).toBe(cause);
    expect(error.result).toMatchObject({ status: 'error', stop: { reason: 'error' }, turns: 0 });
    expect(error.result.messages.map(({ role }: { role: string }) => role)).toEqual(['user']);
  });

  it('an abort before the start makes no model call', async () => {
    const model = scriptedModel([text('x')]);
    const error = await new Agent({ model })
      .run('hi', { signal: AbortSignal.abort(new Error('not today')) })
      .catch((thrown) => thrown);
    expect(error).toMatchObject({ code: 'ABORTED', result: { status: 'aborted' } });
    expect(error.cause.message).toBe('not today');
    expect(model.requests.length).toBe(0);
  });

  it('an abort before the start writes nothing, and ends nothing that waits', async () => {
    const store = memoryStore();
    const pay = tool({
      name: 'pay',
      description: '',
      input: z.object({}),
      execute: async (_, ctx) => String(await ctx.suspend({ title: 'Pay?' })),
    });
    const answers = defineMiddleware({ name: 'answers', wrapRun: async (_, next) => next().catch(() => {}) });
    const session = new Agent({
      model: scriptedModel([toolCalls({ name: 'pay' })]),
      tools: [pay],
      store,
      middleware: [answers],
    }).session('s');
    await session.run('pay it');
    const before = store.read('s', 1);
    const signal = AbortSignal.abort('no');
    await expect(session.run('other', { signal })).rejects.toMatchObject({
      code: 'ABORTED',
      result: { status: 'aborted', messages: [] },
    });
    await expect(session.stream('other', { signal }).result).rejects.toMatchObject({ code: 'ABORTED' });
    expect(store.read('s', 1)).toEqual(before);
    expect(await session.pending()).toHaveLength(1);
  });

  it('an abort while the run begins leaves the input out', async () => {
    const store = memoryStore();
    const controller = new AbortController();
    const late = defineMiddleware({ name: 'late', beforeRun: () => controller.abort('changed my mind') });
    const session = new Agent({ model: scriptedModel([]), store, middleware: [late] }).session('s');
    const running = session.run('hi', { signal: controller.signal });
    await expect(running).rejects.toMatchObject({ code: 'ABORTED', result: { messages: [] } });
    expect(await session.messages()).toEqual([]);
  });
});

describe('what afterRun writes', () => {
  const runs = defineState({ name: 'runs', scope: 'run', initial: 0 });
  const kept = defineState({ name: 'kept', scope: 'session', initial: 0 });
  const late = defineMiddleware({
    name: 'late',
    state: [runs, kept],
    async afterRun(ctx) {
      ctx.state.set(runs, 1);
      ctx.state.update(kept, (n) => n + 1);
      await ctx.generate(scriptedModel(['note']), { messages: 'note it' });
    },
  });

  it('is journaled before the end of the run', async () => {
    const store = memoryStore();
    const result = await new Agent({ model: scriptedModel(['a']), middleware: [late], store })
      .session('chat')
      .run('hi');
    expect(result).toMatchObject({ status: 'done', usage: { totalTokens: 30 } });
    const types = (await entriesOf(store, 'chat')).map(({ type }) => type);
    expect(types.slice(-4)).toEqual(['state', 'state', 'usage', 'run_end']);
  });

  it('is kept when the run failed, wherever its middleware stands', async () => {
    const store = memoryStore();
    const outer = defineMiddleware({ name: 'outer', afterRun() {} });
    const agent = new Agent({
      model: scriptedModel([failWith(new Error('down'))]),
      middleware: [outer, late],
      store,
    });
    await expect(agent.session('chat').run('hi')).rejects.toMatchObject({ code: 'MODEL_ERROR' });
    const cells = (await entriesOf(store, 'chat')).flatMap((entry) =>
      entry.type === 'state' ? [entry.cell] : [],
    );
    expect(cells).toContain('late:kept');
  });
});

describe('mistakes that must not hang, leak or corrupt', () => {
  it('a layer that tries again for ever is cut off, and timers still fire', async () => {
    const stubborn = defineMiddleware({
      name: 'stubborn',
      async wrapModel(_, next) {
        for (;;) {
          try {
            return await next();
          } catch {}
        }
      },
    });
    const clock = fakeClock();
    const run = new Agent({
      model: scriptedModel([failWith(new Error('down'))], { repeat: true }),
      middleware: [stubborn],
      clock,
    }).run('hi');
    const outcome = run.catch((error) => error);
    await clock.advance(20_000);
    expect(await outcome).toMatchObject({ code: 'TOO_MANY_ATTEMPTS', result: { status: 'error' } });
  });

  it('an abort is an abort, however often a layer tried again', async () => {
    const stubborn = defineMiddleware({
      name: 'stubborn',
      async wrapModel(_, next) {
        for (let tries = 0; ; tries++) {
          try {
            return await next();
          } catch (error) {
            if (tries > 150) throw error;
          }
        }
      },
    });
    const controller = new AbortController();
    const run = new Agent({ model: scriptedModel([hang()], { repeat: true }), middleware: [stubborn] }).run(
      'hi',
      { signal: controller.signal },
    );
    setImmediate(() => controller.abort(new Error('enough')));
    await expect(run).rejects.toMatchObject({ code: 'ABORTED' });
  });

  it('what afterToolCall puts into a result is judged like what the tool returned', async () => {
    const secret = tool({
      name: 'secret',
      description: 'Tells.',
      input: z.object({}),
      execute: () => 'SECRET',
    });
    const guard = defineMiddleware({
      name: 'guard',
      guard: {
        on: ['tool-result'],
        find: (given) =>
          [...given.matchAll(/SECRET/g)].map((m) => ({ start: m.index, end: m.index + m[0].length })),
      },
    });
    const leak = defineMiddleware({
      name: 'leak',
      afterToolCall: () => ({ content: 'again: SECRET', details: { raw: 'SECRET' } }),
    });
    const store = memoryStore();
    const model = scriptedModel([toolCalls({ name: 'secret' }), text('done')]);
    const { events } = await collect(
      new Agent({ model, tools: [secret], middleware: [guard, leak], store }).session('chat').stream('hi'),
    );
    expect(
      JSON.stringify([events, await entriesOf(store, 'chat'), model.requests[1]!.messages]),
    ).not.toContain('SECRET');
  });

  it('input that a run layer assigns is checked before it is appended', async () => {
    for (const input of ['text', [{ role: 'user' }], 5]) {
      const store = memoryStore();
      const odd = defineMiddleware({
        name: 'odd',
        beforeRun: (ctx) => Object.assign(ctx, { input }) && undefined,
      });
      await expect(
        new Agent({ model: scriptedModel(['x']), middleware: [odd], store }).session('chat').run('hi'),
      ).rejects.toMatchObject({ code: 'INVALID_MESSAGE' });
      expect((await entriesOf(store, 'chat')).filter(({ type }) => type === 'message')).toEqual([]);
    }
  });

  it('what a model layer assigns is checked before the model is called', async () => {
    for (const [field, value] of Object.entries({
      messages: 'x',
      systemPrompt: 5,
      settings: 5,
      tools: [{}],
    })) {
      const model = scriptedModel(['x']);
      const odd = defineMiddleware({
        name: 'odd',
        beforeModel: (ctx) => void Object.assign(ctx, { [field]: value }),
      });
      await expect(new Agent({ model, middleware: [odd] }).run('hi')).rejects.toMatchObject({
        code: 'INVALID_OPTION',
        message: expect.stringContaining(`ctx.${field}`),
      });
      expect(model.requests).toHaveLength(0);
    }
  });

  it('a result prints its values', async () => {
    const result = await new Agent({ model: scriptedModel(['answer']) }).run('hi');
    expect(inspect(result)).toContain('totalTokens: 15');
    expect(inspect(result)).not.toContain('[Getter]');
  });
});
