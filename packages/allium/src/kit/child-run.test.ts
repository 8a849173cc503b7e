import {
  Agent,
  type AgentOptions,
  defineMiddleware,
  type Middleware,
  memoryStore,
  type Store,
  textOf,
  tool,
  toolSpec,
} from 'allium';
import { approval, ask } from 'allium/middleware/approval';
import { maxTurns } from 'allium/middleware/max-turns';
import {
  type Answer,
  chunks,
  failWith,
  fakeClock,
  hang,
  scriptedModel,
  text,
  toolCalls,
} from 'allium/testing';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { answersTo, byTurn, call, childEvents, office, toolTexts } from '../../../../test/child-run-setup.js';
import {
  breakingStore,
  deferred,
  expectBalanced,
  settle,
  storeWith,
  watch,
  watched,
} from '../../../../test/run-checks.js';

async function copyOf(store: Store): Promise<Store> {
  const copy = memoryStore();
  for (const { sessionId } of (await store.list()).sessions)
    await copy.append(sessionId, 0, await store.read(sessionId, 1));
  return copy;
}

describe('agent.asTool()', () => {
  const child = (...answers: Answer[]) => new Agent({ name: 'child', model: byTurn(...answers) });
  const parent = (agent: Agent, options: Partial<AgentOptions> = {}) =>
    new Agent({
      model: byTurn(toolCalls(call('child', { prompt: 'Do it.' }, 'c')), text('end')),
      tools: [agent.asTool({ name: 'child', description: 'A child.' })],
      ...options,
    });

  it('runs the agent with the prompt and answers with its text', async () => {
    const model = scriptedModel(['It is done.']);
    const agent = parent(new Agent({ model }), { store: memoryStore() });
    const { result } = await watched(agent.session('s'), 'go');
    expect(model.requests[0]!.messages.map(textOf)).toEqual(['Do it.']);
    const [, , made] = result.messages;
    expect(made).toMatchObject({
      isError: false,
      content: [{ text: 'It is done.' }],
      details: { agentId: `s/${result.messages[1]!.id}.0`, text: 'It is done.' },
    });
    expect(result).toMatchObject({ status: 'done', text: 'end', usage: { totalTokens: 45 } });
  });

  it('keeps the session of the child in the store of the parent', async () => {
    const [own, store] = [memoryStore(), memoryStore()];
    const agent = new Agent({ model: byTurn(text('Here.')), store: own });
    await parent(agent, { store }).session('s').run('go');
    expect((await own.list()).sessions).toEqual([]);
    const ids = (await store.list()).sessions.map(({ sessionId }) => sessionId);
    expect(ids.sort()).toEqual(['s', expect.stringMatching(/^s\/r_\w+\.2\.0$/)]);
  });

  it('leaves nothing behind where sessions are forgotten', async () => {
    const agent = parent(child(text('Here.')));
    await agent.run('go');
    expect((await agent.store.list()).sessions).toEqual([]);
  });

  it('takes another input schema and turns the input into a prompt, as JSON by default', async () => {
    const input = z.object({ city: z.string() });
    const asked: string[] = [];
    for (const prompt of [undefined, ({ city }: { city: string }) => `Weather in ${city}?`]) {
      const model = scriptedModel(['Rain.']);
      const weather = new Agent({ model }).asTool({
        name: 'weather',
        description: '',
        input,
        ...(prompt && { prompt }),
      });
      await new Agent({
        model: byTurn(toolCalls(call('weather', { city: 'Bonn' })), text('end')),
        tools: [weather],
      }).run('go');
      asked.push(textOf(model.requests[0]!.messages[0]!));
    }
    expect(asked).toEqual(['{"city":"Bonn"}', 'Weather in Bonn?']);
  });

  it('shows the model a schema with a prompt, and says what is wrong with other arguments', async () => {
    const made = child().asTool({ name: 'child', description: 'A child.' });
    expect(toolSpec(made).inputSchema).toMatchObject({
      required: ['prompt'],
      properties: { prompt: { type: 'string' } },
    });
    const agent = new Agent({
      model: byTurn(toolCalls(call('child', { prompt: 1 }, 'a'), call('child', [], 'b')), text('end')),
      tools: [made],
    });
    const [first, second] = toolTexts((await agent.run('go')).messages);
    expect(first).toContain('prompt: Expected text.');
    expect(second).toContain('Expected an object.');
  });

  it.each([
    [undefined, 'Expected `options` to be an object, got undefined.'],
    [{ name: 'a', description: '', promt: 1 }, 'Did you mean `prompt`?'],
    [
      { name: 'a', description: '', prompt: 'x' },
      'Expected `prompt` to be a function of the input, got "x".',
    ],
    [{ name: 'a b', description: '' }, 'Expected `name` to be 1 to 64 letters'],
  ])('refuses %j', (options, message) => {
    expect(() => child().asTool(options as never)).toThrow(message);
  });

  it('passes parent, depth, tenant and metadata of the run to the child', async () => {
    const seen: unknown[] = [];
    const look = defineMiddleware({
      name: 'look',
      beforeRun: ({ runId, parentRunId, depth, tenant, runMetadata }) =>
        void seen.push({ runId, parentRunId, depth, tenant, runMetadata }),
    });
    const inner = new Agent({ model: byTurn(text('ok')), middleware: [look], tenant: 'other' });
    const agent = parent(inner, { middleware: [look] });
    const { runId } = await agent.run('go', { tenant: 'acme', metadata: { user: 'ann' } });
    expect(seen).toEqual([
      { runId, parentRunId: undefined, depth: 0, tenant: 'acme', runMetadata: { user: 'ann' } },
      {
        runId: expect.not.stringMatching(runId),
        parentRunId: runId,
        depth: 1,
        tenant: 'acme',
        runMetadata: { user: 'ann' },
      },
    ]);
  });

  it.each<[string, () => Agent, string]>([
    ['fails', () => child(failWith(new Error('no network'))), 'Sub-agent "child" failed (error): no network'],
    [
      'is refused its prompt',
      () =>
        new Agent({
          name: 'child',
          model: byTurn(),
          middleware: [{ name: 'no', acceptMessage: () => ({ block: true, reason: 'Not this.' }) }],
        }),
      'Sub-agent "child" did not finish (guardrail): Not this.',
    ],
    [
      'is refused its answer by a guard',
      () =>
        new Agent({
          name: 'child',
          model: byTurn(text('a secret')),
          middleware: [
            {
              name: 'no',
              guard: { on: ['output'], hold: 'full', judge: () => ({ type: 'deny', reason: 'Too much.' }) },
            },
          ],
        }),
      'Sub-agent "child" did not finish (guardrail): Too much.',
    ],
    [
      'stops early',
      () =>
        new Agent({
          name: 'child',
          model: byTurn(text('Half.')),
          middleware: [
            { name: 'no', shouldStopAfterTurn: () => ({ reason: 'max_turns', message: 'Enough.' }) },
          ],
        }),
      'Sub-agent "child" did not finish (max_turns): Enough.\nIts last answer was: Half.',
    ],
    [
      'nests too deep',
      () => new Agent({ name: 'child', model: byTurn(), limits: { depth: 0 } }),
      'Sub-agent "child" did not finish (max_depth): Sub-agents may nest 0 deep.',
    ],
  ])('a child that %s is an error the parent can read', async (_, make, message) => {
    for (const store of [undefined, memoryStore()]) {
      const { result } = await watched(parent(make(), { ...(store && { store }) }), 'go');
      expect(result).toMatchObject({ status: 'done', text: 'end' });
      expect(result.messages[2]).toMatchObject({ isError: true });
      expect(toolTexts(result.messages)[0]).toContain(message);
      expect(JSON.stringify(result.messages)).not.toContain('a secret');
    }
  });

  it.each([
    ['nothing', chunks()],
    ['only spaces', text(' \n')],
    ['only thoughts', chunks({ type: 'thinking', text: 'That was all.' })],
  ])(
    'answers with what it said last if it ends with %s, also if its end is found after a crash',
    async (_, end) => {
      const look = tool({ name: 'look', description: 'Looks.', input: z.object({}), execute: () => 'seen' });
      const answers = [toolCalls({ name: 'look', text: 'It is 42.' }), toolCalls(call('look', {})), end];
      const make = (store: Store, ...middleware: Middleware[]) =>
        parent(new Agent({ name: 'child', model: byTurn(...answers), tools: [look], middleware }), { store });
      const inMemory = memoryStore();
      // All of the child is written, its result isn't.
      const dying = storeWith(inMemory, {
        append(id, seq, entries) {
          if (entries.some((entry) => entry.type === 'tool_finished' && entry.message.toolName === 'child'))
            throw new Error('power cut');
          return inMemory.append(id, seq, entries);
        },
      });
      await expect(make(dying).session('s').run('go')).rejects.toThrow('power cut');
      const found = await make(inMemory).session('s').resume();
      const live = await make(memoryStore()).session('s').run('go');
      for (const { messages } of [live, found]) {
        expect(toolTexts(messages)).toEqual(['It is 42.']);
        expect(messages[2]).toMatchObject({ isError: false, details: { text: 'It is 42.' } });
      }
      const stopped = await make(memoryStore(), maxTurns({ turns: 2 }))
        .session('s')
        .run('go');
      expect(toolTexts(stopped.messages)[0]).toMatch(
        /did not finish \(max_turns\)[\s\S]*Its last answer was: It is 42\./,
      );
    },
  );

  it('the depth limit of the agent at the top holds for all below', async () => {
    const leaf = child(text('leaf'));
    const middle = parent(leaf, { name: 'middle' });
    const top = (depth: number) =>
      new Agent({
        model: byTurn(toolCalls(call('middle')), text('end')),
        tools: [middle.asTool({ name: 'middle', description: '' })],
        limits: { depth },
        store: memoryStore(),
      });
    const leafOf = async (agent: Agent) => {
      await agent.session('s').run('go');
      const { sessions } = await agent.store.list();
      const entries = await Promise.all(sessions.map(({ sessionId }) => agent.store.read(sessionId, 1)));
      return entries
        .flat()
        .filter((entry) => entry.type === 'run_end')
        .map(({ stop }) => stop.reason)
        .sort();
    };
    expect(await leafOf(top(2))).toEqual(['final', 'final', 'final']);
    expect(await leafOf(top(1))).toEqual(['final', 'final', 'max_depth']);
  });

  it('budgets are shared by children that work side by side', async () => {
    const spender = () => new Agent({ model: byTurn(text('spent', { inputTokens: 60, outputTokens: 10 })) });
    const tools = ['a', 'b', 'c'].map((name) => spender().asTool({ name, description: '' }));
    const agent = new Agent({
      model: byTurn(toolCalls(call('a'), call('b'), call('c')), text('end')),
      tools,
      limits: { tokens: 200 },
    });
    const result = await agent.run('go');
    expect(result).toMatchObject({ status: 'stopped', stop: { reason: 'max_tokens' } });
    expect(result.usage.totalTokens).toBeGreaterThanOrEqual(200);
    expect(result.usage.totalTokens).toBeLessThan(240);
  });
});

describe('events of a child', () => {
  it('are updates of the call in the stream of the parent, balanced, without the pieces of messages', async () => {
    const { boss } = office({
      clerk: {
        middleware: [],
        model: byTurn(toolCalls(call('pay', { amount: 1 })), chunks('It ', 'is ', 'paid.')),
      },
    });
    const { events, result } = await watched(boss.session('s'), 'go');
    const told = childEvents(events);
    expect(new Set(told.map(({ agentId }) => agentId))).toEqual(new Set([`s/${result.messages[1]!.id}.0`]));
    expectBalanced(told.map(({ event }) => event));
    expect(told.map(({ event }) => event.type)).not.toContain('message_update');
    expect(told.map(({ event }) => event)).toContainEqual(
      expect.objectContaining({
        type: 'message_end',
        message: expect.objectContaining({ content: [{ type: 'text', text: 'It is paid.' }] }),
      }),
    );
    expect(
      new Set(events.flatMap((event) => (event.type === 'tool_execution_update' ? [event.toolCallId] : []))),
    ).toEqual(new Set(['c']));
  });

  it('pass the guards that the parent has for results', async () => {
    const { boss } = office({
      clerk: { middleware: [], model: byTurn(text('The key is sk-1.')) },
      boss: {
        middleware: [
          {
            name: 'no-keys',
            guard: {
              on: ['tool-result'],
              find: (said) => [...said.matchAll(/sk-\d/g)].map((m) => ({ start: m.index, end: m.index + 4 })),
            },
          },
        ],
      },
    });
    const { events } = await watched(boss.session('s'), 'go');
    expect(childEvents(events).length).toBeGreaterThan(0);
    expect(JSON.stringify(events)).not.toContain('sk-1');
  });

  it('wait for a reader who is slow', async () => {
    const words = Array.from({ length: 2000 }, (_, i) => toolCalls(call('pay', { amount: i }, `p${i}`)));
    const { boss, paid } = office({
      clerk: { middleware: [], model: byTurn(...words), limits: { turns: 5000 } },
    });
    const stream = boss.session('s').stream('go');
    const events = stream[Symbol.asyncIterator]();
    for (let i = 0; i < 20; i++) await events.next();
    for (let i = 0; i < 50; i++) await settle();
    expect(paid.length).toBeLessThan(300);
    await events.return!();
  });
});

describe('a child and a crash', () => {
  /** Runs with a store that breaks at append `n`, then with a sound one; undefined when it did not break. */
  async function crashed(n: number) {
    const store = memoryStore();
    const paid: number[] = [];
    const options = { clerk: { middleware: [], newId: () => 'c' }, boss: { newId: () => 'b' } };
    const { appends, store: breaking } = breakingStore(store, n);
    const died = await office({ ...options, store: breaking, paid })
      .session.run('go')
      .then(
        () => false,
        () => true,
      );
    if (!died) return { died, appends: appends() };
    const begun = (await store.head('s')) > 0;
    const session = office({ ...options, store, paid }).session;
    const result = await (begun ? session.resume() : session.run('go'));
    const { sessions } = await store.list();
    const starts = await Promise.all(
      sessions.map(
        async ({ sessionId }) =>
          (await store.read(sessionId, 1)).filter(({ type }) => type === 'run_start').length,
      ),
    );
    return { died, result, paid, starts, appends: appends() };
  }

  it('at any append: it goes on, is run once, and pays at most once', async () => {
    let crashes = 0;
    for (let n = 1; ; n++) {
      const { died, result, paid, starts } = await crashed(n);
      if (!died) break;
      crashes++;
      expect(result, `crash ${n}`).toMatchObject({ status: 'done', text: 'All is paid.' });
      expect(starts, `crash ${n}`).toEqual([1, 1]);
      expect(paid!.length, `crash ${n}`).toBeLessThanOrEqual(1);
      expect(toolTexts(result!.messages), `crash ${n}`).toEqual(['The clerk has paid.']);
    }
    // The parent's turn, and all that the child writes, and what follows it.
    expect(crashes).toBeGreaterThan(6);
  });

  it('after its end and before the parent knows: its result is found, and nobody works twice', async () => {
    const store = memoryStore();
    const paid: number[] = [];
    const options = { store, paid, clerk: { middleware: [] } };
    const dying = storeWith(store, {
      append: (id, seq, entries) => {
        if (id === 's' && entries.some(({ type }) => type === 'tool_finished')) throw new Error('power cut');
        return store.append(id, seq, entries);
      },
    });
    await expect(office({ ...options, store: dying }).session.run('go')).rejects.toThrow('power cut');
    expect(paid).toEqual([7]);
    const idle = scriptedModel([]);
    const { result, events } = await watch(
      office({ ...options, clerk: { ...options.clerk, model: idle } }).session.resumeStream(),
    );
    expect(result).toMatchObject({ status: 'done', text: 'All is paid.' });
    expect(toolTexts(result.messages)).toEqual(['The clerk has paid.']);
    expect([paid, idle.requests.length, childEvents(events).length]).toEqual([[7], 0, 0]);
  });

  it('questions of a child that has come to its end without an answer are closed', async () => {
    const clock = fakeClock();
    const store = memoryStore();
    const timed = { clock, middleware: [approval({ policy: () => ask({}, 100) })] };
    const make = (on: Store) => office({ store: on, clerk: timed, boss: { clock } }).session;
    await make(store).run('go');
    await clock.advance(101);
    const dying = storeWith(store, {
      append: (id, seq, entries) => {
        if (id === 's') throw new Error('power cut');
        return store.append(id, seq, entries);
      },
    });
    await expect(make(dying).resume()).rejects.toThrow('power cut');
    expect(await make(store).pending()).toHaveLength(1);
    expect(await make(store).resume()).toMatchObject({ status: 'done', pending: [] });
  });

  it('a failure of the child is found too', async () => {
    const store = memoryStore();
    const dying = storeWith(store, {
      append: (id, seq, entries) => {
        if (id === 's' && entries.some(({ type }) => type === 'tool_finished')) throw new Error('power cut');
        return store.append(id, seq, entries);
      },
    });
    const clerk = { middleware: [], model: scriptedModel([failWith(new Error('no network'))]) };
    await expect(office({ store: dying, clerk }).session.run('go')).rejects.toThrow('power cut');
    const { result } = await watch(office({ store, clerk }).session.resumeStream());
    expect(toolTexts(result.messages)).toEqual(['Sub-agent "clerk" failed (error): no network']);
  });

  it('a child that cannot be resumed fails the parent, which stays open until it is resumed with what was missing', async () => {
    const { session, store, paid } = office();
    const first = await session.run('go');
    const answers = answersTo(first, { type: 'approve' });
    const poor = office({ store, paid, clerk: { middleware: [] } }).session;
    await expect(poor.resume({ answers })).rejects.toMatchObject({ code: 'PLAN_MISMATCH' });
    expect(paid).toEqual([]);
    for (const [made, options] of [
      [office({ store: await copyOf(store), paid }), {}],
      [office({ store: await copyOf(store), paid, clerk: { middleware: [] } }), { allowPlanChange: true }],
    ] as const)
      expect(await made.session.resume(options)).toMatchObject({ status: 'done', text: 'All is paid.' });
    expect(paid).toEqual([7, 7]);
  });

  it('two runners: one of them goes on, the other writes nothing into either session', async () => {
    const store = memoryStore();
    const paid: number[] = [];
    const gate = deferred();
    const slow = (held: boolean) => ({
      middleware: [
        defineMiddleware({
          name: 'gate',
          async beforeModel() {
            if (held) await gate.promise;
          },
        }),
      ],
    });
    // Both are left open, the child in the middle of its batch.
    const { store: dying } = breakingStore(store, 5);
    await expect(office({ store: dying, clerk: slow(false) }).session.run('go')).rejects.toThrow('disk full');
    const left = (await store.list()).sessions.map(({ sessionId }) => store.read(sessionId, 1));
    expect((await Promise.all(left)).flat().filter(({ type }) => type === 'run_end')).toEqual([]);
    const loser = office({ store, paid, clerk: slow(true) }).session.resume();
    for (let i = 0; i < 10; i++) await settle();
    // Somebody else has come as far as the end of the child, and has not told the parent yet.
    const { sessions } = await store.list();
    const child = sessions.find(({ sessionId }) => sessionId !== 's')!.sessionId;
    const other = office({ store, paid, clerk: { ...slow(false), store } });
    expect((await other.clerk.session(child).resume()).status).toBe('done');
    const head = await store.head('s');
    gate.resolve();
    await expect(loser).rejects.toMatchObject({ code: 'SESSION_CONFLICT' });
    expect(await store.head('s')).toBe(head);
    const { messages } = await other.session.resume();
    expect(toolTexts(messages)).toEqual(['The clerk has paid.']);
  });
});

describe('a child whose call is given up', () => {
  const children = async (store: Store) => {
    const { sessions } = await store.list();
    const inner = sessions.map(({ sessionId }) => sessionId).filter((id) => id !== 's');
    return Promise.all(
      inner.sort().map(async (id) => [id.split('.').at(-1), (await store.read(id, 1)).at(-1)]),
    );
  };

  it('ends with the parent, before the parent has ended', async () => {
    const controller = new AbortController();
    const model = scriptedModel([hang('I am ')]);
    const { session, store } = office({ clerk: { middleware: [], model } });
    const running = watch(session.stream('go', { signal: controller.signal }));
    while (model.requests.length === 0) await settle();
    controller.abort('Enough.');
    const { result } = await running;
    expect(result).toMatchObject({ status: 'aborted' });
    expect(toolTexts(result.messages)).toEqual(['Aborted: Enough.']);
    expect(model.aborted).toBe(1);
    expect(await children(store)).toMatchObject([['0', { type: 'run_end', status: 'aborted' }]]);
  });

  it('ends when the time of the parent is over', async () => {
    const clock = fakeClock();
    const model = scriptedModel([hang()]);
    const { session, store } = office({
      clerk: { middleware: [], model, clock },
      boss: { clock, limits: { timeoutMs: 20 } },
    });
    const running = watch(session.stream('go'));
    while (model.requests.length === 0) await settle();
    await clock.advance(20);
    expect((await running).result).toMatchObject({ status: 'stopped', stop: { reason: 'timeout' } });
    expect(await children(store)).toMatchObject([['0', { type: 'run_end', stop: { reason: 'timeout' } }]]);
  });

  it('attempts that overlap are one child, whether its session is kept or not', async () => {
    const twice = defineMiddleware({
      name: 'twice',
      wrapTool: async (_, next) => (await Promise.all([next(), next()]))[1],
    });
    for (const store of [undefined, memoryStore()]) {
      const paid: number[] = [];
      const { clerk } = office({ paid, clerk: { middleware: [] } });
      const boss = new Agent({
        model: byTurn(toolCalls(call('clerk')), text('end')),
        tools: [clerk.asTool({ name: 'clerk', description: '' })],
        middleware: [twice],
        ...(store && { store }),
      });
      const { result } = await watched(boss, 'go');
      expect(toolTexts(result.messages)).toEqual(['The clerk has paid.']);
      expect(paid).toEqual([7]);
    }
  });

  it('does not block a layer that calls the tool again: that is a new attempt', async () => {
    const clock = fakeClock();
    const model = scriptedModel([hang('Hm'), text('The second time it worked.')]);
    const clerk = new Agent({ name: 'clerk', model, clock });
    const again = defineMiddleware({
      name: 'again',
      async wrapTool(_, next) {
        try {
          return await next();
        } catch {
          return await next();
        }
      },
    });
    const store = memoryStore();
    const boss = new Agent({
      model: byTurn(toolCalls(call('clerk')), text('end')),
      tools: [clerk.asTool({ name: 'clerk', description: '', timeoutMs: 10 })],
      middleware: [again],
      store,
      clock,
    });
    const running = watch(boss.session('s').stream('go'));
    while (model.requests.length === 0) await settle();
    await clock.advance(10);
    const { result } = await running;
    expect(toolTexts(result.messages)).toEqual(['The second time it worked.']);
    expect(await children(store)).toMatchObject([
      ['0', { status: 'error', stop: { message: '"clerk" did not finish within 10 ms.' } }],
      ['0~2', { status: 'done' }],
    ]);
  });
});
