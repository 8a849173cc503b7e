import {
  Agent,
  type Decision,
  type Middleware,
  memoryStore,
  type PendingRequest,
  StopRun,
  type Store,
  type ToolContext,
  textOf,
  tool,
} from 'allium';
import {
  type ApprovalOptions,
  type ApprovalPolicy,
  approval,
  ask,
  deny,
  policyFor,
} from 'allium/middleware/approval';
import { fakeClock, scriptedModel, testMiddleware, text, toolCalls } from 'allium/testing';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { breakingStore, deferred, type Watched, watch, watched } from '../../../../../test/run-checks.js';

testMiddleware(() => approval({ policy: { '*': 'allow' } }), { name: 'approval', describe, it });
testMiddleware(() => approval({ policy: { '*': deny('Not today.') } }), {
  name: 'approval that refuses',
  neutral: () => approval({ policy: () => 'allow' }),
  skip: {
    'error-identity': 'no tool runs, so none throws',
    'control-signals': 'no tool runs, so none stops or suspends',
  },
  describe,
  it,
});
testMiddleware(() => approval({ policy: { '*': 'ask' }, onRequest: () => ({ type: 'approve' }) }), {
  name: 'approval that is given in place',
  neutral: () => approval({ policy: () => 'allow' }),
  describe,
  it,
});

const calls = (...names: string[]) =>
  toolCalls(...names.map((name, n) => ({ name, args: { n }, id: `c${n}` })));
const results = ({ result }: Watched) => result.messages.filter(({ role }) => role === 'tool').map(textOf);
const idOf = (pending: readonly PendingRequest[], callId: string) =>
  pending.find((one) => one.callId === callId)!.id;

/** One store, an agent made anew for every step as in another process, and what ran. */
function world(
  options: ApprovalOptions,
  {
    clock,
    store = memoryStore(),
    more = [],
  }: { clock?: ReturnType<typeof fakeClock>; store?: Store; more?: readonly Middleware[] } = {},
) {
  const ran: string[] = [];
  const tools = ['pay', 'look', 'drop'].map((name) =>
    tool({
      name,
      description: name,
      input: z.object({ n: z.number() }),
      execute: ({ n }) => {
        ran.push(`${name} ${n}`);
        return `${name} ${n}`;
      },
    }),
  );
  const session = (...script: Parameters<typeof scriptedModel>[0]) =>
    new Agent({
      model: scriptedModel(script),
      tools,
      store,
      middleware: [approval(options), ...more],
      ...(clock && { clock }),
    }).session('s');
  return {
    ran,
    store,
    session,
    start: (...names: string[]) => watched(session(calls(...names), 'end'), 'go'),
    resume: (answers: Record<string, Decision> = {}) => watch(session('end').resumeStream({ answers })),
  };
}

describe('the policy', () => {
  it('is a verdict for each tool', async () => {
    const it = world({ policy: { look: 'allow', drop: deny('Never.'), pay: ask({ why: 'money' }, 1000) } });
    const { result } = await it.start('look', 'drop', 'pay');
    expect(result).toMatchObject({ status: 'suspended' });
    expect(result.pending).toMatchObject([
      {
        callId: 'c2',
        toolName: 'pay',
        title: 'Run "pay"?',
        details: { why: 'money' },
        timeoutMs: 1000,
        by: 'approval',
        kind: 'ask',
      },
    ]);
    const done = await it.resume({ [result.pending[0]!.id]: { type: 'approve' } });
    expect(results(done)).toEqual(['look 0', 'Never.', 'pay 2']);
  });

  it('asks about tools it does not name, unless it has a line for all others', async () => {
    expect((await world({ policy: { look: 'allow' } }).start('look', 'pay')).result.pending).toMatchObject([
      { toolName: 'pay' },
    ]);
    expect(results(await world({ policy: { pay: 'deny', '*': 'allow' } }).start('look', 'pay'))).toEqual([
      'look 0',
      '"pay" is not allowed.',
    ]);
    expect((await world({}).start('look')).result.status).toBe('suspended');
  });

  it('is not fooled by names that every object has', async () => {
    const inherited = tool({ name: 'constructor', description: '', input: z.any(), execute: () => 'ran' });
    const agent = new Agent({
      model: scriptedModel([calls('constructor'), 'end']),
      tools: [inherited],
      middleware: [approval({ policy: { look: 'allow' } })],
    });
    expect((await agent.run('go')).status).toBe('suspended');
  });

  it('judges the tool that runs, not the name the model called it by', async () => {
    const alias: Middleware = {
      name: 'alias',
      resolveToolCall: (toolCall) =>
        toolCall.name === 'harmless' ? { toolCall: { ...toolCall, name: 'pay' } } : undefined,
    };
    const it = world({ policy: { pay: deny('No money.'), '*': 'allow' } }, { more: [alias] });
    expect(results(await it.start('harmless'))).toEqual(['No money.']);
  });

  it('is a function of the call, or a function for one tool', async () => {
    const policies: ApprovalPolicy[] = [
      async ({ args, tool }: ToolContext) =>
        tool!.name === 'look' ? 'allow' : args.n > 1 ? ask() : deny(`Too little: ${args.n}`),
      { look: 'allow', pay: ({ args }: ToolContext) => (args.n > 1 ? 'ask' : deny(`Too little: ${args.n}`)) },
    ];
    for (const policy of policies) {
      const it = world({ policy });
      const { result } = await it.start('look', 'pay', 'pay');
      expect(result.pending).toMatchObject([{ callId: 'c2' }]);
      const done = await it.resume({ [result.pending[0]!.id]: { type: 'approve' } });
      expect(results(done)).toEqual(['look 0', 'Too little: 1', 'pay 2']);
    }
  });

  it.each([
    [
      'throws',
      () => {
        throw new Error('no idea');
      },
      'no idea',
    ],
    ['rejects', () => Promise.reject(new Error('no idea')), 'no idea'],
    [
      'says nothing',
      () => undefined,
      "Expected the policy to answer 'allow', deny(reason) or ask(details, timeoutMs), got undefined.",
    ],
    ['says something else', () => 'perhaps', 'got "perhaps"'],
    ['says yes', () => true, 'got true'],
    ['misspells a verdict', () => ({ type: 'alow' }), 'alow'],
    ['allows under a condition that nobody reads', () => ({ type: 'allow', max: 100 }), 'max'],
    [
      'asks with details that are not JSON',
      () => ask(1n),
      'Expected the details of the question about "pay" to be JSON, got 1n.',
    ],
    [
      'limits the answers by a field that does not exist',
      () => ({ type: 'ask', decision: ['approve', 'reject'] }),
      'Unknown option `decision` of ask(). Did you mean `decisions`?',
    ],
    [
      'asks with a time that is none',
      () => ask('why', -1),
      'Expected `timeoutMs` to be a finite number ≥ 0, got -1.',
    ],
  ])('that %s makes a person decide', async (_, rule, message) => {
    for (const policy of [rule, { pay: rule, '*': 'allow' }]) {
      const it = world({ policy: policy as never });
      const { result, events } = await it.start('pay');
      const problem = expect.stringContaining(message);
      expect(result).toMatchObject({
        status: 'suspended',
        pending: [{ title: 'Run "pay"?', details: { problem } }],
      });
      expect(events).toContainEqual(
        expect.objectContaining({ type: 'custom', name: 'policy_failed', data: { tool: 'pay', problem } }),
      );
      expect(it.ran).toEqual([]);
      expect(results(await it.resume({ [result.pending[0]!.id]: { type: 'approve' } }))).toEqual(['pay 0']);
    }
  });

  it('may stop the run', async () => {
    const it = world({
      policy: () => {
        throw new StopRun('stopped', 'Enough.');
      },
    });
    expect((await it.start('pay')).result).toMatchObject({ status: 'stopped', stop: { message: 'Enough.' } });
  });

  it('made by policyFor() for a tool asks if another tool of that name is called', async () => {
    const input = z.object({ amount: z.number() });
    const pay = tool({ name: 'pay', description: '', input, execute: () => 'paid' });
    const policy = policyFor(pay, (ctx) => (ctx.args.amount > 100 ? 'ask' : 'allow'));
    const run = async (own: typeof pay, args: object) => {
      const model = scriptedModel([toolCalls({ name: 'pay', args }), 'end']);
      return (await new Agent({ model, tools: [own], middleware: [approval({ policy })] }).run('go')).status;
    };
    expect(await run(pay, { amount: 5 })).toBe('done');
    expect(await run(pay, { amount: 500 })).toBe('suspended');
    // The same schema, so the same arguments.
    expect(
      await run(tool({ name: 'pay', description: 'A copy.', input, execute: () => '' }), { amount: 5 }),
    ).toBe('done');
    const other = tool({
      name: 'pay',
      description: '',
      input: z.object({ sum: z.number() }),
      execute: () => 'paid',
    });
    expect(await run(other as never, { sum: 500 })).toBe('suspended');
    expect(policyFor(pay, deny('No.'))).toEqual({ pay: deny('No.') });
    expect(() => policyFor({} as never, 'ask')).toThrow('Expected `tool` to be a tool');
  });

  it('that names an unknown tool is a hazard, unless a middleware brings that tool', () => {
    const own = tool({ name: 'pay', description: '', input: z.object({}), execute: () => '' });
    const hazards = (policy: ApprovalPolicy, more: readonly Middleware[] = []) =>
      new Agent({
        model: scriptedModel([]),
        tools: [own],
        middleware: [approval({ policy }), ...more],
      }).explain().hazards;
    expect(hazards({ pay: 'ask', '*': 'allow' })).toEqual([]);
    expect(hazards(() => 'ask')).toEqual([]);
    expect(hazards({ pya: 'ask', '*': 'allow' })).toMatchObject([
      {
        id: 'unknown-tool',
        between: ['approval'],
        message: expect.stringContaining('"pya"'),
        fix: expect.stringContaining('"pay"'),
      },
    ]);
    expect(hazards({ later: 'ask' }, [{ name: 'brings', brings: ['later'] }])).toEqual([]);
  });

  it('is evaluated once for each call and its arguments, across resumes and crashes', async () => {
    const judged: string[] = [];
    const policy: ApprovalPolicy = ({ toolCall, args }: ToolContext) => {
      judged.push(`${toolCall.id} ${args.n}`);
      return toolCall.name === 'look' ? 'allow' : 'ask';
    };
    const store = memoryStore();
    const it = world({ policy }, { store });
    const { result } = await it.start('look', 'pay', 'pay');
    await it.resume();
    await it.resume({ [idOf(result.pending, 'c1')]: { type: 'edit', args: { n: 7 } } });
    const broken = world({ policy }, { store: breakingStore(store, 3).store });
    await broken
      .session('end')
      .resume({ answers: { [idOf(result.pending, 'c2')]: { type: 'approve' } } })
      .catch(() => {});
    await it.resume();
    expect(judged).toEqual(['c0 0', 'c1 1', 'c2 2', 'c1 7']);
  });

  it.each([
    [
      { policy: 'ask' },
      'Expected `policy` to be a function of the call, or an object with a verdict for each tool, got "ask".',
    ],
    [{ policy: [] }, 'Expected `policy` to be'],
    [
      { policy: { pay: 'perhaps' } },
      "Expected `policy.pay` to be 'allow', 'deny', 'ask', deny(reason), ask(details, timeoutMs) or a function of the call, got \"perhaps\".",
    ],
    [{ policy: { pay: ask(1, Number.NaN) } }, 'Expected `policy.pay` to be'],
    [{ policy: { pay: { type: 'deny', reason: 5 } } }, 'Expected `policy.pay` to be'],
    [
      { policy: { pay: { type: 'ask', allowedDecisions: ['approve'] } } },
      /^Expected `policy.pay` to be .+ Unknown option `allowedDecisions` of ask\(\). Here that is `decisions`./,
    ],
    [{ policy: { pay: ask(1, 2, { decision: ['approve'] } as never) } }, 'Did you mean `decisions`?'],
    [{ policy: { pay: ask(1, 2, { decisions: [] }) } }, 'Expected `decisions` to be'],
    [{ onRequest: true }, 'Expected `onRequest` to be a function, got true.'],
    [{ polcy: {} }, 'Unknown option `polcy` of approval(). Did you mean `policy`?'],
  ])('refuses %j', (options, message) => {
    expect(() => approval(options as never)).toThrow(message);
  });

  it('is named in explain() as one that may ask a person', () => {
    expect(String(new Agent({ model: scriptedModel([]), middleware: [approval()] }).explain())).toContain(
      'approval',
    );
    expect(approval()).toMatchObject({ name: 'approval', suspends: true });
  });
});

describe('decisions, taken over by another agent on the same store', () => {
  const policy = { look: 'allow', pay: 'ask' } as const;
  it.each<[string, Decision, { ran: string[]; result: RegExp; isError?: boolean }]>([
    ['approve', { type: 'approve' }, { ran: ['pay 0'], result: /^pay 0$/ }],
    ['edit', { type: 'edit', args: { n: 9 } }, { ran: ['pay 9'], result: /^pay 9$/ }],
    ['reject', { type: 'reject', reason: 'Too dear.' }, { ran: [], result: /^Too dear\.$/, isError: true }],
    ['respond', { type: 'respond', text: 'I paid cash.' }, { ran: [], result: /^I paid cash\.$/ }],
  ])('%s', async (_, decision, { ran, result: wanted, isError = false }) => {
    const it = world({ policy });
    const first = await it.start('pay');
    const done = await it.resume({ [first.result.pending[0]!.id]: decision });
    expect(done.result).toMatchObject({ status: 'done', runId: first.result.runId, pending: [] });
    expect(results(done)[0]).toMatch(wanted);
    expect(done.result.messages.find(({ role }) => role === 'tool')).toMatchObject({ isError });
    expect(it.ran).toEqual(ran);
  });

  it('of a mixed batch: what is approved or automatic runs, the others get their reason, in the order of the calls', async () => {
    const it = world({ policy: { ...policy, drop: deny('Never.') } });
    const { result, events: before } = await it.start('pay', 'look', 'pay', 'drop', 'pay', 'pay');
    expect(it.ran).toEqual([]);
    const { events, ...done } = await it.resume({
      [idOf(result.pending, 'c0')]: { type: 'reject', reason: 'No.' },
      [idOf(result.pending, 'c2')]: { type: 'approve' },
      [idOf(result.pending, 'c4')]: { type: 'respond', text: 'Done by hand.' },
      [idOf(result.pending, 'c5')]: { type: 'edit', args: { n: 50 } },
    });
    expect(results({ ...done, events })).toEqual([
      'No.',
      'look 1',
      'pay 2',
      'Never.',
      'Done by hand.',
      'pay 50',
    ]);
    expect(it.ran).toEqual(['look 1', 'pay 2', 'pay 50']);
    const all = [...before, ...events];
    expect(all.filter(({ type }) => type === 'tool_execution_start')).toHaveLength(6);
    expect(all.filter(({ type }) => type === 'tool_execution_end')).toHaveLength(6);
  });

  it('may come one by one: nothing runs before the last', async () => {
    const it = world({ policy });
    const { result } = await it.start('pay', 'look', 'pay');
    const partly = await it.resume({ [idOf(result.pending, 'c2')]: { type: 'approve' } });
    expect(partly.result).toMatchObject({ status: 'suspended', pending: [{ callId: 'c0' }] });
    expect(it.ran).toEqual([]);
    expect(results(await it.resume({ [idOf(result.pending, 'c0')]: { type: 'approve' } }))).toEqual([
      'pay 0',
      'look 1',
      'pay 2',
    ]);
  });

  it('may be posted to the inbox by a process that runs nothing', async () => {
    const it = world({ policy });
    await it.start('pay');
    const office = new Agent({ model: scriptedModel([]), store: it.store }).session('s');
    const [question] = await office.pending();
    await office.answer(question!.id, { type: 'approve', hash: question!.hash });
    expect(results(await it.resume())).toEqual(['pay 0']);
  });

  it('to edit are judged by the policy and by everyone else', async () => {
    const it = world({ policy: ({ args }: ToolContext) => (args.n > 99 ? deny('Too much.') : 'ask') });
    const { result } = await it.start('pay', 'pay');
    const done = await it.resume({
      [idOf(result.pending, 'c0')]: { type: 'edit', args: { n: 100 } },
      [idOf(result.pending, 'c1')]: { type: 'edit', args: { n: 99 } },
    });
    expect(results(done)).toEqual(['Too much.', 'pay 99']);
  });

  it('for other arguments, for unknown questions and for answered ones are coded errors, and change nothing', async () => {
    const it = world({ policy });
    const { result } = await it.start('pay', 'pay');
    const [first, second] = result.pending;
    const head = await it.store.head('s');
    const attempts: [Record<string, Decision>, string][] = [
      [{ [first!.id]: { type: 'approve', hash: second!.hash } }, 'REQUEST_MISMATCH'],
      [{ [first!.id]: { type: 'approve' }, nobody: { type: 'approve' } }, 'REQUEST_UNKNOWN'],
      [{ [first!.id]: { type: 'maybe' } as never }, 'INVALID_OPTION'],
    ];
    for (const [answers, code] of attempts) {
      await expect(it.session('end').resume({ answers })).rejects.toMatchObject({ code });
      const [[id, decision]] = Object.entries(answers).slice(-1) as [[string, Decision]];
      await expect(it.session().answer(id, decision)).rejects.toMatchObject({ code });
    }
    expect(await it.store.head('s')).toBe(head);
    await it.resume({ [first!.id]: { type: 'approve', hash: first!.hash } });
    await expect(
      it.session('end').resume({ answers: { [first!.id]: { type: 'approve' } } }),
    ).rejects.toMatchObject({ code: 'REQUEST_UNKNOWN' });
    await expect(it.session().answer(first!.id, { type: 'approve' })).rejects.toMatchObject({
      code: 'REQUEST_UNKNOWN',
    });
    expect(it.ran).toEqual([]);
  });

  it('are dropped when a new message comes: the calls are answered first, visibly', async () => {
    const it = world({ policy });
    const { result } = await it.start('look', 'pay');
    const next = await watched(it.session('fine'), 'Forget it.');
    expect(next.result.status).toBe('done');
    const messages = await it.session().messages();
    expect(messages.map(({ role }) => role)).toEqual([
      'user',
      'assistant',
      'tool',
      'tool',
      'user',
      'assistant',
    ]);
    expect(textOf(messages[3]!)).toContain('Not run');
    await expect(it.session().answer(result.pending[0]!.id, { type: 'approve' })).rejects.toMatchObject({
      code: 'REQUEST_UNKNOWN',
    });
    expect(it.ran).toEqual([]);
  });

  it('are not needed when another middleware refuses: nobody is asked', async () => {
    const refuses: Middleware = {
      name: 'refuses',
      beforeToolCall: () => ({ block: true, reason: 'Closed.' }),
    };
    const done = await world({ policy }, { more: [refuses] }).start('pay');
    expect(results(done)).toEqual(['Closed.']);
  });
});

describe('questions lapse', () => {
  it('after their time: the call counts as rejected, and a late answer is refused', async () => {
    const clock = fakeClock(1000);
    const it = world({ policy: { pay: ask('Quick!', 50), look: 'allow' } }, { clock });
    const { result } = await it.start('look', 'pay');
    await clock.advance(51);
    await expect(it.session().answer(result.pending[0]!.id, { type: 'approve' })).rejects.toMatchObject({
      code: 'REQUEST_UNKNOWN',
    });
    const done = await it.resume();
    expect(results(done)).toEqual(['look 0', 'Nobody answered within 50 ms.']);
    expect(it.ran).toEqual(['look 0']);
  });
});

describe('onRequest', () => {
  it('answers in place, one question after the other; the run is not suspended', async () => {
    const seen: string[] = [];
    const it = world({
      policy: { look: 'allow', pay: ask({ why: 'money' }) },
      onRequest: async ({ callId, details, arguments: args }) => {
        seen.push(`${callId} ${args} ${JSON.stringify(details)}`);
        return callId === 'c0' ? { type: 'approve' } : { type: 'edit', args: { n: 8 } };
      },
    });
    const done = await it.start('pay', 'look', 'pay');
    expect(done.result.status).toBe('done');
    expect(results(done)).toEqual(['pay 0', 'look 1', 'pay 8']);
    expect(seen).toEqual(['c0 {"n":0} {"why":"money"}', 'c2 {"n":2} {"why":"money"}']);
    expect(done.types).not.toContain('suspended');
  });

  it('suspends after all when it has no answer', async () => {
    const it = world({ policy: { pay: 'ask' }, onRequest: () => undefined });
    expect((await it.start('pay')).result).toMatchObject({
      status: 'suspended',
      pending: [{ callId: 'c0' }],
    });
  });

  it('is bound to what was asked: an answer with another hash ends the run', async () => {
    const it = world({ policy: { pay: 'ask' }, onRequest: () => ({ type: 'approve', hash: 'other' }) });
    expect((await it.start('pay')).error).toMatchObject({ code: 'REQUEST_MISMATCH' });
    expect(it.ran).toEqual([]);
  });

  it('is not waited for longer than the question holds', async () => {
    const clock = fakeClock();
    const late = deferred<Decision>();
    const it = world({ policy: { pay: ask(undefined, 10) }, onRequest: () => late.promise }, { clock });
    const running = it.start('pay');
    await clock.advance(10);
    expect(results(await running)).toEqual(['Nobody answered within 10 ms.']);
    expect(it.ran).toEqual([]);
    expect(clock.pending).toBe(0);
  });

  it('that throws ends the run, with every call answered', async () => {
    const cause = new Error('the line is dead');
    const it = world({
      policy: { pay: 'ask', look: 'allow' },
      onRequest: () => {
        throw cause;
      },
    });
    const { result, error } = await it.start('look', 'pay');
    expect(error!.cause).toBe(cause);
    expect(result.messages.filter(({ role }) => role === 'tool')).toHaveLength(2);
    expect(it.ran).toEqual([]);
  });

  it('of the agent is used when the middleware has none', async () => {
    const pay = tool({ name: 'pay', description: '', input: z.any(), execute: () => 'paid' });
    const model = scriptedModel([calls('pay'), text('end')]);
    const agent = new Agent({
      model,
      tools: [pay],
      middleware: [approval()],
      onRequest: () => ({ type: 'approve' }),
    });
    expect((await agent.run('go')).status).toBe('done');
  });

  it('is not asked about a question that is open already; whoever resumes may bring a handler', async () => {
    const store = memoryStore();
    await world({ policy: { pay: 'ask' } }, { store }).start('pay');
    const it = world({ policy: { pay: 'ask' }, onRequest: () => ({ type: 'reject' }) }, { store });
    expect((await it.resume()).result.status).toBe('suspended');
    const done = await watch(it.session('end').resumeStream({ onRequest: () => ({ type: 'approve' }) }));
    expect(results(done)).toEqual(['pay 0']);
  });
});
