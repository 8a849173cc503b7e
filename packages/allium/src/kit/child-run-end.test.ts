/** A sub-agent does not stay open when the call that started it has got its answer: nobody could go on with it. */
import {
  Agent,
  type AgentOptions,
  AlliumError,
  type Middleware,
  memoryStore,
  type Store,
  textOf,
  tool,
  toolResult,
} from 'allium';
import { approval } from 'allium/middleware/approval';
import { type Answer, scriptedModel, text, toolCalls } from 'allium/testing';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { expectValidHistory, settle, storeWith } from '../../../../test/run-checks.js';

/** A model that answers by how many answers there are already, whichever process asks. */
const byTurn = (...answers: Answer[]) =>
  scriptedModel([({ messages }) => answers[messages.filter(({ role }) => role === 'assistant').length]!], {
    repeat: true,
  });
const noServer = () => Promise.reject(new Error('no server'));

/** A boss asks a clerk, who asks a payer, who asks a human. */
function firm(options: { boss?: Partial<AgentOptions>; clerk?: Partial<AgentOptions>; store?: Store } = {}) {
  const pay = tool({ name: 'pay', description: '', input: z.object({}), execute: () => 'paid' });
  const payer = new Agent({
    name: 'payer',
    model: byTurn(toolCalls({ name: 'pay', args: {} }), text('It is paid.')),
    tools: [pay],
    middleware: [approval()],
  });
  const clerk = new Agent({
    name: 'clerk',
    model: byTurn(toolCalls({ name: 'payer', args: { prompt: 'Pay.' } }), text('The clerk is done.')),
    tools: [payer.asTool({ name: 'payer', description: '' })],
    ...options.clerk,
  });
  const boss = new Agent({
    model: byTurn(toolCalls({ name: 'clerk', args: { prompt: 'See to it.' } }), text('end')),
    tools: [clerk.asTool({ name: 'clerk', description: '' })],
    ...(options.store && { store: options.store }),
    ...options.boss,
  });
  return { boss, clerk, session: boss.session('s') };
}

/** How the runs of all sessions ended, those at the top first; undefined is one that did not. */
async function ends(store: Store) {
  const { sessions } = await store.list();
  const ids = sessions.map(({ sessionId }) => sessionId).sort((a, b) => a.length - b.length);
  const journals = await Promise.all(ids.map((id) => store.read(id, 1)));
  for (const id of ids)
    expectValidHistory(await new Agent({ model: byTurn(), store }).session(id).messages());
  return journals.map((entries) => {
    const end = entries.at(-1)!;
    return end.type === 'run_end' ? end.status : undefined;
  });
}

describe('a sub-agent whose run layer fails', () => {
  const failing: Middleware = { name: 'log', afterRun: noServer };

  it('around its question ends, together with the sub-agents it started', async () => {
    const store = memoryStore();
    const { session } = firm({ store, clerk: { middleware: [failing] } });
    const result = await session.run('go');
    expect(result).toMatchObject({ status: 'done', text: 'end' });
    expect(textOf(result.messages[2]!)).toBe('Sub-agent "clerk" failed (error): no server');
    expect(await ends(store)).toEqual(['done', 'error', 'aborted']);
  });

  it('before it goes on with an answer ends', async () => {
    const store = memoryStore();
    const { pending } = await firm({
      store,
      clerk: { middleware: [{ name: 'log', beforeRun() {} }] },
    }).session.run('go');
    const failing: Middleware = { name: 'log', beforeRun: noServer };
    const { session } = firm({ store, clerk: { middleware: [failing] } });
    const result = await session.resume({ answers: { [pending[0]!.id]: { type: 'approve' } } });
    expect(result).toMatchObject({ status: 'done', text: 'end' });
    expect(await ends(store)).toEqual(['done', 'error', 'aborted']);
  });

  it('leaves nothing behind if sessions are not kept', async () => {
    const { boss } = firm({ clerk: { middleware: [failing] } });
    await boss.run('go');
    expect((await boss.store.list()).sessions).toEqual([]);
  });

  it.each([true, false])(
    'does not count as failed if the store failed, whether its entry was written or not: %s',
    async (written) => {
      const store = memoryStore();
      let once = true;
      const append: Store['append'] = (id, seq, entries) => {
        const cut = once && id !== 's' && entries.some((entry) => entry.type === 'run_end');
        if (!cut) return store.append(id, seq, entries);
        once = false;
        if (written) store.append(id, seq, entries);
        throw new Error('power cut');
      };
      const { pending } = await firm({ store }).session.run('go');
      const answers = { [pending[0]!.id]: { type: 'approve' as const } };
      await expect(
        firm({ store: storeWith(store, { append }) }).session.resume({ answers }),
      ).rejects.toMatchObject({ code: 'STORE_FAILED' });
      const { messages } = await firm({ store }).session.resume();
      expect(textOf(messages[2]!)).toBe('The clerk is done.');
      expect(await ends(store)).toEqual(['done', 'done', 'done']);
    },
  );

  it('does not count as failed if its end cannot be written: the run can be resumed', async () => {
    const store = memoryStore();
    const append: Store['append'] = (id, seq, entries) => {
      if (entries.some((entry) => entry.type === 'run_end')) throw new Error('power cut');
      return store.append(id, seq, entries);
    };
    const broken = storeWith(store, { append });
    await expect(firm({ store: broken, clerk: { middleware: [failing] } }).session.run('go')).rejects.toThrow(
      'power cut',
    );
    const { pending } = await firm({
      store,
      clerk: { middleware: [{ name: 'log', beforeRun() {} }] },
    }).session.resume();
    expect(pending).toMatchObject([{ toolName: 'pay' }]);
  });
});

describe('a sub-agent that waits for an answer ends', () => {
  it.each<[string, Partial<AgentOptions>, string]>([
    ['a layer answers', { middleware: [{ wrapTool: () => toolResult({ content: 'cached' }) }] }, 'done'],
    ['a layer stops the run', { middleware: [{ beforeTool: (ctx) => ctx.stop() }] }, 'stopped'],
    ['a layer fails', { middleware: [{ beforeTool: () => noServer() }] }, 'done'],
    ['a hook blocks', { middleware: [{ beforeToolCall: () => ({ block: true }) }] }, 'done'],
    ['nobody knows the tool', { tools: [] }, 'done'],
  ])('when its call is answered without it after a resume: %s', async (_, boss, status) => {
    const store = memoryStore();
    const { pending } = await firm({ store }).session.run('go');
    const answers = { [pending[0]!.id]: { type: 'approve' as const } };
    expect(await firm({ store, boss }).session.resume({ answers })).toMatchObject({ status });
    expect(await ends(store)).toEqual([status, 'aborted', 'aborted']);
  });

  it.each(['a layer answers', 'the run is aborted'])(
    'also if somebody was asked about arguments that a layer wrote to another call of the batch: %s',
    async (how) => {
      const store = memoryStore();
      const look = tool({ name: 'look', description: '', input: z.any(), execute: () => 'seen' });
      const asks: Middleware = {
        name: 'asks',
        beforeToolCall: (ctx) => (ctx.is(look) && ctx.revision > 0 ? { ask: { title: 'Look?' } } : undefined),
        wrapTool: (ctx, next) => (ctx.is(look) ? next({ args: { far: true } }) : next()),
      };
      const calls = toolCalls({ name: 'clerk', args: { prompt: 'See to it.' } }, { name: 'look' });
      const session = (...more: Middleware[]) => {
        const { clerk } = firm();
        return new Agent({
          model: byTurn(calls, text('end')),
          tools: [clerk.asTool({ name: 'clerk', description: '' }), look],
          middleware: [asks, ...more],
          store,
        }).session('s');
      };
      const { pending } = await session().run('go');
      expect(pending.map(({ kind, from }) => [kind, from?.agent])).toEqual([
        ['ask', 'payer'],
        ['ask', undefined],
      ]);
      const answers = Object.fromEntries(pending.map(({ id }) => [id, { type: 'approve' as const }]));
      const cached: Middleware = {
        name: 'cached',
        wrapTool: (ctx, next) => (ctx.is(look) ? next() : toolResult({ content: 'cached' })),
      };
      const aborted = how !== 'a layer answers';
      if (aborted) await session().abort();
      await session(cached)
        .resume({ answers })
        .catch(() => {});
      const [end, ...children] = await ends(store);
      expect([end, ...children]).toEqual([aborted ? 'aborted' : 'done', 'aborted', 'aborted']);
      const told = (await session().messages()).map(textOf)[2];
      expect(told).toMatch(aborted ? /^May have run/ : /^cached/);
    },
  );

  it('unless the store fails: then the run can be resumed', async () => {
    const store = memoryStore();
    const { pending } = await firm({ store }).session.run('go');
    const answers = { [pending[0]!.id]: { type: 'approve' as const } };
    const boss: Partial<AgentOptions> = {
      middleware: [{ wrapTool: () => toolResult({ content: 'cached' }) }],
    };
    const down = storeWith(store, { head: noServer });
    await expect(firm({ store: down, boss }).session.resume({ answers })).rejects.toMatchObject({
      code: 'STORE_FAILED',
    });
    expect(await firm({ store }).session.resume()).toMatchObject({ status: 'done', text: 'end' });
    expect(await ends(store)).toEqual(['done', 'done', 'done']);
  });

  it.each(['read', 'head', 'append', 'take', 'post'] as const)(
    "or, whichever %s of its journal fails, the run fails with the store's error and can be resumed later",
    async (method) => {
      const through: Middleware = { name: 'through', wrapTool: (_, next) => next() };
      for (const resumed of [false, true])
        for (let failing = 1, calls = failing; calls >= failing; failing++) {
          const store = memoryStore();
          const { pending } = resumed
            ? await firm({ store, boss: { middleware: [through] } }).session.run('go')
            : { pending: [] };
          calls = 0;
          const call = store[method] as (...args: unknown[]) => unknown;
          const down = storeWith(store, {
            [method]: (id: string, ...args: unknown[]) =>
              id !== 's' && ++calls === failing ? noServer() : call.call(store, id, ...args),
          });
          const { session } = firm({ store: down, boss: { middleware: [through] } });
          const answers = Object.fromEntries(pending.map(({ id }) => [id, { type: 'approve' as const }]));
          const outcome = await (resumed ? session.resume({ answers }) : session.run('go')).catch(
            (error) => error,
          );
          if (calls < failing) {
            expect(outcome.status).toBe(resumed ? 'done' : 'suspended');
            break;
          }
          expect([failing, outcome.code ?? outcome.status]).toEqual([failing, 'STORE_FAILED']);
          // The answers may have got in.
          const again = () => firm({ store, boss: { middleware: [through] } }).session;
          const { status } = await again()
            .resume({ answers })
            .catch(() => again().resume());
          expect([failing, status]).toEqual([failing, resumed ? 'done' : 'suspended']);
        }
    },
  );

  it('or goes on later if the store fails while it is being looked for', async () => {
    const store = memoryStore();
    const { session } = firm({ store });
    const { pending } = await session.run('go');
    await session.answer(pending[0]!.id, { type: 'approve' });
    const down = storeWith(store, {
      read: (id, seq) => (id === 's' ? store.read(id, seq) : noServer()),
    });
    await expect(firm({ store: down }).session.resume()).rejects.toMatchObject({ code: 'STORE_FAILED' });
    expect(await firm({ store }).session.resume()).toMatchObject({ status: 'done', text: 'end' });
    expect(await ends(store)).toEqual(['done', 'done', 'done']);
  });

  it('when a new message gives the question up', async () => {
    const store = memoryStore();
    await firm({ store }).session.run('go');
    await firm({ store, boss: { model: scriptedModel(['fine']) } }).session.run('never mind');
    expect(await ends(store)).toEqual(['done', 'aborted', 'aborted']);
  });

  it('when the run is resumed only to be aborted', async () => {
    const store = memoryStore();
    await firm({ store }).session.run('go');
    await expect(firm({ store }).session.resume({ signal: AbortSignal.abort() })).rejects.toThrow('aborted');
    expect(await ends(store)).toEqual(['aborted', 'aborted', 'aborted']);
  });

  it('when a run layer stops the run before it goes on', async () => {
    const store = memoryStore();
    await firm({ store }).session.run('go');
    const stops: Middleware = { name: 'stops', beforeRun: (ctx) => ctx.stop() };
    await firm({ store, boss: { middleware: [stops] } }).session.resume();
    expect(await ends(store)).toEqual(['stopped', 'aborted', 'aborted']);
  });

  it('when another call stops the run', async () => {
    const store = memoryStore();
    const stop = tool({
      name: 'stop',
      description: '',
      input: z.object({}),
      execute: async (_, ctx) => {
        while ((await store.list()).sessions.length < 3) await settle();
        ctx.stop();
      },
    });
    const { clerk } = firm({ store });
    const model = byTurn(
      toolCalls({ name: 'clerk', args: { prompt: 'See to it.' } }, { name: 'stop', args: {} }),
    );
    const tools = [clerk.asTool({ name: 'clerk', description: '' }), stop];
    expect(await new Agent({ model, tools, store }).session('s').run('go')).toMatchObject({
      status: 'stopped',
    });
    expect(await ends(store)).toEqual(['stopped', 'aborted', 'aborted']);
  });

  describe('also as the second of its call', () => {
    /** A tool that asks two agents, one after the other; the second asks a human. */
    function pair(options: Partial<AgentOptions> = {}, own: { readonly onInDoubt?: 'retry' | 'fail' } = {}) {
      const first = new Agent({ name: 'first', model: byTurn(text('done')) });
      const [one, two] = [first, firm().clerk].map((agent) => agent.asTool({ name: 'ask', description: '' }));
      const both = tool({
        name: 'both',
        description: '',
        input: z.object({}),
        ...own,
        async execute(_, ctx) {
          await one!.execute({ prompt: '1' }, ctx as never);
          await two!.execute({ prompt: '2' }, ctx as never);
          return 'both';
        },
      });
      return new Agent({ model: byTurn(toolCalls({ name: 'both', args: {} })), tools: [both], ...options });
    }

    it.each(['retry', 'fail'] as const)('of a tool that says %s when in doubt', async (onInDoubt) => {
      const store = memoryStore();
      await pair({ store }, { onInDoubt }).session('s').run('go');
      const resumed = pair({ store }, { onInDoubt }).session('s').resume({ signal: AbortSignal.abort() });
      await expect(resumed).rejects.toThrow('aborted');
      expect((await ends(store)).sort()).toEqual(['aborted', 'aborted', 'aborted', 'done']);
    });

    it('where the first was forgotten when it had ended', async () => {
      const agent = pair({ model: byTurn(toolCalls({ name: 'both', args: {} }), text('fine')) });
      const { sessionId } = await agent.run('go');
      await agent.session(sessionId).run('never mind');
      expect(await ends(agent.store)).toEqual(['done', 'aborted', 'aborted']);
    });
  });

  it('unless its journal is damaged: a new message is heard all the same', async () => {
    const store = memoryStore();
    await firm({ store }).session.run('go');
    const read: Store['read'] = (id, from) => {
      if (id.split('/').length > 2) throw new AlliumError('SESSION_CORRUPT', 'not JSON');
      return store.read(id, from);
    };
    const damaged = storeWith(store, { read });
    const result = await firm({ store: damaged, boss: { model: scriptedModel(['fine']) } }).session.run('!');
    expect(result.text).toBe('fine');
    const ids = (await store.list()).sessions.map(({ sessionId }) => sessionId);
    const last = await Promise.all(ids.map(async (id) => (await store.read(id, 1)).at(-1)!.type));
    expect(last.sort()).toEqual(['request', 'run_end', 'run_end']);
  });

  it('but not while the run it works for can be resumed', async () => {
    const store = memoryStore();
    const { pending } = await firm({ store, boss: { middleware: [{ name: 'log' }] } }).session.run('go');
    const down: Middleware = { name: 'log', beforeRun: noServer };
    await expect(firm({ store, boss: { middleware: [down] } }).session.resume()).rejects.toThrow('no server');
    const { session } = firm({ store, boss: { middleware: [{ name: 'log' }] } });
    const done = await session.resume({ answers: { [pending[0]!.id]: { type: 'approve' } } });
    expect(done).toMatchObject({ status: 'done', text: 'end' });
    expect(await ends(store)).toEqual(['done', 'done', 'done']);
  });
});

describe('an abort while the store fails', () => {
  /** A boss, a clerk and a payer, aborted while the payer works; then the store writes no end of those that `refuses` names. */
  async function aborted(store: Store, refuses: (sessionId: string) => boolean) {
    const control = new AbortController();
    const work = tool({
      name: 'work',
      description: '',
      input: z.object({}),
      execute(_, { signal }) {
        control.abort('enough');
        throw signal.reason;
      },
    });
    const append: Store['append'] = async (id, seq, entries) => {
      // Results that nobody waits for are written when the process would wait.
      await settle();
      const ends = entries.some(({ type }) => type === 'run_end');
      if (ends && refuses(id)) throw new Error('power cut');
      return store.append(id, seq, entries);
    };
    const payer = new Agent({ model: byTurn(toolCalls({ name: 'work', args: {} })), tools: [work] });
    const { session } = firm({
      store: storeWith(store, {
        append,
        head: (id) => settle().then(() => store.head(id)),
        take: (id, after) => settle().then(() => store.take(id, after)),
      }),
      clerk: { tools: [payer.asTool({ name: 'payer', description: '' })] },
    });
    await expect(session.run('go', { signal: control.signal })).rejects.toMatchObject({ code: 'ABORTED' });
  }

  it('leaves no sub-agent open if the store works again by the time the caller ends', async () => {
    const store = memoryStore();
    let cuts = 2;
    // The payer can't write its end, and the clerk can't write it in its place. Both have written their results.
    await aborted(store, () => cuts-- > 0);
    expect(await ends(store)).toEqual(['aborted', 'aborted', 'aborted']);
  });

  it.each(['resumed', 'told something new'])('ends them when the caller is %s', async (how) => {
    const store = memoryStore();
    await aborted(store, () => true);
    const { session } = firm({ store });
    expect(await (how === 'resumed' ? session.resume() : session.run('new'))).toMatchObject({
      status: 'done',
    });
    expect(await ends(store)).toEqual(['done', 'aborted', 'aborted']);
  });
});
