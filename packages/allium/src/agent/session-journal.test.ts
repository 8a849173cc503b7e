// What a session writes into its journal, and how it goes on from there.

import { describe, expect, it } from 'vitest';
import { answeringLater, counting, echo, entriesOf } from '../../../../test/session-setup.js';
import {
  Agent,
  type AgentEvent,
  defineMiddleware,
  defineState,
  ENTRY_VERSION,
  type Middleware,
  memoryStore,
  RunError,
  type Store,
} from '../index.js';
import { collect, fakeClock, scriptedModel, text, toolCalls } from '../testing/index.js';

describe('the journal', () => {
  it('appends only what is new: the number of entries per turn is constant', async () => {
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

  it('says what is wrong with a damaged journal every time it is read', async () => {
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

  it('PLAN_MISMATCH says where a missing middleware belongs, and how an unnamed one is identified', async () => {
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
        'There is no run of session "never" in this store, so nothing can be resumed. Check the id and the store, or start a run with run().',
    });
    const { runId } = await agent.session('chat').run('hello');
    await expect(agent.session('chat').resume()).rejects.toMatchObject({
      code: 'SESSION_UNKNOWN',
      message: `Session "chat" has no run to resume: the last one, "${runId}", has ended as 'done'. Start another with run().`,
      data: { runId, status: 'done' },
    });
  });

  it('a new message while suspended first answers the pending calls, visibly', async () => {
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
