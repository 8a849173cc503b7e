// Sessions of another tenant, sessions that were deleted, and several objects of one session.

import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { answeringLater, echo } from '../../../../test/session-setup.js';
import { Agent, memoryStore, type RunResult, type Session, type Store, textOf, tool } from '../index.js';
import { hang, scriptedModel, text, toolCalls } from '../testing/index.js';

const STORES: readonly [string, () => Store][] = [
  ['at once', () => memoryStore()],
  ['later', () => answeringLater(memoryStore())],
];

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

  it.each(ways)('reveals nothing and accepts nothing: %s', async (_way, enter) => {
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
    'also reveals nothing while a run is under way, from its beginning on: %s',
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

describe.each(STORES)('a session that was deleted, in a store that answers %s', (_, newStore) => {
  const script = (...answers: string[]) => scriptedModel(answers.map((one) => text(one)));

  it('is empty for everybody who had it open, and can be started again', async () => {
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
  ])('and made again, %s it was, holds and sends nothing from before', async (_length, runs) => {
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
