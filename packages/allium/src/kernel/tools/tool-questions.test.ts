/** A run waits for its handler, and somebody else answers. */
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import {
  Agent,
  type AgentEvent,
  type Decision,
  memoryStore,
  type PendingRequest,
  type RequestContext,
  type RunOptions,
  type Store,
  textOf,
  tool,
} from 'allium';
import { fileStore } from 'allium/stores/file';
import { sqliteStore } from 'allium/stores/sqlite';
import { fakeClock, scriptedModel, toolCalls } from 'allium/testing';
import { afterAll, describe, expect, it } from 'vitest';
import { z } from 'zod';
import { expectAnswersFromElsewhere, payingAgent } from '../../../../../test/answered-elsewhere.js';
import { deferred, settle, storeWith } from '../../../../../test/run-checks.js';

const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'allium-live-'));
afterAll(() => fs.rmSync(folder, { recursive: true, force: true }));

const shared = memoryStore();
const stores: Record<string, () => Store> = {
  // Another object each time, so that nothing but the inbox can tell of an answer.
  memory: () => storeWith(shared, {}),
  file: () => fileStore({ dir: path.join(folder, 'files') }),
  sqlite: () => sqliteStore({ path: path.join(folder, 'db') }),
};

describe.each(Object.entries(stores))('a run that waits for its handler, over the %s store', (name, open) => {
  it('is woken by answers through other handles, and the first one counts', async () => {
    await expectAnswersFromElsewhere(open, name);
  });
});

const calls = (...ns: number[]) => toolCalls(...ns.map((n) => ({ name: 'pay', args: { n }, id: `c${n}` })));

/** A run that waits for `asked` questions; what the handler is asked, and ways to answer it. */
function waiting(options: RunOptions = {}, agent = payingAgent(memoryStore(), [], [calls(0), 'end'])) {
  const questions: { request: PendingRequest; signal: AbortSignal }[] = [];
  const answers: ((decision: Decision | undefined) => void)[] = [];
  const asked = deferred<void>();
  const onRequest = (request: PendingRequest, { signal }: RequestContext) => {
    questions.push({ request, signal });
    asked.resolve();
    return new Promise<Decision | undefined>((resolve) => answers.push(resolve));
  };
  const events: AgentEvent[] = [];
  const session = agent.session('s');
  const read = async () => {
    const stream = session.stream('go', { onRequest, ...options });
    for await (const event of stream) events.push(event);
    return stream.result;
  };
  const running = read();
  return { agent, session, running, questions, answers, events, asked: asked.promise };
}

const results = (result: { messages: readonly { role: string }[] }) =>
  result.messages.filter(({ role }) => role === 'tool').map((message) => textOf(message as never));

describe('an answer posted while a handler is asked', () => {
  it('of this process wakes the run at once, without polling', async () => {
    const clock = fakeClock();
    const ran: string[] = [];
    const store = memoryStore();
    const base = payingAgent(store, ran);
    const agent = new Agent({
      model: scriptedModel([calls(0), 'end']),
      tools: base.plan.tools,
      middleware: [{ name: 'asks', beforeToolCall: () => ({ ask: {} }) }],
      store,
      clock,
    });
    const it = waiting({}, agent);
    await it.asked;
    // Another agent over the same store.
    await base.session('s').answer(it.questions[0]!.request.id, { type: 'approve' });
    const result = await it.running;
    expect(results(result)).toEqual(['paid 0']);
    expect(clock.pending).toBe(0);
  });

  it('tells the handler through its signal, with an error that says why', async () => {
    const it = waiting();
    await it.asked;
    const { request, signal } = it.questions[0]!;
    await it.session.answer(request.id, { type: 'reject', reason: 'No.' });
    expect(results(await it.running)).toEqual(['No.']);
    expect(signal.reason).toMatchObject({
      code: 'REQUEST_UNKNOWN',
      message: expect.stringContaining('too late'),
    });
  });

  it('makes the run go on although the handler returns nothing afterwards', async () => {
    const it = waiting();
    await it.asked;
    const { request } = it.questions[0]!;
    const store = it.agent.store;
    // Not through a session: nobody is woken.
    await store.post('s', { type: 'answer', requestId: request.id, decision: { type: 'approve' } });
    it.answers[0]!(undefined);
    expect(await it.running).toMatchObject({ status: 'done', pending: [] });
  });

  it('makes the run go on although the handler fails afterwards', async () => {
    const store = memoryStore();
    const onRequest = async ({ id: requestId }: PendingRequest) => {
      await store.post('s', { type: 'answer', requestId, decision: { type: 'reject', reason: 'No.' } });
      throw new Error('The prompt broke.');
    };
    const session = payingAgent(store, [], [calls(0), 'end']).session('s');
    expect(results(await session.run('go', { onRequest }))).toEqual(['No.']);
  });

  it('counts, and a later answer of the handler is dropped visibly', async () => {
    const it = waiting();
    await it.asked;
    const { request, signal } = it.questions[0]!;
    await it.agent.store.post('s', {
      type: 'answer',
      requestId: request.id,
      decision: { type: 'reject', reason: 'No.' },
    });
    it.answers[0]!({ type: 'approve' });
    const result = await it.running;
    expect(results(result)).toEqual(['No.']);
    expect(signal.aborted).toBe(true);
    expect(result.changes[0]).toMatchObject({ what: expect.stringContaining('came too late') });
    expect(it.events).toContainEqual(
      expect.objectContaining({ type: 'custom', name: 'answer_too_late', data: { requestId: request.id } }),
    );
  });

  it('comes too late although the run has not heard yet that its own answer is written', async () => {
    const kept = memoryStore();
    const written = deferred<void>();
    const over = deferred<void>();
    let approve = (): void => {};
    const store = storeWith(kept, {
      append: async (id, seq, entries) => {
        const head = await kept.append(id, seq, entries);
        if (!entries.some(({ type }) => type === 'answer')) return head;
        written.resolve();
        await over.promise;
        return head;
      },
      post: async (id, item) => {
        if (item.type === 'answer' && item.decision.type === 'reject') {
          approve();
          await written.promise;
        }
        await kept.post(id, item);
      },
    });
    const it = waiting({}, payingAgent(store, [], [calls(0), 'end']));
    await it.asked;
    approve = () => it.answers[0]!({ type: 'approve' });
    const late = it.session.answer(it.questions[0]!.request.id, { type: 'reject' });
    await expect(late).rejects.toMatchObject({ code: 'REQUEST_UNKNOWN', data: { late: true } });
    over.resolve();
    expect(results(await it.running)).toEqual(['paid 0']);
  });

  it('comes too late once the handler has answered', async () => {
    const it = waiting();
    await it.asked;
    const { request, signal } = it.questions[0]!;
    it.answers[0]!({ type: 'approve' });
    await settle();
    await expect(it.session.answer(request.id, { type: 'reject' })).rejects.toMatchObject({
      code: 'REQUEST_UNKNOWN',
      data: { requestId: request.id },
    });
    expect(results(await it.running)).toEqual(['paid 0']);
    expect(signal.aborted).toBe(false);
  });

  it('that is wrong leaves the question open', async () => {
    const it = waiting();
    await it.asked;
    const { request } = it.questions[0]!;
    const { store } = it.agent;
    await store.post('s', {
      type: 'answer',
      requestId: request.id,
      decision: { type: 'approve', hash: 'x' },
    });
    await store.post('s', { type: 'answer', requestId: request.id, decision: { type: 'nonsense' } as never });
    await it.session.answer(request.id, { type: 'respond', text: 'fine' });
    expect(results(await it.running)).toEqual(['fine']);
  });

  it('is heard for each of several questions, and for one that the handler left open', async () => {
    const it = waiting({}, payingAgent(memoryStore(), [], [calls(0, 1, 2), 'end']));
    await it.asked;
    it.answers[0]!(undefined);
    await settle();
    await it.session.answer(it.questions[1]!.request.id, { type: 'approve' });
    await settle();
    await it.session.answer(it.questions[0]!.request.id, { type: 'reject', reason: 'Not 0.' });
    it.answers[2]!({ type: 'approve' });
    expect(results(await it.running)).toEqual(['Not 0.', 'paid 1', 'paid 2']);
  });

  it('does not make the handler answer questions that are left to somebody else', async () => {
    const it = waiting({}, payingAgent(memoryStore(), [], [calls(0, 1), 'end']));
    await it.asked;
    it.answers[0]!(undefined);
    await settle();
    await it.session.answer(it.questions[1]!.request.id, { type: 'approve' });
    const result = await it.running;
    expect(result).toMatchObject({ status: 'suspended', pending: [{ callId: 'c0' }] });
    expect(it.questions).toHaveLength(2);
  });

  it('counts only if it was in time', async () => {
    const clock = fakeClock();
    const agent = new Agent({
      model: scriptedModel([calls(0), 'end']),
      tools: payingAgent(memoryStore(), []).plan.tools,
      middleware: [{ name: 'asks', beforeToolCall: () => ({ ask: { timeoutMs: 1000 } }) }],
      clock,
    });
    const it = waiting({}, agent);
    await it.asked;
    const { request, signal } = it.questions[0]!;
    await agent.store.post('s', {
      type: 'answer',
      requestId: request.id,
      decision: { type: 'approve' },
      at: 1001,
    });
    await clock.advance(1000);
    expect(results(await it.running)).toEqual(['Nobody answered within 1000 ms.']);
    expect(signal.reason).toMatchObject({ message: expect.stringContaining('lapsed') });
    await expect(it.session.answer(request.id, { type: 'approve' })).rejects.toMatchObject({
      code: 'REQUEST_UNKNOWN',
    });
  });

  it('is what the caller passed, even if they change the object afterwards', async () => {
    const it = waiting();
    await it.asked;
    const decision: { type: 'reject'; reason: string } = { type: 'reject', reason: 'No.' };
    const answering = it.session.answer(it.questions[0]!.request.id, decision);
    (decision as { type: string }).type = 'approve';
    await answering;
    expect(results(await it.running)).toEqual(['No.']);
  });

  it('is judged by guards before it is kept, like every other', async () => {
    const base = payingAgent(memoryStore(), []);
    const agent = new Agent({
      model: scriptedModel([calls(0), 'end']),
      tools: base.plan.tools,
      middleware: [
        { name: 'asks', beforeToolCall: () => ({ ask: {} }) },
        {
          name: 'redacts',
          guard: {
            on: ['input'],
            find: (text) =>
              [...text.matchAll(/secret/g)].map(({ index }) => ({ start: index, end: index + 6 })),
          },
        },
      ],
    });
    const it = waiting({}, agent);
    await it.asked;
    await it.session.answer(it.questions[0]!.request.id, { type: 'respond', text: 'the secret' });
    expect(results(await it.running)).toEqual(['the [redacted]']);
    expect(JSON.stringify(await agent.store.read('s', 1))).not.toContain('secret');
  });
});

describe('a cancel posted while a handler is asked', () => {
  it('ends the run and the handler', async () => {
    const store = memoryStore();
    const it = waiting({}, payingAgent(store, [], [calls(0), 'end']));
    await it.asked;
    const ended = expect(it.running).rejects.toMatchObject({ code: 'ABORTED' });
    await payingAgent(store, []).session('s').abort('Enough.');
    await ended;
    expect(it.questions[0]!.signal.aborted).toBe(true);
  });
});

describe('the signal of a handler', () => {
  it('stays quiet when its own answer counted, also if the run is aborted later', async () => {
    const stop = new AbortController();
    const base = payingAgent(memoryStore(), []);
    const agent = new Agent({
      model: scriptedModel([calls(0), 'end']),
      tools: base.plan.tools,
      middleware: [
        { name: 'asks', beforeToolCall: () => ({ ask: {} }) },
        { name: 'aborts', afterToolCall: () => stop.abort() },
      ],
    });
    const it = waiting({ signal: stop.signal }, agent);
    await it.asked;
    it.answers[0]!({ type: 'approve' });
    await expect(it.running).rejects.toMatchObject({ code: 'ABORTED' });
    expect(it.questions[0]!.signal.aborted).toBe(false);
  });

  it('aborts when the call is settled without an answer', async () => {
    const wipe = tool({
      name: 'pay',
      description: '',
      input: z.object({ n: z.number() }),
      timeoutMs: 50,
      execute: (_, ctx) =>
        Promise.race([ctx.suspend({ title: 'Sure?' }), Promise.reject(new Error('gave up'))]),
    });
    const agent = new Agent({ model: scriptedModel([calls(0), 'end']), tools: [wipe] });
    const it = waiting({}, agent);
    const result = await it.running;
    expect(result.status).toBe('done');
    for (const { signal } of it.questions) expect(signal.aborted).toBe(true);
  });
});

describe('a question of a sub-agent, put to the handler of its caller', () => {
  const family = (store: Store = memoryStore()) => {
    const ran: string[] = [];
    const child = payingAgent(memoryStore(), ran, [calls(0), 'child done']);
    const parent = new Agent({
      model: scriptedModel([toolCalls({ name: 'child', args: { prompt: 'pay' }, id: 'p' }), 'end']),
      tools: [child.asTool({ name: 'child', description: 'Pays.' })],
      store,
    });
    return { ran, parent };
  };

  it('can be answered in the session of the caller', async () => {
    const { ran, parent } = family();
    const it = waiting({}, parent);
    await it.asked;
    const { request } = it.questions[0]!;
    expect(await it.session.pending()).toEqual([request]);
    await it.session.answer(request.id, { type: 'reject', reason: 'No.' });
    expect(await it.running).toMatchObject({ status: 'done', text: 'end' });
    expect(ran).toEqual([]);
    expect(it.questions[0]!.signal.aborted).toBe(true);
    await expect(it.session.answer(request.id, { type: 'approve' })).rejects.toMatchObject({
      code: 'REQUEST_UNKNOWN',
    });
  });

  it('can be answered in its own session, which closes it in that of the caller', async () => {
    const { ran, parent } = family();
    const it = waiting({}, parent);
    await it.asked;
    const { from, id } = it.questions[0]!.request;
    const own = parent.session(from!.sessionId);
    const [asked] = await own.pending();
    await own.answer(asked!.id, { type: 'approve' });
    expect(await it.running).toMatchObject({ status: 'done', text: 'end', pending: [] });
    expect(ran).toEqual(['pay 0']);
    expect(it.questions[0]!.signal.aborted).toBe(true);
    expect(id).toContain(asked!.id);
  });

  it('is answered by the handler, once, wherever that is', async () => {
    const { ran, parent } = family();
    const it = waiting({}, parent);
    await it.asked;
    it.answers[0]!({ type: 'approve' });
    expect(await it.running).toMatchObject({ status: 'done', text: 'end' });
    expect(ran).toEqual(['pay 0']);
  });

  it('ends with a cancel of its caller', async () => {
    const store = memoryStore();
    const { parent } = family(store);
    const it = waiting({}, parent);
    await it.asked;
    const ended = expect(it.running).rejects.toMatchObject({ code: 'ABORTED' });
    await payingAgent(store, []).session('s').abort();
    await ended;
    expect(it.questions[0]!.signal.aborted).toBe(true);
  });
});

describe('an answer that comes while a run goes to wait', () => {
  /** Runs to its end, with an answer posted after the `at`-th call of the store since the question was written. */
  async function answered(at: number, layered: boolean) {
    const store = memoryStore();
    const ran: string[] = [];
    let looks = 0;
    let posted = false;
    const open = async () => (await payingAgent(store, ran).session('s').pending())[0];
    const later = async <T>(work: T): Promise<Awaited<T>> => {
      const done = await work;
      const request = await open();
      if (request && !posted && ++looks === at) {
        posted = true;
        await store.post('s', { type: 'answer', requestId: request.id, decision: { type: 'approve' } });
      }
      return done;
    };
    const slow = storeWith(store, {
      append: (id, seq, entries) => later(store.append(id, seq, entries)),
      take: (id, after) => later(store.take(id, after)),
      head: (id) => later(store.head(id)),
    });
    const agent = payingAgent(slow, ran, [calls(0), 'end']);
    const events: AgentEvent[] = [];
    const middleware = layered ? [{ name: 'layer', afterRun: () => later(undefined) }] : [];
    const stream = agent.session('s').stream('go', { onRequest: () => undefined, middleware });
    for await (const event of stream) events.push(event);
    return { result: await stream.result, ran, events, posted };
  }

  it.each([false, true])(
    'either wakes the run or finds it waiting, whenever it comes (layers: %s)',
    async (layered) => {
      const seen = new Set<string>();
      for (let at = 1; ; at++) {
        const { result, ran, events, posted } = await answered(at, layered);
        if (!posted) break;
        const { status, pending } = result;
        seen.add(status);
        expect([at, status, pending.length]).toEqual(
          status === 'done' ? [at, 'done', 0] : [at, 'suspended', 1],
        );
        expect(ran).toEqual(status === 'done' ? ['pay 0'] : []);
        const count = (type: AgentEvent['type']) => events.filter((event) => event.type === type).length;
        expect([count('agent_start'), count('agent_end'), count('tool_execution_start')]).toEqual([1, 1, 1]);
        expect(count('suspended')).toBe(pending.length);
      }
      // After its last look at the inbox the run can only end.
      expect([...seen].sort()).toEqual(['done', 'suspended']);
    },
  );
});

describe('answers that come with a resume', () => {
  const suspended = async () => {
    const store = memoryStore();
    const ran: string[] = [];
    const { pending } = await payingAgent(store, ran, [calls(0)])
      .session('s')
      .run('go');
    return { store, ran, id: pending[0]!.id };
  };

  it('and one that is posted at the same moment: one counts, and the other is refused', async () => {
    for (let turns = 0; turns < 12; turns++) {
      const { store, ran, id } = await suspended();
      const posting = (async () => {
        for (let i = 0; i < turns; i++) await Promise.resolve();
        await payingAgent(store, ran).session('s').answer(id, { type: 'reject', reason: 'No.' });
      })();
      const resuming = payingAgent(store, ran, ['end'])
        .session('s')
        .resume({ answers: { [id]: { type: 'approve' } } });
      const [posted, resumed] = await Promise.allSettled([posting, resuming]);
      const states = [posted.status, resumed.status].sort();
      expect(states, `${turns}`).toEqual(['fulfilled', 'rejected']);
      expect(ran, `${turns}`).toEqual(posted.status === 'fulfilled' ? [] : ['pay 0']);
    }
  });

  it('are what the caller passed, even if they change the object afterwards', async () => {
    const { store, ran, id } = await suspended();
    const answers: Record<string, Decision> = { [id]: { type: 'reject', reason: 'No.' } };
    const resuming = payingAgent(store, ran, ['end']).session('s').resume({ answers });
    answers[id] = { type: 'approve' };
    await resuming;
    expect(ran).toEqual([]);
  });
});

describe('a resume that comes late', () => {
  it('does not report answered questions as pending when the run went on elsewhere meanwhile', async () => {
    const store = memoryStore();
    const ran: string[] = [];
    const { pending } = await payingAgent(store, ran, [calls(0)])
      .session('s')
      .run('go');
    const { id } = pending[0]!;
    // The second process has read the session, and is slow from there on.
    const gate = deferred();
    const slow = storeWith(store, {
      take: async (sessionId, after) => {
        await gate.promise;
        return store.take(sessionId, after);
      },
    });
    const late = payingAgent(slow, ran, ['late']).session('s').resume();
    await settle();
    const first = await payingAgent(store, ran, ['end'])
      .session('s')
      .resume({ answers: { [id]: { type: 'approve' } } });
    expect(first.status).toBe('done');
    gate.resolve();
    await expect(late).rejects.toMatchObject({ code: 'SESSION_CONFLICT' });
    expect(ran).toEqual(['pay 0']);
  });

  it('closes the prompt of a process whose run went on in another', async () => {
    const store = memoryStore();
    // Another object, so that only looking now and then can tell.
    const it = waiting({}, payingAgent(storeWith(store, {}), [], [calls(0), 'end']));
    await it.asked;
    const { request, signal } = it.questions[0]!;
    const ended = expect(it.running).rejects.toMatchObject({ code: 'SESSION_CONFLICT' });
    const other = payingAgent(store, [], ['end']).session('s');
    const result = await other.resume({ answers: { [request.id]: { type: 'approve' } } });
    expect(result.status).toBe('done');
    await ended;
    expect(signal.aborted).toBe(true);
  });
});
