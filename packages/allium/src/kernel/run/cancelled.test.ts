/** Cancelling a run that nobody works on: it waits for an answer. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import {
  Agent,
  type AgentEvent,
  type AgentOptions,
  type Middleware,
  memoryStore,
  runResult,
  type Session,
  type Store,
  tool,
} from 'allium';
import { fileStore } from 'allium/stores/file';
import { collect, scriptedModel, text, toolCalls } from 'allium/testing';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import {
  deferred,
  expectBalanced,
  expectValidHistory,
  storeWith,
  transcript,
} from '../../../../../test/run-checks.js';

type Script = Parameters<typeof scriptedModel>[0];

const calls = (...names: string[]) =>
  toolCalls(...names.map((name, n) => ({ name, args: {}, id: `${name}-${n}` })));

/** One store, agents that take turns with it, and what its tools did. */
function world() {
  const ran: string[] = [];
  const store = memoryStore();
  const pay = tool({
    name: 'pay',
    description: '',
    input: z.object({}),
    execute: () => {
      ran.push('pay');
      return 'pay done';
    },
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
  const tools = [pay, asks];
  const agent = (script: Script, more: Partial<AgentOptions> = {}): Agent =>
    new Agent({ model: scriptedModel(script), tools, store, ...more });
  const session = (...script: Script): Session => agent(script).session('s');
  return { ran, store, tools, agent, session };
}

describe('a suspended run that is cancelled', () => {
  const stores: Record<string, () => { store: () => Store; close(): void }> = {
    memory: () => {
      const store = memoryStore();
      return { store: () => store, close() {} };
    },
    file: () => {
      const dir = mkdtempSync(join(tmpdir(), 'allium-cancel-'));
      return { store: () => fileStore({ dir }), close: () => rmSync(dir, { recursive: true }) };
    },
  };

  describe.each(Object.entries(stores))('over the %s store', (_, open) => {
    it.each(['the same session', 'another agent'])('by %s ends at once', async (who) => {
      const { store, close } = open();
      const { agent, ran } = world();
      const ends: string[] = [];
      const observers = [
        (event: AgentEvent) => void (event.type === 'agent_end' && ends.push(event.result.status)),
      ];
      const first = agent([calls('pay', 'asks')], { store: store(), observers });
      const { pending } = await first.session('s').run('go');
      expect(pending).toHaveLength(1);
      const other = who === 'another agent' ? agent([], { store: store(), observers }) : first;
      await other.session('s').abort('no more');
      const session = agent(['fine'], { store: store() }).session('s');
      expect(await session.pending()).toEqual([]);
      expect(transcript(await session.messages()).slice(-2)).toEqual([
        'tool: pay done',
        'tool: Aborted: no more',
      ]);
      await expect(session.answer(pending[0]!.id, { type: 'approve' })).rejects.toMatchObject({
        code: 'REQUEST_UNKNOWN',
        message: expect.stringContaining('too late'),
      });
      await expect(session.resume()).rejects.toMatchObject({
        code: 'SESSION_UNKNOWN',
        message: expect.stringContaining("'aborted'"),
      });
      expect(ends).toEqual(['suspended', 'aborted']);
      // The cancel was for the run that ended, and is not heard by the next one.
      expect(await session.run('and now?')).toMatchObject({ status: 'done', text: 'fine' });
      expect(ran).toEqual(['pay']);
      close();
    });
  });

  it('at the moment somebody answers tells them that they came too late', async () => {
    const { store, agent, ran } = world();
    const { pending } = await agent([calls('asks')], { store })
      .session('s')
      .run('go');
    const racing = storeWith(store, {
      async post(id, item) {
        if (item.type === 'answer') await store.post(id, { type: 'cancel', reason: 'no more' });
        await store.post(id, item);
      },
    });
    const answering = agent([], { store: racing }).session('s').answer(pending[0]!.id, { type: 'approve' });
    await expect(answering).rejects.toMatchObject({
      code: 'REQUEST_UNKNOWN',
      message: expect.stringContaining('too late'),
    });
    await expect(agent([], { store }).session('s').resume()).rejects.toMatchObject({ code: 'ABORTED' });
    expect(ran).toEqual([]);
  });

  it('ends even if a middleware that came with the run is missing now', async () => {
    const { session, agent } = world();
    await agent([calls('asks')])
      .session('s')
      .run('go', { middleware: [{ name: 'guest', beforeRun() {} }] });
    await session().abort();
    expect(await session().pending()).toEqual([]);
  });

  it('ends its sub-agents too', async () => {
    const { store, agent } = world();
    const clerk = agent([calls('asks')]).asTool({ name: 'clerk', description: '' });
    const boss = new Agent({
      model: scriptedModel([toolCalls({ name: 'clerk', args: { prompt: 'Ask.' } })]),
      tools: [clerk],
      store,
    });
    const { pending } = await boss.session('s').run('go');
    await boss.session('s').abort('no more');
    expect(await boss.session('s').pending()).toEqual([]);
    const inner = agent([]).session(pending[0]!.from!.sessionId);
    expect(await inner.pending()).toEqual([]);
  });

  it('is left to another process if a call is at work there', async () => {
    const { store, agent } = world();
    const done = deferred();
    const slow = tool({ name: 'slow', description: '', input: z.object({}), execute: () => done.promise });
    const live = agent([calls('slow', 'asks')], {
      tools: [...world().tools, slow],
      store: storeWith(store, {}),
    });
    const asked = deferred();
    const running = live.session('s').run('go', {
      onRequest: () => {
        asked.resolve();
        return new Promise(() => {});
      },
    });
    const ended = expect(running).rejects.toMatchObject({ code: 'ABORTED' });
    await asked.promise;
    // Another store object: only the inbox can tell.
    await agent([]).session('s').abort('no more');
    done.resolve();
    await ended;
    expectValidHistory(await agent([]).session('s').messages());
  });

  it('takes no more answers, even if its end is not reported yet', async () => {
    const { store, session } = world();
    const [request] = (await session(calls('asks')).run('go')).pending;
    await store.post('s', { type: 'cancel' });
    await expect(session().answer(request!.id, { type: 'approve' })).rejects.toMatchObject({
      code: 'REQUEST_UNKNOWN',
      data: { late: true },
    });
  });

  it('ends with the next resume if its end could not be written', async () => {
    const { store, session, agent } = world();
    await session(calls('asks')).run('go');
    const append = (): never => {
      throw new Error('power cut');
    };
    const dead = storeWith(store, { append });
    await expect(agent([], { store: dead }).session('s').abort()).resolves.toBeUndefined();
    await expect(session().resume()).rejects.toMatchObject({ code: 'ABORTED' });
  });
});

describe('a run that is aborted while it is about to wait', () => {
  const asks: Middleware = { name: 'asks', suspends: true, beforeToolCall: () => ({ ask: { title: '?' } }) };
  const places: [string, Middleware[], string[]][] = [
    ['a hook asks', [asks], ['pay', 'pay']],
    ['a tool asks', [], ['asks', 'pay']],
    ['both ask', [asks], ['asks', 'pay']],
  ];
  const events = ['tool_execution_start', 'tool_execution_waiting', 'turn_end'] as const;
  for (const [what, middleware, names] of places) {
    for (const type of events) {
      it(`at ${type}, where ${what}, tells how each call ended`, async () => {
        const abort = new AbortController();
        const { agent } = world();
        const session = agent([calls(...names)], { middleware }).session('s');
        const seen: AgentEvent[] = [];
        const read = async (): Promise<void> => {
          for await (const event of session.stream('go', { signal: abort.signal })) {
            seen.push(event);
            if (event.type === type) abort.abort();
          }
        };
        await expect(read()).rejects.toMatchObject({ code: 'ABORTED' });
        expectBalanced(seen);
        const history = await session.messages();
        expectValidHistory(history);
        const ends = seen.flatMap((event) => (event.type === 'tool_execution_end' ? [event.message] : []));
        // In the order in which they ended.
        const inOrder = ends.toSorted((a, b) => (a.id < b.id ? -1 : 1));
        expect(inOrder).toEqual(history.slice(2));
      });
    }
  }

  it('reports it too if a run layer replaces the suspension', async () => {
    const { agent } = world();
    const answers: Middleware = {
      name: 'answers',
      wrapRun: async (ctx, next) => {
        const { status } = await next();
        return runResult(ctx, `It was ${status}.`);
      },
    };
    const session = agent([calls('pay', 'pay')], { middleware: [answers, asks] }).session('s');
    const { events: seen, result } = await collect(session.stream('go'));
    expect(result).toMatchObject({ status: 'done', text: 'It was suspended.' });
    expectBalanced(seen);
    expectValidHistory(await session.messages());
  });
});

it('a cancel after an answer ends the suspended run, and not the one after it', async () => {
  const go = tool({ name: 'go', description: 'Goes.', input: z.object({}), execute: () => 'went' });
  const asks: Middleware = { name: 'asks', suspends: true, beforeToolCall: () => ({ ask: { title: '?' } }) };
  const store = memoryStore();
  const session = () =>
    new Agent({
      model: scriptedModel([toolCalls({ name: 'go', args: {} }), text('done')]),
      tools: [go],
      middleware: [asks],
      store,
    }).session('s');
  const { pending } = await session().run('x');
  await session().answer(pending[0]!.id, { type: 'approve' });
  await session().abort('enough');
  expect(store.read('s', 1).findLast(({ type }) => type === 'run_end')).toMatchObject({ status: 'aborted' });
  expect((await session().run('again')).status).toBe('suspended');
});
