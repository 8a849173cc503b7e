import {
  Agent,
  type AgentEvent,
  type AgentOptions,
  type Decision,
  defineMiddleware,
  type Message,
  memoryStore,
  type RunResult,
  type Store,
  textOf,
  tool,
  toolSpec,
} from 'allium';
import { approval, ask } from 'allium/middleware/approval';
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
import {
  breakingStore,
  deferred,
  expectBalanced,
  settle,
  storeWith,
  watch,
  watched,
} from '../../../../../test/run-checks.js';

/** A model that answers by how many answers there are already, whichever process asks. */
const byTurn = (...answers: Answer[]) =>
  scriptedModel(
    [
      ({ messages }) =>
        answers[messages.filter(({ role }) => role === 'assistant').length] ?? 'Nothing more.',
    ],
    { repeat: true },
  );
const call = (name: string, args: unknown = { prompt: `for ${name}` }, id?: string) => ({
  name,
  args,
  ...(id && { id }),
});
const toolTexts = (messages: readonly Message[]) =>
  messages.filter(({ role }) => role === 'tool').map(textOf);
const childEvents = (events: readonly AgentEvent[]) =>
  events.flatMap((event) =>
    event.type === 'tool_execution_update' ? [event.details as { agentId: string; event: AgentEvent }] : [],
  );
const answersTo = ({ pending }: Pick<RunResult, 'pending'>, decision: Decision) =>
  Object.fromEntries(pending.map(({ id }) => [id, decision]));

async function copyOf(store: Store): Promise<Store> {
  const copy = memoryStore();
  for (const { sessionId } of (await store.list()).sessions)
    await copy.append(sessionId, 0, await store.read(sessionId, 1));
  return copy;
}

/** A clerk who pays when somebody agreed, asked by a boss. Each call makes all of it anew, as another process would. */
function office({
  store = memoryStore(),
  paid = [],
  ...more
}: {
  store?: Store;
  paid?: number[];
  boss?: Partial<AgentOptions>;
  clerk?: Partial<AgentOptions>;
} = {}) {
  const pay = tool({
    name: 'pay',
    description: 'Pays.',
    input: z.object({ amount: z.number() }),
    execute: ({ amount }) => {
      paid.push(amount);
      return `Paid ${amount}.`;
    },
  });
  const clerk = new Agent({
    name: 'clerk',
    model: byTurn(toolCalls(call('pay', { amount: 7 }, 'p')), text('The clerk has paid.')),
    tools: [pay],
    middleware: [approval()],
    ...more.clerk,
  });
  const boss = new Agent({
    model: byTurn(toolCalls(call('clerk', { prompt: 'Pay 7.' }, 'c')), text('All is paid.')),
    tools: [clerk.asTool({ name: 'clerk', description: 'Asks the clerk.' })],
    store,
    ...more.boss,
  });
  return { clerk, boss, store, paid, session: boss.session('s') };
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

  it('takes another input and makes the prompt of it, as JSON if nobody says how', async () => {
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

  it('tells the child its parent, depth, tenant and the metadata of the run', async () => {
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

  it('pass what guards of the parent take out of results', async () => {
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

  it('is one question, and the call that starts it may be another', async () => {
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

  it('in the middle of a tool is asked the same way', async () => {
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

  it('counts as rejected when nobody answers in time; an answer in time counts however late it is used', async () => {
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

  it('closes with the parent what was answered to the child alone', async () => {
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

  it('a failure of the child is found as well', async () => {
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

  it('cannot be gone on with: the parent fails and stays open, until it is resumed with what was missing', async () => {
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

  it('is not in the way when a layer calls the tool again: that is a new try', async () => {
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
