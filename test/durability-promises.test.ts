// The promises of docs/guide/durability.md, each tried here or in test/crash under its id, and that the two lists agree.

import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import {
  Agent,
  type AgentOptions,
  type Decision,
  defineMiddleware,
  defineState,
  type Entry,
  type Message,
  type Middleware,
  memoryStore,
  type NewEntry,
  type PendingRequest,
  type Store,
  type ToolContext,
  textOf,
  tool,
  toolResult,
  userMessage,
} from 'allium';
import { approval, ask } from 'allium/middleware/approval';
import { loopGuard } from 'allium/middleware/loop-guard';
import { chunks, fakeClock, hang, scriptedModel, text, toolCalls } from 'allium/testing';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { root } from '../scripts/repository.mjs';
import { breakingStore, deferred, expectValidHistory, settle, storeWith } from './run-checks.js';

describe('the list of promises', () => {
  it('is the list of tests that carry their ids', () => {
    const page = readFileSync(join(root, 'docs/guide/durability.md'), 'utf8');
    const promised = [...page.matchAll(/^- \*\*(D\d+)\*\* /gm)].map(([, id]) => id!);
    expect(promised).toEqual(promised.map((_, i) => `D${i + 1}`));
    const tested = ['test', 'packages/allium/src/middleware/approval'].flatMap(idsIn);
    expect([...new Set(tested)].sort()).toEqual([...promised].sort());
  });
});

/** The ids that begin the names of tests. */
function idsIn(folder: string): string[] {
  const files = readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' });
  const tests = files.filter((file) => file.endsWith('.test.ts'));
  return tests.flatMap((file) => {
    const code = readFileSync(join(root, folder, file), 'utf8');
    return [...code.matchAll(/\(\s*['"`]((?:D\d+,? )+)/g)].flatMap(([, ids]) => ids!.match(/D\d+/g)!);
  });
}

// ── A crash at every append ──────────────────────────────────────────────────────────────────────────────────

type Script = Parameters<typeof scriptedModel>[0];
type Parts = Omit<AgentOptions, 'model' | 'store'> & { readonly answers: Script };

const ran: string[] = [];
const look = tool({
  name: 'look',
  description: 'Looks.',
  input: z.any(),
  idempotent: true,
  execute: ({ at }) => {
    ran.push(`look ${at}`);
    return `saw ${at}`;
  },
});
const end = tool({
  name: 'end',
  description: 'Ends the run.',
  input: z.any(),
  idempotent: true,
  execute: () => toolResult({ content: 'bye', terminate: true }),
});
const lookTwice = toolCalls(
  { name: 'look', args: { at: 'a' }, id: 'a' },
  { name: 'look', args: { at: 'b' }, id: 'b' },
);

/** An agent whose model answers by how many answers there are, whichever process asks. */
function agentOn(store: Store, { answers, ...parts }: Parts): Agent {
  const step = (messages: readonly Message[]) =>
    answers[messages.filter(({ role }) => role === 'assistant').length] ?? text('Nothing more.');
  const model = scriptedModel([({ messages }, call) => asAnswer(step(messages), call)], { repeat: true });
  return new Agent({ model, tools: [look, end], newId: () => 'one', clock: fakeClock(), ...parts, store });
}
function asAnswer(
  step: Script[number],
  call: number,
): Exclude<Script[number], (...args: never[]) => unknown> {
  return typeof step === 'function'
    ? step({ messages: [], tools: [], systemPrompt: '', settings: {} } as never, call)
    : step;
}

interface Outcome {
  readonly messages: readonly Message[];
  readonly entries: readonly Entry[];
  readonly status: string;
}

/** Where a process could die: for each append a session that died there and was brought to its end by another agent. */
async function afterEveryCrash(parts: Parts): Promise<{ whole: Outcome; resumed: readonly Outcome[] }> {
  const outcome = async (store: Store, { status }: { status: string }): Promise<Outcome> => ({
    messages: await agentOn(store, parts).session('s').messages(),
    entries: await store.read('s', 1),
    status,
  });
  const calm = memoryStore();
  const whole = await outcome(calm, await agentOn(calm, parts).session('s').run('go'));
  const resumed: Outcome[] = [];
  for (let n = 1; ; n++) {
    const store = memoryStore();
    const breaking = breakingStore(store, n);
    const died = await agentOn(breaking.store, parts)
      .session('s')
      .run('go')
      .then(
        () => false,
        () => true,
      );
    if (!died) return { whole, resumed };
    // What is in the journal is gone on with; where nothing is, the input is sent again.
    const session = agentOn(store, parts).session('s');
    const begun = (await store.head('s')) > 0;
    resumed.push(await outcome(store, begun ? await session.resume() : await session.run('go')));
  }
}

const once = (middleware: Middleware): Pick<Parts, 'middleware'> => ({
  middleware: [{ name: 'once', ...middleware }],
});
const SESSIONS: Record<string, Parts> = {
  'turns with tools': { answers: [lookTwice, text('Done.')] },
  'tools one after the other': { answers: [lookTwice, text('Done.')], toolExecution: 'sequential' },
  'tools that end the run': { answers: [toolCalls({ name: 'end', id: 'e' }), text('Too much.')] },
  'a decision to stop instead of running tools': {
    answers: [lookTwice, text('Too much.')],
    ...once({ afterModelResponse: () => ({ decision: 'stop' }) }),
  },
  'a decision to ask again instead of running tools': {
    answers: [lookTwice, text('Done.')],
    ...once({ afterModelResponse: (_, ctx) => (ctx.turn === 1 ? { decision: 'loop_to_model' } : undefined) }),
  },
  'a decision to ask again after text': {
    answers: [text('First.'), text('Second.')],
    ...once({ afterModelResponse: (_, ctx) => (ctx.turn === 1 ? { decision: 'loop_to_model' } : undefined) }),
  },
  'one more turn': {
    answers: [text('First.'), text('Second.')],
    ...once({
      afterModel: (ctx) => {
        if (ctx.turn === 1) ctx.forceContinue = true;
      },
    }),
  },
  'messages injected after tools': {
    answers: [lookTwice, text('Done.')],
    ...once({
      afterModelResponse: (_, ctx) =>
        ctx.turn === 1 ? { injectMessages: [userMessage('Psst.')] } : undefined,
    }),
  },
  'messages injected after text': {
    answers: [text('First.'), text('Too much.')],
    ...once({
      afterModelResponse: (_, ctx) =>
        ctx.turn === 1 ? { injectMessages: [userMessage('Psst.')] } : undefined,
    }),
  },
  'a run that is kept going at its end': {
    answers: [text('First.'), text('Second.')],
    ...once({ onRunEnd: (ctx) => (ctx.turn === 1 ? [userMessage('And?')] : undefined) }),
  },
  'tools that are counted at the end of their turn, before an answer that is refused': {
    answers: [lookTwice, text('Bad.')],
    middleware: [
      loopGuard({ repeats: 2 }),
      defineMiddleware({
        name: 'strict',
        guard: { on: ['final'], judge: () => ({ type: 'deny', reason: 'No.' }) },
      }),
    ],
  },
  'a stop after the tools': {
    answers: [lookTwice, text('Too much.')],
    ...once({ shouldStopAfterTurn: () => true }),
  },
};

describe.each(Object.entries(SESSIONS))('a crash at every append of a session with %s', (_, parts) => {
  it('D3 leads to the same history, message for message', async () => {
    const { whole, resumed } = await afterEveryCrash(parts);
    expect(resumed.length).toBeGreaterThan(2);
    for (const [i, { messages, status }] of resumed.entries()) {
      expect({ died: i + 1, status, messages }).toEqual({
        died: i + 1,
        status: whole.status,
        messages: whole.messages,
      });
    }
  });

  it('D8 leaves a history that a provider takes', async () => {
    const { resumed } = await afterEveryCrash(parts);
    for (const { messages } of resumed) {
      expectValidHistory(messages);
      expect(messages[0]?.role).toBe('user');
    }
  });
});

it('D3 what is counted at the end of a turn counts once if a message is refused before the next', async () => {
  const strict = defineMiddleware({
    name: 'strict',
    guard: {
      on: ['input'],
      judge: ({ text }) => (text === 'bad' ? { type: 'deny', reason: 'No.' } : undefined),
    },
  });
  const on = (store: Store) => {
    const poke = tool({
      name: 'poke',
      description: 'Posts a message that is refused.',
      input: z.any(),
      idempotent: true,
      execute: () => agent.session('s').steer('bad'),
    });
    const agent = agentOn(store, {
      answers: [toolCalls({ name: 'poke', id: 'p' }), text('Done.')],
      tools: [poke],
      middleware: [loopGuard({ repeats: 2 }), strict],
    });
    return agent.session('s');
  };
  const calm = on(memoryStore());
  await calm.run('go');
  let died = true;
  for (let n = 2; died; n++) {
    const store = memoryStore();
    died = await on(breakingStore(store, n).store)
      .run('go')
      .then(
        () => false,
        () => true,
      );
    if (died) await on(store).resume();
    expect({ n, messages: await on(store).messages() }).toEqual({ n, messages: await calm.messages() });
  }
});

it('D3 a limit still ends a run whose results were on their way to the store side by side', async () => {
  const store = memoryStore();
  // Like one on a network: it confirms later.
  const slow = (dies: boolean) =>
    storeWith(store, {
      append: async (id, seq, entries) => {
        await settle();
        if (dies && entries.some(({ type }) => type === 'run_end')) throw new Error('gone');
        return store.append(id, seq, entries);
      },
    });
  const look3 = toolCalls(...['a', 'b', 'c'].map((id) => ({ name: 'look', args: { at: id }, id })));
  const parts: Parts = { answers: [look3, text('Too much.')], limits: { toolCalls: 2 } };
  await expect(agentOn(slow(true), parts).session('s').run('go')).rejects.toThrow('gone');
  const { stop, messages } = await agentOn(slow(false), parts).session('s').resume();
  expect(stop).toMatchObject({ reason: 'max_tool_calls', by: 'kernel' });
  expect(messages.filter(({ role }) => role === 'assistant')).toHaveLength(1);
});

it('D2 a run is in the journal together with its input, or not at all', async () => {
  const { resumed } = await afterEveryCrash(SESSIONS['turns with tools']!);
  for (const { messages } of resumed) expect(textOf(messages[0]!)).toBe('go');
});

it('D4 a call whose result is in the journal is not run again', async () => {
  const store = memoryStore();
  const tools = [
    tool({ name: 'look', description: '', input: z.any(), execute: ({ at }) => void ran.push(`once ${at}`) }),
  ];
  const parts: Parts = { ...SESSIONS['tools one after the other']!, tools };
  ran.length = 0;
  // The second result cannot be written any more.
  const broken = storeWith(store, {
    append: (id, seq, entries) => {
      if (entries.some((entry) => entry.type === 'tool_finished' && entry.message.toolCallId === 'b'))
        throw new Error('gone');
      return store.append(id, seq, entries);
    },
  });
  await expect(agentOn(broken, parts).session('s').run('go')).rejects.toThrow('gone');
  await agentOn(store, parts).session('s').resume();
  expect(ran).toEqual(['once a', 'once b']);
});

it.each([
  ['fails by default', {}, 1, 'In doubt: "act" had started when the run was interrupted'],
  ['is tried again if it is idempotent', { idempotent: true }, 2, 'acted'],
  ['is tried again if the tool says so', { onInDoubt: 'retry' as const }, 2, 'acted'],
  ['fails if the tool says so', { idempotent: true, onInDoubt: 'fail' as const }, 1, 'In doubt'],
])('D5 a call that had begun and has no result %s, with the same key', async (_, options, times, result) => {
  const keys: string[] = [];
  const act = tool({
    name: 'act',
    description: '',
    input: z.any(),
    ...options,
    execute: (_, ctx) => {
      keys.push(ctx.idempotencyKey);
      return 'acted';
    },
  });
  const store = memoryStore();
  const parts: Parts = {
    answers: [toolCalls({ name: 'act', args: { n: 1 }, id: 'a' }), text('Done.')],
    tools: [act],
  };
  const broken = storeWith(store, {
    append: (id, seq, entries) => {
      if (entries.some(({ type }) => type === 'tool_finished')) throw new Error('gone');
      return store.append(id, seq, entries);
    },
  });
  await expect(agentOn(broken, parts).session('s').run('go')).rejects.toThrow('gone');
  const { messages } = await agentOn(store, parts).session('s').resume();
  expect(textOf(messages[2]!)).toContain(result);
  expect(keys).toHaveLength(times);
  expect(new Set(keys).size).toBe(1);
});

it('D6 an answer that had not arrived completely is dropped', async () => {
  const store = memoryStore();
  const half = new Agent({ model: scriptedModel([hang('Half of an ')]), store }).session('s').stream('go');
  // The process is gone in the middle of the answer: this one is simply left alone.
  for await (const event of half) if (event.type === 'message_update') break;
  const crashed = (await store.read('s', 1))
    .filter(({ type }) => type === 'run_start' || type === 'message')
    .slice(0, 2);
  const other = memoryStore();
  await other.append(
    's',
    0,
    crashed.map(({ seq: _, ...entry }) => entry as NewEntry),
  );
  const { messages } = await new Agent({
    model: scriptedModel([chunks('A whole ', 'answer.')]),
    store: other,
  })
    .session('s')
    .resume();
  expect(messages.map(textOf)).toEqual(['go', 'A whole answer.']);
});

describe('cells and usage', () => {
  const perRun = defineState({ name: 'answers', scope: 'run', initial: 0 });
  const perSession = defineState({ name: 'results', scope: 'session', initial: 0 });
  const counts = defineMiddleware({
    name: 'counts',
    state: [perRun, perSession],
    afterModel: (ctx) => ctx.state.update(perRun, (n) => n + 1),
    afterToolCall: (ctx) => ctx.state.update(perSession, (n) => n + 1),
  });
  const totals = (entries: readonly Entry[]) => ({
    cells: Object.fromEntries(
      entries.flatMap((entry) => (entry.type === 'state' ? [[entry.cell, entry.value]] : [])),
    ),
    tokens: entries.reduce(
      (sum, entry) =>
        sum +
        (entry.type === 'message' && entry.message.role === 'assistant'
          ? entry.message.usage!.totalTokens
          : 0),
      0,
    ),
  });

  it('D7 are as of the last append after a crash at any of them', async () => {
    const { whole, resumed } = await afterEveryCrash({
      ...SESSIONS['turns with tools']!,
      middleware: [counts],
    });
    expect(totals(whole.entries).cells).toEqual({ 'counts:answers': 2, 'counts:results': 2 });
    for (const { entries } of resumed) expect(totals(entries)).toEqual(totals(whole.entries));
  });

  it('D7 count every write of tools side by side, over a store that takes its time', async () => {
    const inner = memoryStore();
    const gates = [deferred(), deferred(), deferred()];
    const ends = [deferred(), deferred(), deferred()];
    let appends = 0;
    const slow = storeWith(inner, {
      append: async (id, seq, entries) => {
        if (entries.some(({ type }) => type === 'tool_finished')) await gates[appends++]!.promise;
        return inner.append(id, seq, entries);
      },
    });
    const wait = tool({
      name: 'wait',
      description: '',
      input: z.any(),
      idempotent: true,
      execute: ({ n }) => ends[n]!.promise,
    });
    const calls = toolCalls(...[0, 1, 2].map((n) => ({ name: 'wait', args: { n }, id: `w${n}` })));
    const running = agentOn(slow, { answers: [calls, text('Done.')], tools: [wait], middleware: [counts] })
      .session('s')
      .run('go');
    const settle = () => new Promise((resolve) => setTimeout(resolve, 5));
    await settle();
    // The second result waits behind the first; the third comes when the first is written and the second is not.
    for (const step of [
      () => ends[0]!.resolve(),
      () => ends[1]!.resolve(),
      () => gates[0]!.resolve(),
      () => ends[2]!.resolve(),
      () => gates[1]!.resolve(),
      () => gates[2]!.resolve(),
    ]) {
      step();
      await settle();
    }
    await running;
    expect(totals(await inner.read('s', 1)).cells).toMatchObject({ 'counts:results': 3 });
  });
});

it('D9 a resumed run goes on with its id, its counters and its limits', async () => {
  const store = memoryStore();
  const parts: Parts = {
    answers: [lookTwice, toolCalls({ name: 'look', args: { at: 'c' }, id: 'c' }), text('Done.')],
    middleware: [approval({ policy: (ctx: ToolContext) => (ctx.args.at === 'c' ? 'ask' : 'allow') })],
    limits: { turns: 2, toolCalls: 3 },
  };
  const first = await agentOn(store, parts).session('s').run('go');
  expect(first).toMatchObject({ status: 'suspended', turns: 2, usage: { totalTokens: 30 } });
  const second = await agentOn(store, parts)
    .session('s')
    .resume({ answers: { [first.pending[0]!.id]: { type: 'approve' } } });
  expect(second).toMatchObject({
    status: 'stopped',
    stop: { reason: 'max_turns' },
    runId: first.runId,
    turns: 2,
    usage: { totalTokens: 30 },
  });
  expect(second.messages.map(({ id }) => id)).toEqual([1, 2, 3, 4, 5, 6].map((n) => `${first.runId}.${n}`));
});

it('D10 a resume without a middleware of the run is refused, unless allowed', async () => {
  const store = memoryStore();
  const parts: Parts = { answers: [lookTwice, text('Done.')], middleware: [approval()] };
  const { pending } = await agentOn(store, parts).session('s').run('go');
  const answers = Object.fromEntries(pending.map(({ id }) => [id, { type: 'approve' as const }]));
  const bare = agentOn(store, { answers: parts.answers }).session('s');
  await expect(bare.resume({ answers })).rejects.toMatchObject({ code: 'PLAN_MISMATCH' });
  await store.fork('s', await store.head('s'), 'refused');
  expect((await bare.resume({ answers, allowPlanChange: true })).status).toBe('done');
  // What people say holds, though nobody is there any more who asked.
  const no = Object.fromEntries(pending.map(({ id }) => [id, { type: 'reject' as const, reason: 'No.' }]));
  const refused = agentOn(store, { answers: parts.answers }).session('refused');
  const { messages } = await refused.resume({ answers: no, allowPlanChange: true });
  expect(messages.filter(({ role }) => role === 'tool').map(textOf)).toEqual(pending.map(() => 'No.'));
});

it('D13 what is posted to the inbox is taken over once, wherever the runner dies', async () => {
  const parts: Parts = { answers: [lookTwice, text('Steered.'), text('Followed.')] };
  const posted = async (store: Store) => {
    const office = agentOn(store, parts).session('s');
    await office.steer('Left, please.');
    await office.followUp('Thank you.');
  };
  const calm = memoryStore();
  await posted(calm);
  const whole = await agentOn(calm, parts).session('s').run('go');
  expect(whole.messages.map(textOf)).toEqual([
    'go',
    'Left, please.',
    '',
    'saw a',
    'saw b',
    'Steered.',
    'Thank you.',
    'Followed.',
  ]);
  for (let n = 1, died = true; died; n++) {
    const store = memoryStore();
    await posted(store);
    died = await agentOn(breakingStore(store, n).store, parts)
      .session('s')
      .run('go')
      .then(
        () => false,
        () => true,
      );
    if (!died) break;
    const session = agentOn(store, parts).session('s');
    await ((await store.head('s')) > 0 ? session.resume() : session.run('go'));
    expect({ n, messages: await session.messages() }).toEqual({ n, messages: whole.messages });
  }
});

describe('questions', () => {
  const parts: Parts = {
    answers: [lookTwice, text('Done.')],
    middleware: [
      approval({ policy: (ctx: ToolContext) => (ctx.args.at === 'b' ? ask({ about: 'b' }, 1000) : 'allow') }),
    ],
  };

  it('D14 survive the process that asked, and keep their id', async () => {
    const store = memoryStore();
    const { pending } = await agentOn(store, parts).session('s').run('go');
    expect(await agentOn(store, parts).session('s').pending()).toEqual(pending);
    const again = await agentOn(store, parts).session('s').resume();
    expect(again).toMatchObject({ status: 'suspended', pending });
    await agentOn(store, { answers: [] }).session('s').answer(pending[0]!.id, { type: 'approve' });
    expect((await agentOn(store, parts).session('s').resume()).status).toBe('done');
  });

  it.each(['run', 'stream'] as const)('D14 survive an error around the run that asked: %s', async (how) => {
    const store = memoryStore();
    const log: Middleware = { name: 'log', afterRun: () => Promise.reject(new Error('no server')) };
    const session = (log: Middleware) =>
      agentOn(store, { ...parts, middleware: [log, parts.middleware ?? []] }).session('s');
    const first = session(log);
    const error = await (how === 'run' ? first.run('go') : first.stream('go').result).catch(
      (thrown) => thrown,
    );
    const { pending } = error.result;
    expect(error).toMatchObject({ code: 'MIDDLEWARE_ERROR', result: { status: 'error', pending: [{}] } });
    expect(await session(log).pending()).toEqual(pending);
    const answers = { [pending[0].id]: { type: 'approve' as const } };
    const sound = session({ name: 'log', afterRun: () => {} });
    const last = await (how === 'run' ? sound.resume({ answers }) : sound.resumeStream({ answers }).result);
    expect(last).toMatchObject({ status: 'done', runId: error.result.runId, text: 'Done.' });
    expectValidHistory(await sound.messages());
  });

  it('D15 are asked once: verdicts are not made again, whatever breaks off meanwhile', async () => {
    const judged: string[] = [];
    const counting: Parts = {
      ...parts,
      middleware: [
        approval({
          policy: (ctx: ToolContext) => {
            judged.push(ctx.args.at);
            return ctx.args.at === 'b' ? 'ask' : 'allow';
          },
        }),
      ],
    };
    const store = memoryStore();
    const { pending } = await agentOn(store, counting).session('s').run('go');
    const answers = { [pending[0]!.id]: { type: 'approve' as const } };
    await agentOn(breakingStore(store, 2).store, counting)
      .session('s')
      .resume({ answers })
      .catch(() => {});
    expect((await agentOn(store, counting).session('s').resume()).status).toBe('done');
    expect(judged).toEqual(['a', 'b']);
  });

  it('D16 take one answer, for what was shown', async () => {
    const store = memoryStore();
    const { pending } = await agentOn(store, parts).session('s').run('go');
    const { id, hash } = pending[0]!;
    const before = await store.head('s');
    const session = agentOn(store, parts).session('s');
    await expect(
      session.resume({ answers: { [id]: { type: 'approve', hash: `not ${hash}` } } }),
    ).rejects.toMatchObject({ code: 'REQUEST_MISMATCH' });
    await expect(session.resume({ answers: { nobody: { type: 'approve' } } })).rejects.toMatchObject({
      code: 'REQUEST_UNKNOWN',
    });
    expect(await store.head('s')).toBe(before);
    await session.resume({ answers: { [id]: { type: 'approve', hash } } });
    await expect(session.answer(id, { type: 'approve', hash })).rejects.toMatchObject({
      code: 'REQUEST_UNKNOWN',
    });
  });

  it('D16 go by the first answer that fits, however many are posted', async () => {
    const tried = async (...decisions: ((request: PendingRequest) => Decision)[]) => {
      const store = memoryStore();
      const { pending } = await agentOn(store, parts).session('s').run('go');
      const request = pending[0]!;
      for (const decide of decisions)
        await store.post('s', { type: 'answer', requestId: request.id, decision: decide(request) });
      return agentOn(store, parts).session('s').resume();
    };
    const no: Decision = { type: 'reject', reason: 'No.' };
    const first = await tried(
      () => no,
      () => ({ type: 'approve' }),
    );
    expect(textOf(first.messages[3]!)).toBe('No.');
    expect(await tried(() => ({ type: 'approve', hash: 'of something else' }))).toMatchObject({
      status: 'suspended',
    });
    expect(await tried(() => ({ type: 'perhaps' }) as never)).toMatchObject({ status: 'suspended' });
    const second = await tried(
      () => ({ type: 'perhaps' }) as never,
      ({ hash }) => ({ type: 'approve', hash }),
    );
    expect(textOf(second.messages[3]!)).toBe('saw b');

    const store = memoryStore();
    const { pending } = await agentOn(store, parts).session('s').run('go');
    await agentOn(store, parts).session('s').answer(pending[0]!.id, no);
    const late = agentOn(store, parts).session('s').answer(pending[0]!.id, { type: 'approve' });
    await expect(late).rejects.toMatchObject({ code: 'REQUEST_UNKNOWN' });
  });

  it('D17 lapse after their time, judged when they are looked at', async () => {
    const store = memoryStore();
    const clock = fakeClock(0);
    const timed = { ...parts, clock };
    const { pending } = await agentOn(store, timed).session('s').run('go');
    await clock.advance(1001);
    expect(await agentOn(store, timed).session('s').pending()).toEqual(pending);
    const { status, messages } = await agentOn(store, timed).session('s').resume();
    expect(status).toBe('done');
    expect(messages.map(textOf)).toEqual(['go', '', 'saw a', 'Nobody answered within 1000 ms.', 'Done.']);
  });

  it('D18 are settled by a new message, visibly', async () => {
    const store = memoryStore();
    await agentOn(store, parts).session('s').run('go');
    await agentOn(store, { ...parts, newId: () => 'two' })
      .session('s')
      .run('Never mind.');
    const messages = await agentOn(store, parts).session('s').messages();
    expect(messages.map(({ role }) => role)).toEqual([
      'user',
      'assistant',
      'tool',
      'tool',
      'user',
      'assistant',
    ]);
    expect(messages.slice(2, 4).map(textOf)).toEqual(
      Array(2).fill('Not run: a new message came before this call was settled.'),
    );
    expectValidHistory(messages);
  });
});

it('D19 a turn appends what is new: its size does not depend on what came before', async () => {
  const store = memoryStore();
  const sizes: number[] = [];
  const measuring = storeWith(store, {
    append: (id, seq, entries) => {
      sizes.push(JSON.stringify(entries).length);
      return store.append(id, seq, entries);
    },
  });
  const answers = Array.from({ length: 200 }, (_, i) =>
    toolCalls({ name: 'look', args: { at: 'x' }, id: `call-${1000 + i}` }),
  );
  await agentOn(measuring, { answers: [...answers, text('Done.')], limits: { turns: 300 } })
    .session('s')
    .run('go');
  const perTurn = sizes.length / 201;
  const turn = (n: number) =>
    sizes.slice(Math.floor(n * perTurn), Math.floor((n + 1) * perTurn)).reduce((sum, size) => sum + size, 0);
  // Only the numbers of messages grow by a digit or two.
  expect(turn(190)).toBeLessThan(turn(10) * 1.05);
});

it('D20 journals of the first release are read and continued; those of newer code are refused', async () => {
  const store = memoryStore();
  await store.append('s', 0, FIRST_RELEASE);
  const agent = new Agent({
    model: scriptedModel([text('Still here.')]),
    tools: [look],
    store,
    tenant: 'acme',
  });
  const { runId, messages } = await agent.session('s').resume();
  expect(runId).toBe('r_old');
  expect(messages.map(textOf)).toEqual(['Look.', '', 'saw it', 'Still here.']);
  await store.append('new', 0, [{ v: 99, at: 0, type: 'run_start', runId: 'r', plan: [] }]);
  await expect(agent.session('new').messages()).rejects.toMatchObject({ code: 'SESSION_CORRUPT' });
});

/** A run that broke off, as version 1 wrote it. It stays as it is; other versions get their own. */
const FIRST_RELEASE: readonly NewEntry[] = [
  { v: 1, at: 1, type: 'run_start', runId: 'r_old', tenant: 'acme', plan: [] },
  {
    v: 1,
    at: 1,
    type: 'message',
    runId: 'r_old',
    message: { id: 'r_old.1', role: 'user', content: [{ type: 'text', text: 'Look.' }] },
  },
  {
    v: 1,
    at: 2,
    type: 'message',
    runId: 'r_old',
    message: {
      id: 'r_old.2',
      role: 'assistant',
      content: [{ type: 'tool-call', id: 'a', name: 'look', arguments: '{"at":"it"}' }],
      usage: { inputTokens: 1, outputTokens: 1, cacheRead: 0, cacheWrite: 0, totalTokens: 2 },
      stopReason: 'tool-calls',
      model: 'old/model',
    },
  },
];
