// A sub-agent that asks a person: the question is the parent's, and so is the answer.

import { Agent, type Decision, memoryStore, type Store, tool } from 'allium';
import { approval, ask } from 'allium/middleware/approval';
import { fakeClock, scriptedModel, text, toolCalls } from 'allium/testing';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { answersTo, byTurn, call, childEvents, office, toolTexts } from '../../../../test/child-run-setup.js';
import {
  breakingStore,
  deferred,
  expectBalanced,
  settle,
  watch,
  watched,
} from '../../../../test/run-checks.js';

describe('a child that asks', () => {
  it('suspends the parent; the answer reaches it, and both go on as the same runs', async () => {
    const { session, store, paid } = office();
    const first = await watched(session, 'go');
    expect(first.result).toMatchObject({ status: 'suspended', stop: { reason: 'suspended' } });
    const { runId, messages } = first.result;
    const place = `${messages[1]!.id}.0`;
    expect(first.result.pending).toMatchObject([
      {
        runId,
        callId: 'c',
        toolName: 'pay',
        arguments: '{"amount":7}',
        title: 'Run "pay"?',
        kind: 'ask',
        from: { agent: 'clerk', sessionId: `s/${place}`, callId: 'p' },
      },
    ]);
    expect(paid).toEqual([]);
    const elsewhere = office({ store, paid });
    expect(await elsewhere.session.pending()).toEqual(first.result.pending);
    const second = await watch(
      elsewhere.session.resumeStream({ answers: answersTo(first.result, { type: 'approve' }) }),
    );
    expect(second.result).toMatchObject({ status: 'done', text: 'All is paid.', runId, pending: [] });
    expect(toolTexts(second.result.messages)).toEqual(['The clerk has paid.']);
    expect(paid).toEqual([7]);
    const entries = await store.read(`s/${place}`, 1);
    expect(entries.filter(({ type }) => type === 'run_start')).toHaveLength(1);
    expect(second.result.usage.totalTokens).toBe(60);
    const resumed = childEvents(second.events).map(({ event }) => event);
    expectBalanced(resumed);
    expect(resumed[0]).toMatchObject({ type: 'agent_start', resumed: true });
  });

  it.each<[Decision, string, number[]]>([
    [{ type: 'edit', args: { amount: 3 } }, 'Paid 3.', [3]],
    [{ type: 'reject', reason: 'Too dear.' }, 'Too dear.', []],
    [{ type: 'respond', text: 'I paid it myself.' }, 'I paid it myself.', []],
  ])('takes the decision %j through the inbox of the parent', async (decision, said, effect) => {
    const { session, store, paid } = office();
    const { pending, messages } = await session.run('go');
    await office({ store }).session.answer(pending[0]!.id, { ...decision, hash: pending[0]!.hash });
    const elsewhere = office({ store, paid });
    expect((await elsewhere.session.resume()).status).toBe('done');
    const child = new Agent({ model: byTurn(), store }).session(`s/${messages[1]!.id}.0`);
    expect(toolTexts(await child.messages())).toEqual([said]);
    expect(paid).toEqual(effect);
  });

  it('refuses answers for other arguments, to other questions and for the second time', async () => {
    const { session } = office();
    const { pending } = await session.run('go');
    const { id } = pending[0]!;
    await expect(session.answer(id, { type: 'approve', hash: 'other' })).rejects.toMatchObject({
      code: 'REQUEST_MISMATCH',
    });
    await expect(session.answer(id.split('/')[1]!, { type: 'approve' })).rejects.toMatchObject({
      code: 'REQUEST_UNKNOWN',
    });
    await session.answer(id, { type: 'approve' });
    await expect(session.answer(id, { type: 'reject' })).rejects.toMatchObject({ code: 'REQUEST_UNKNOWN' });
  });

  it('stays suspended when it is resumed without an answer, and asks nothing twice', async () => {
    const { session, store, paid } = office();
    const first = await session.run('go');
    const again = await office({ store, paid }).session.resume();
    expect(again).toMatchObject({ status: 'suspended', runId: first.runId });
    expect(again.pending).toEqual(first.pending);
    expect(
      (await office({ store, paid }).session.resume({ answers: answersTo(again, { type: 'approve' }) }))
        .status,
    ).toBe('done');
    expect(paid).toEqual([7]);
  });

  it('may ask again later, and several may ask at once; part of the answers may come first', async () => {
    const two = () => {
      const { clerk } = office({
        store,
        paid,
        clerk: {
          model: byTurn(
            toolCalls(call('pay', { amount: 1 }, 'a'), call('pay', { amount: 2 }, 'b')),
            toolCalls(call('pay', { amount: 3 }, 'a2')),
            text('Paid.'),
          ),
        },
      });
      return new Agent({
        model: byTurn(toolCalls(call('clerk', undefined, 'x'), call('clerk', undefined, 'y')), text('end')),
        tools: [clerk.asTool({ name: 'clerk', description: '' })],
        newId: () => 'same',
        store,
      }).session('s');
    };
    const store = memoryStore();
    const paid: number[] = [];
    let result = await two().run('go');
    // Ids of runs are no help here: they are all the same.
    expect(new Set(result.pending.map(({ id }) => id)).size).toBe(4);
    const sizes: number[] = [];
    for (let n = 0; result.status === 'suspended' && n < 20; n++) {
      sizes.push(result.pending.length);
      const { id } = result.pending[0]!;
      result = await two().resume({ answers: { [id]: { type: 'approve' } } });
    }
    expect(result).toMatchObject({ status: 'done', text: 'end', pending: [] });
    expect(sizes).toEqual([4, 3, 3, 2, 2, 1]);
    expect([...paid].sort()).toEqual([1, 1, 2, 2, 3, 3]);
  });

  it('three levels down, suspends them all and is answered at the top', async () => {
    const store = memoryStore();
    const paid: number[] = [];
    const top = () => {
      let { boss } = office({ paid });
      for (const name of ['head', 'chief'])
        boss = new Agent({
          name,
          model: byTurn(toolCalls(call('next', { prompt: 'Go on.' }, name)), text(`${name} is content.`)),
          tools: [boss.asTool({ name: 'next', description: '' })],
          store,
        });
      return boss.session('s');
    };
    const first = await watched(top(), 'go');
    expect(first.result.pending).toMatchObject([
      { callId: 'chief', toolName: 'pay', from: { agent: 'clerk', callId: 'p' } },
    ]);
    expect(first.result.pending[0]!.from!.sessionId.split('/')).toHaveLength(4);
    await top().answer(first.result.pending[0]!.id, { type: 'approve' });
    const { result } = await watch(top().resumeStream());
    expect(result).toMatchObject({ status: 'done', text: 'chief is content.', runId: first.result.runId });
    expect(paid).toEqual([7]);
    // Turns of four agents, two each, all on the account of the first.
    expect(result.usage.totalTokens).toBe(8 * 15);
  });

  it('is one question; the call that starts the child may need another one', async () => {
    const store = memoryStore();
    const paid: number[] = [];
    const make = () => office({ store, paid, boss: { middleware: [approval()] } }).session;
    const asked: string[] = [];
    let result = await make().run('go');
    for (let n = 0; result.status === 'suspended' && n < 5; n++) {
      asked.push(...result.pending.map(({ toolName }) => toolName));
      result = await make().resume({ answers: answersTo(result, { type: 'approve' }) });
    }
    expect([asked, result.status, paid]).toEqual([['clerk', 'pay'], 'done', [7]]);
  });

  it('whose tool asks in the middle of its work suspends the parent the same way', async () => {
    const store = memoryStore();
    const made = () => {
      const wait = tool({
        name: 'wait',
        description: '',
        input: z.object({}),
        execute: async (_, ctx) => `answered: ${(await ctx.suspend({ title: 'Well?' })).type}`,
      });
      return office({
        store,
        clerk: { tools: [wait], middleware: [], model: byTurn(toolCalls(call('wait', {})), text('Waited.')) },
      });
    };
    const first = await made().session.run('go');
    expect(first.pending).toMatchObject([{ kind: 'suspend', title: 'Well?' }]);
    const second = await made().session.resume({ answers: answersTo(first, { type: 'approve' }) });
    expect(toolTexts(second.messages)).toEqual(['Waited.']);
  });

  it('lets siblings finish, and is the only one that runs again', async () => {
    const store = memoryStore();
    const ran: string[] = [];
    const made = () => {
      const { clerk, paid } = office({ store });
      const note = tool({
        name: 'note',
        description: '',
        input: z.any(),
        execute: () => void ran.push('note'),
      });
      const agent = new Agent({
        model: byTurn(toolCalls(call('clerk'), call('note', {})), text('end')),
        tools: [clerk.asTool({ name: 'clerk', description: '' }), note],
        store,
      });
      return { session: agent.session('s'), paid };
    };
    const first = await made().session.run('go');
    expect(ran).toEqual(['note']);
    const { session, paid } = made();
    const { result } = await watch(session.resumeStream({ answers: answersTo(first, { type: 'approve' }) }));
    expect(toolTexts(result.messages)).toEqual(['The clerk has paid.', '(no output)']);
    expect([ran, paid]).toEqual([['note'], [7]]);
  });

  it('counts as rejected if nobody answers in time; an answer in time counts however late the run resumes', async () => {
    const clock = fakeClock();
    const timed = { clock, middleware: [approval({ policy: () => ask({}, 100) })] };
    const make = (store: Store, paid: number[]) => office({ store, paid, clerk: timed, boss: { clock } });
    const late = { store: memoryStore(), paid: [] as number[] };
    await make(late.store, late.paid).session.run('go');
    await clock.advance(101);
    const { result } = await watch(make(late.store, late.paid).session.resumeStream());
    expect(result).toMatchObject({ status: 'done', pending: [] });
    expect(late.paid).toEqual([]);

    const inTime = { store: memoryStore(), paid: [] as number[] };
    const first = await make(inTime.store, inTime.paid).session.run('go');
    // The parent takes the answer and breaks off before the child has heard it.
    const broken = breakingStore(inTime.store, 2).store;
    await expect(
      make(broken, inTime.paid).session.resume({ answers: answersTo(first, { type: 'approve' }) }),
    ).rejects.toThrow('disk full');
    expect(inTime.paid).toEqual([]);
    await clock.advance(500);
    expect((await make(inTime.store, inTime.paid).session.resume()).status).toBe('done');
    expect(inTime.paid).toEqual([7]);
  });

  it('closes a question at the parent that was answered at the child', async () => {
    const { session, store } = office();
    const { pending } = await session.run('go');
    const { from, id } = pending[0]!;
    const child = new Agent({ model: byTurn(), store }).session(from!.sessionId);
    await child.answer(id.slice(id.indexOf('/') + 1), { type: 'reject', reason: 'No.' });
    const result = await office({ store }).session.resume();
    expect(result).toMatchObject({ status: 'done', pending: [] });
    expect(await office({ store }).session.pending()).toEqual([]);
  });

  it('is answered in place by the handler of the parent, and nobody’s time runs meanwhile', async () => {
    const clock = fakeClock();
    const answer = deferred<Decision>();
    const asked: string[] = [];
    const { boss, paid } = office({
      clerk: { clock, limits: { timeoutMs: 50 } },
      boss: {
        clock,
        limits: { timeoutMs: 50 },
        onRequest: (request) => {
          asked.push(`${request.callId} ${request.from?.agent} ${request.id.includes('/')}`);
          return answer.promise;
        },
      },
    });
    const running = boss.session('s').run('go');
    while (asked.length === 0) await settle();
    await clock.advance(1000);
    answer.resolve({ type: 'approve' });
    expect(await running).toMatchObject({ status: 'done' });
    expect([asked, paid]).toEqual([['c clerk true'], [7]]);
  });

  it('goes with the call when a new message comes instead of an answer', async () => {
    const { session, store, paid } = office();
    await session.run('go');
    const next = await office({ store, paid }).session.run('Never mind.');
    expect(next.status).toBe('done');
    expect(toolTexts(await session.messages())[0]).toContain('a new message came');
    expect(paid).toEqual([]);
  });
});

it('a sub-agent whose questions were all answered to it alone goes on without its parent being asked', async () => {
  const store = memoryStore();
  const pay = tool({ name: 'pay', description: 'p', input: z.object({}), execute: () => 'paid' });
  const clerk: Agent = new Agent({
    model: scriptedModel([toolCalls({ name: 'pay' }), text('clerk done')]),
    tools: [pay],
    store,
    beforeToolCall: () => ({ ask: { title: 'May it?' } }),
    onRequest: async ({ from }) => {
      const session = clerk.session(from!.sessionId);
      const [inner] = await session.pending();
      await session.answer(inner!.id, { type: 'approve' });
      return undefined;
    },
  });
  const boss = new Agent({
    model: scriptedModel([toolCalls({ name: 'clerk', args: { prompt: 'p' } }), text('boss done')]),
    store,
    tools: [clerk.asTool({ name: 'clerk', description: 'c' })],
  });
  const result = await boss.session('s').run('go');
  expect(result).toMatchObject({ status: 'done', text: 'boss done' });
  expect(JSON.stringify(result.messages)).toContain('clerk done');
});
