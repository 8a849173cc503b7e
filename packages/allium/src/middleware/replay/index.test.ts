import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import {
  Agent,
  type AgentEvent,
  type AgentOptions,
  AlliumError,
  assistantMessage,
  defineMiddleware,
  type Middleware,
  type ModelResponse,
  type Next,
  type RunResult,
  StopRun,
  type ToolResult,
  tool,
  toolResult,
  window,
} from 'allium';
import { record } from 'allium/middleware/record';
import { replay } from 'allium/middleware/replay';
import { retry } from 'allium/middleware/retry';
import { memoryStore } from 'allium/stores/memory';
import {
  type Collected,
  checkMiddleware,
  chunks,
  collect,
  failWith,
  fakeClock,
  type Scenario,
  type Script,
  scriptedModel,
  testMiddleware,
  text,
  toolCalls,
} from 'allium/testing';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { z } from 'zod';

// ── Laws ─────────────────────────────────────────────────────────────────────────────────────────────────────

const recorded: Scenario = {
  name: 'a conversation that is on the cassette',
  input: 'The recorded question.',
  answers: [
    chunks(
      'Let ',
      'me see.',
      { type: 'tool-call', id: 'a', name: 'kit_add', arguments: '{"a":40,"b":2}' },
      { type: 'tool-call', id: 'b', name: 'kit_slow', arguments: '{"value":"x"}' },
    ),
    text('42.'),
  ],
};
const tape = await recordedOnBench(recorded);

testMiddleware(() => replay({ from: [], onMiss: 'passthrough' }), {
  name: 'replay of nothing',
  describe,
  it,
});
testMiddleware(() => replay({ from: tape, onMiss: 'passthrough' }), {
  name: 'replay',
  scenarios: [recorded],
  skip: {
    'second-next':
      'A recording answers once per run: asked again, the model is called, which the law sees as another request.',
  },
  describe,
  it,
});

/** What `record` writes of a scenario on the bench of the laws. */
async function recordedOnBench(scenario: Scenario): Promise<string[]> {
  const tapes: string[][] = [];
  const factory = () => {
    const lines: string[] = [];
    tapes.push(lines);
    return record({ to: lines });
  };
  const only = 'One law is enough to record with.';
  await checkMiddleware(factory, {
    scenarios: [scenario],
    skip: {
      neutrality: only,
      'chunk-invariance': only,
      'abort-calls': only,
      'dangling-timers': only,
      'unhandled-rejections': only,
      'second-next': only,
      'no-mutation': only,
      'no-shared-state': only,
      'error-identity': only,
      'control-signals': only,
    },
  });
  return tapes.find((lines) => lines[1]?.includes(scenario.input!))!;
}

// ── Help ─────────────────────────────────────────────────────────────────────────────────────────────────────

const noop = () => {};
const add = tool({
  name: 'add',
  description: 'Adds.',
  input: z.object({ a: z.number(), b: z.number() }),
  execute: ({ a, b }) => a + b,
});

type Setup = Omit<AgentOptions, 'model' | 'middleware'> & { readonly outside?: readonly Middleware[] };

/** Records a run and returns the cassette. */
async function recording(script: readonly Script[], input = 'hi', setup: Setup = {}) {
  const { outside = [], ...options } = setup;
  const lines: string[] = [];
  const model = scriptedModel(script);
  const agent = new Agent({ ...options, model, middleware: [...outside, record({ to: lines })] });
  return { lines, run: await collect(agent.stream(input)) };
}

/** An agent whose model is never to be called. */
function replaying(lines: readonly string[], { outside = [], ...options }: Setup = {}) {
  const model = scriptedModel([]);
  const agent = new Agent({ ...options, model, middleware: [...outside, replay({ from: lines })] });
  return { agent, model };
}

function withoutVerdicts(events: readonly unknown[]): unknown {
  const kept = (events as AgentEvent[]).filter(({ type }) => type !== 'guard_verdict');
  return JSON.parse(JSON.stringify(kept), (key, value) =>
    key === 'changes' ? value.filter(({ verdict }: { verdict?: unknown }) => !verdict) : value,
  );
}

/** The events of a run without its ids, tool events that ran side by side in the order of their calls. */
function eventsOf({ events }: Collected): unknown[] {
  const { runId, sessionId } = events[0]!;
  const out: AgentEvent[] = [];
  let batch: AgentEvent[] = [];
  const callOf = (event: AgentEvent) =>
    'toolCall' in event ? event.toolCall.id : (event as { toolCallId: string }).toolCallId;
  for (const event of events) {
    if (event.type.startsWith('tool_execution')) batch.push(event);
    else {
      out.push(...batch.sort((a, b) => callOf(a).localeCompare(callOf(b))), event);
      batch = [];
    }
  }
  return JSON.parse(JSON.stringify(out).replaceAll(runId, 'RUN').replaceAll(sessionId, 'SESSION'));
}

const deltas = ({ events }: Collected) =>
  events.flatMap((event) => (event.type === 'message_update' ? [event.delta] : []));

/** Numbers that look random and are the same every time. */
function random(seed: number): () => number {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1664525) + 1013904223) | 0;
    return (state >>> 0) / 4294967296;
  };
}

async function ticks(count: number): Promise<void> {
  for (let i = 0; i < count; i++) await new Promise((resolve) => setImmediate(resolve));
}

// ── The promise ──────────────────────────────────────────────────────────────────────────────────────────────

describe('a recorded run', () => {
  it('replays to the same events, 50 times, however long its tools take', async () => {
    for (let repeat = 0; repeat < 50; repeat++) {
      const next = random(repeat + 1);
      let counter = 0;
      const wait = () => ticks(Math.floor(next() * 6));
      const work = tool({
        name: 'work',
        description: 'Works.',
        input: z.object({ what: z.string() }),
        async execute({ what }, ctx) {
          await wait();
          await ctx.update(`begins ${what}`, { at: what });
          await wait();
          if (what === 'fails') throw Object.assign(new TypeError(`No ${what}.`), { status: 418 });
          if (what === 'detailed') return toolResult({ content: 'ok', details: { n: 1 }, isError: true });
          // Not the same twice, although it is asked the same.
          return `${what} ${++counter}`;
        },
      });
      const shuffle = defineMiddleware({
        name: 'shuffle',
        wrapTool: async (_, inner) => {
          await wait();
          return inner();
        },
      });
      const side = scriptedModel([(request) => text(`About: ${request.messages.length}`)], {
        id: 'side',
        repeat: true,
      });
      const asks = defineMiddleware({
        name: 'asks',
        extraLlmCalls: () => [side],
        async afterTool(ctx) {
          await ctx.generate(side, { messages: `How was ${ctx.toolCall.name} ${ctx.toolCall.arguments}?` });
        },
      });
      const clock = fakeClock();
      const outside = [retry({ clock, jitter: 'none' }), shuffle, asks];
      const setup: Setup = {
        tools: [work, add],
        systemPrompt: 'Be brief.',
        outside,
        settings: { temperature: 0 },
      };
      const call = (id: string, what: string) => ({ id, name: 'work', args: { what } });
      const script = [
        failWith(Object.assign(new Error('Overloaded'), { status: 529, code: 'overloaded' }), 'Let ', 'us'),
        chunks(
          { type: 'thinking', text: 'Hm' },
          { type: 'thinking', text: 'm.', signature: 'sig' },
          'Let me',
          'tick',
          ' see.',
          { type: 'tool-call', id: 'a', name: 'work', arguments: '' },
          { type: 'tool-call-delta', id: 'a', arguments: '{"what":' },
          { type: 'tool-call-delta', id: 'a', arguments: '"same"}' },
          { type: 'tool-call', id: 'b', name: 'work', arguments: '{"what":"same"}' },
          { type: 'tool-call', id: 'c', name: 'work', arguments: '{"what":"fails"}' },
          { type: 'tool-call', id: 'd', name: 'add', arguments: '{"a":1,"b":2}' },
          { type: 'tool-call', id: 'e', name: 'nobody', arguments: '{}' },
        ),
        toolCalls(call('a', 'same'), call('g', 'detailed')),
        chunks('Al', 'l d', 'one', '.'),
      ];
      const recordingRun = recording(script, 'go', setup);
      await clock.advance(500);
      const { lines, run } = await recordingRun;
      expect(run.result).toMatchObject({ status: 'done', turns: 3, text: 'All done.' });
      counter = 100;
      const { agent, model } = replaying(lines, setup);
      const replayed = collect(agent.stream('go'));
      await clock.advance(500);
      expect(eventsOf(await replayed)).toEqual(eventsOf(run));
      expect(model.requests).toHaveLength(0);
      expect(counter).toBe(100);
    }
  });

  it('streams again in the pieces it came in, blocks that interleave included', async () => {
    const parts = [
      { type: 'text', text: 'One ', block: 'x' },
      { type: 'text', text: 'uno ', block: 'y', metadata: { lang: 'it' } },
      { type: 'text', text: 'two', block: 'x' },
      { type: 'text', text: '', block: 'x' },
      { type: 'text', text: 'due', block: 'y' },
      { type: 'file', data: 'aGk=', mimeType: 'text/plain' },
      { type: 'provider', kind: 'source', value: { url: 'https://example.com' } },
      { type: 'finish', reason: 'length', metadata: { id: 'x' }, usage: { inputTokens: 3, cacheRead: 4 } },
    ] as const;
    const { lines, run } = await recording([{ parts }]);
    const seen: unknown[] = [];
    const listening = defineMiddleware({
      beforeModel: (ctx) =>
        ctx.transform(() => ({
          part(part, emit) {
            seen.push(part);
            emit(part);
          },
        })),
    });
    const { agent } = replaying(lines, { outside: [listening] });
    const replayed = await collect(agent.stream('hi'));
    expect(seen).toEqual(parts.slice(0, -1));
    expect(deltas(replayed)).toEqual(deltas(run));
    expect(replayed.result?.messages).toMatchObject(
      run.result!.messages.map(({ id: _, ...message }) => message),
    );
  });

  it('passes guards and layers like a live one', async () => {
    const { lines } = await recording([chunks('well, my code is 12', '34, ok?', ' Thanks a lot.')]);
    const guard = defineMiddleware({
      name: 'no-codes',
      guard: {
        on: ['output'],
        hold: window(8),
        find: (given) => [...given.matchAll(/\d{4}/g)].map(({ index }) => ({ start: index, end: index + 4 })),
      },
    });
    const { agent } = replaying(lines, { outside: [guard] });
    const run = await collect(agent.stream('hi'));
    expect(run.result?.text).toBe('well, my code is [redacted], ok? Thanks a lot.');
    expect([...run.shown.values()]).toEqual(['well, my code is [redacted], ok? Thanks a lot.']);
    expect(deltas(run).length).toBeGreaterThan(1);
  });

  it('costs what it cost, and limits hold', async () => {
    const price = { input: 1_000_000, output: 0 };
    const lines: string[] = [];
    const model = scriptedModel(['a'], { price });
    await new Agent({ model, middleware: [record({ to: lines })] }).run('hi');
    const again = scriptedModel([], { price });
    const agent = new Agent({ model: again, middleware: [replay({ from: lines })] });
    expect(await agent.run('hi')).toMatchObject({ costUsd: 10, usage: { totalTokens: 15 } });
    expect(await agent.run('hi', { limits: { tokens: 1 } })).toMatchObject({
      stop: { reason: 'max_tokens' },
    });
  });

  it('names the model that answered, where a layer further in had asked another', async () => {
    const other = scriptedModel(['from another'], { provider: 'other', id: 'x/y' });
    const lines: string[] = [];
    const swap = defineMiddleware({ name: 'swap', wrapModel: (_, next) => next({ model: other }) });
    await new Agent({ model: scriptedModel([]), middleware: [record({ to: lines }), swap] }).run('hi');
    const { messages } = await replaying(lines).agent.run('hi');
    expect(messages.at(-1)).toMatchObject({ model: 'other/x/y' });
  });

  it('is replayed any number of times, also side by side, by one agent', async () => {
    const { lines } = await recording([toolCalls({ name: 'add', args: { a: 1, b: 2 } }), text('3')], 'hi', {
      tools: [add],
    });
    const { agent } = replaying(lines, { tools: [add] });
    const runs = await Promise.all(Array.from({ length: 20 }, () => agent.run('hi')));
    expect(new Set(runs.map((run) => run.text))).toEqual(new Set(['3']));
    expect((await agent.run('hi')).text).toBe('3');
  });

  it('may be replayed by runs in another order', async () => {
    const lines: string[] = [];
    const model = scriptedModel(
      [({ messages }) => text(`you said ${JSON.stringify(messages[0]?.content)}`)],
      {
        repeat: true,
      },
    );
    const agent = new Agent({ model, middleware: [record({ to: lines })] });
    const inputs = ['a', 'b', 'c', 'd'];
    const first = await Promise.all(inputs.map((input) => agent.run(input)));
    const again = replaying(lines).agent;
    const second = await Promise.all(inputs.toReversed().map((input) => again.run(input)));
    expect(second.map((run) => run.text)).toEqual(first.map((run) => run.text).toReversed());
  });

  it('gives identical questions their answers in the order they were recorded', async () => {
    const lines: string[] = [];
    const model = scriptedModel(['first', 'second']);
    const agent = new Agent({ model, middleware: [record({ to: lines })] });
    await agent.run('hi');
    await agent.run('hi');
    const again = replaying(lines).agent;
    const answers: string[] = [];
    for (let i = 0; i < 4; i++) answers.push((await again.run('hi')).text);
    expect(answers).toEqual(['first', 'second', 'first', 'second']);
  });

  it('answers questions within one run likewise', async () => {
    const lines: string[] = [];
    const answers: string[] = [];
    const side = scriptedModel(['one', 'two', 'three'], { id: 'side' });
    const asks = defineMiddleware({
      name: 'asks',
      async beforeRun(ctx) {
        for (let i = 0; i < 3; i++)
          answers.push(JSON.stringify((await ctx.generate(side, { messages: 'next' })).content));
      },
    });
    await new Agent({ model: scriptedModel(['ok']), middleware: [asks, record({ to: lines })] }).run('hi');
    await replaying(lines, { outside: [asks] }).agent.run('hi');
    expect(answers.slice(3)).toEqual(answers.slice(0, 3));
    expect(new Set(answers).size).toBe(3);
    expect(side.requests).toHaveLength(3);
  });

  it('answers identical questions that are asked at once', async () => {
    const both = defineMiddleware({
      name: 'both',
      async wrapModel(_, next) {
        const [one, other] = await Promise.all([next(), next()]);
        return assistantMessage([...one.content, ...other.content]);
      },
    });
    const { lines, run } = await recording(['first', 'second'], 'hi', { outside: [both] });
    expect(run.result?.text).toBe('firstsecond');
    expect((await replaying(lines, { outside: [both] }).agent.run('hi')).text).toBe('firstsecond');
  });

  it('takes ids of the run it is replayed in, wherever those of the recorded run stood', async () => {
    const whoami = defineMiddleware({
      name: 'whoami',
      transformSystemPrompt: (prompt, ctx) => `${prompt} Run ${ctx.runId} of ${ctx.sessionId}.`,
    });
    const log = tool({
      name: 'log',
      description: 'Logs.',
      input: z.object({ run: z.string() }),
      execute: ({ run }, ctx) => `${run} is in ${ctx.sessionId}`,
    });
    const echo: Script = ({ systemPrompt }) =>
      toolCalls({ name: 'log', args: { run: /Run (\S+)/.exec(systemPrompt)?.[1] } });
    const setup = { tools: [log], outside: [whoami] };
    const { run } = await recording([echo, text('ok')], 'hi', setup);
    const { lines } = await recording([echo, text('ok')], 'hi', setup);
    expect(lines.join('\n')).toContain('{{runId}} is in {{sessionId}}');
    const replayed = await collect(replaying(lines, setup).agent.stream('hi'));
    expect(eventsOf(replayed)).toEqual(eventsOf(run));
    expect(JSON.stringify(replayed.events)).toContain(`${replayed.result?.runId} is in`);
  });

  it('is found by what `normalise` leaves of a question', async () => {
    const lines: string[] = [];
    const normalise = (given: string) => given.replace(/\d{4}-\d\d-\d\d/g, 'DATE');
    const ask = (middleware: Middleware, date: string) =>
      new Agent({
        model: scriptedModel(['ok']),
        systemPrompt: `Today is ${date}.`,
        middleware: [middleware],
      }).run('hi');
    await ask(record({ to: lines, normalise }), '2026-01-01');
    expect((await ask(replay({ from: lines, normalise }), '2027-02-03')).text).toBe('ok');
    expect(lines.join('\n')).toContain('Today is DATE.');
  });
});

describe('errors', () => {
  it.each<[string, unknown, object]>([
    [
      'of a client',
      Object.assign(new Error('Bad'), { name: 'APIError', status: 400, code: 'bad', headers: {} }),
      { name: 'APIError', message: 'Bad', status: 400, code: 'bad' },
    ],
    ['of a class', new RangeError('Too far'), { name: 'RangeError', message: 'Too far' }],
    [
      'with a cause',
      new Error('Out', { cause: new TypeError('in') }),
      { cause: { name: 'TypeError', message: 'in' } },
    ],
    [
      'of ours',
      new AlliumError('MODEL_STREAM_CUT', 'Cut.'),
      { name: 'AlliumError', code: 'MODEL_STREAM_CUT' },
    ],
    ['that are none', { odd: true }, { odd: true }],
  ])('%s are thrown again', async (_, error, fields) => {
    const { lines, run } = await recording([failWith(error, 'Hel')]);
    const replayed = await collect(replaying(lines).agent.stream('hi'));
    expect(replayed.error?.cause).toMatchObject(fields);
    expect(replayed.error?.code).toBe(run.error?.code);
    expect(eventsOf(replayed)).toEqual(eventsOf(run));
    if (error instanceof Error) expect(replayed.error?.cause).toBeInstanceOf(error.constructor);
  });

  it('are worth another try if they were, whatever said so', async () => {
    const clock = fakeClock();
    const outside = [retry({ clock, jitter: 'none' })];
    const overloaded = Object.assign(new Error('Busy'), { error: { type: 'overloaded_error' } });
    const slow = Object.assign(new Error('Later'), {
      status: 429,
      headers: new Headers({ 'retry-after': '2' }),
    });
    const run = recording([failWith(overloaded), failWith(slow), text('ok')], 'hi', { outside });
    await clock.advance(10_000);
    const { lines, run: first } = await run;
    const again = collect(replaying(lines, { outside }).agent.stream('hi'));
    await clock.advance(10_000);
    expect(eventsOf(await again)).toEqual(eventsOf(first));
    expect((await again).result?.text).toBe('ok');
  });

  it('of tools read the same to the model', async () => {
    const fails = tool({
      name: 'fails',
      description: 'Fails.',
      input: z.object({}),
      execute: () => {
        throw Object.assign(new Error('Not today.'), { code: 'ENOENT' });
      },
    });
    const { lines, run } = await recording([toolCalls({ name: 'fails' }), text('ok')], 'hi', {
      tools: [fails],
    });
    const replayed = await collect(replaying(lines, { tools: [fails] }).agent.stream('hi'));
    expect(JSON.stringify(replayed.events)).toContain('\\"fails\\" failed: Not today.');
    expect(eventsOf(replayed)).toEqual(eventsOf(run));
  });
});

describe('ends', () => {
  it('a tool that stopped the run stops it again', async () => {
    const quit = tool({
      name: 'quit',
      description: 'Quits.',
      input: z.object({}),
      execute: () => {
        throw new StopRun('stopped', 'Enough.');
      },
    });
    const { lines } = await recording([toolCalls({ name: 'quit' })], 'hi', { tools: [quit] });
    const result = await replaying(lines, { tools: [quit] }).agent.run('hi');
    expect(result).toMatchObject({ status: 'stopped', stop: { reason: 'stopped', message: 'Enough.' } });
  });

  it('an answer that a guard refused is refused again, though it is not on the cassette', async () => {
    const guard = defineMiddleware({
      name: 'no',
      guard: { on: ['output'], judge: () => ({ type: 'deny', reason: 'Not that.' }) },
    });
    const { lines } = await recording(['forbidden'], 'hi', { outside: [guard] });
    expect(lines.join('\n')).not.toContain('forbidden');
    const result = await replaying(lines, { outside: [guard] }).agent.run('hi');
    expect(result).toMatchObject({ status: 'stopped', stop: { reason: 'guardrail', message: 'Not that.' } });
  });

  it('a question to a human is asked again, in this process or another', async () => {
    let runs = 0;
    const ask = tool({
      name: 'ask',
      description: 'Asks.',
      input: z.object({}),
      async execute(_, ctx) {
        runs++;
        const answer = await ctx.suspend({ title: 'Really?', details: { risk: 1 } });
        return answer.type === 'respond' ? answer.text : answer.type;
      },
    });
    const lines: string[] = [];
    const agent = new Agent({
      model: scriptedModel([toolCalls({ name: 'ask' }), text('ok')]),
      tools: [ask],
      middleware: [record({ to: lines })],
    });
    const session = agent.session('s');
    const first = await session.run('hi');
    const answerTo = (id: string) => ({ answers: { [id]: { type: 'respond', text: 'yes' } as const } });
    const second = await session.resume(answerTo(first.pending[0]!.id));
    expect(second.text).toBe('ok');
    expect(runs).toBe(2);

    for (const anew of [false, true]) {
      const { agent: again } = replaying(lines, { tools: [ask] });
      const suspended = await again.session('s').run('hi');
      expect(suspended).toMatchObject({ status: 'suspended', pending: [{ title: 'Really?' }] });
      const other = anew
        ? new Agent({
            model: scriptedModel([]),
            tools: [ask],
            store: again.store,
            middleware: [replay({ from: lines })],
          })
        : again;
      const done = await other.session('s').resume(answerTo(suspended.pending[0]!.id));
      expect(done.text).toBe('ok');
      expect(JSON.stringify(done.messages)).toContain('"text":"yes"');
      expect(runs).toBe(2);
    }
  });
});

describe('questions to people', () => {
  const answerAll = ({ pending }: Pick<RunResult, 'pending'>) =>
    Object.fromEntries(pending.map(({ id, title }) => [id, { type: 'respond', text: `${title}!` } as const]));

  /** Keeps the texts of answers. */
  const noting =
    (texts: unknown[], answers = answerAll): typeof answerAll =>
    (result) => {
      const given = answers(result);
      texts.push(...Object.values(given).map(({ text: said }) => said));
      return given;
    };

  let conversations = 0;

  /** A run with all its resumes: each time a new agent, if `make` makes one. */
  async function answered(make: () => Agent, answers = answerAll) {
    const id = `conversation ${++conversations}`;
    let part = await collect(make().session(id).stream('hi'));
    const parts = [part];
    while (part.result?.status === 'suspended') {
      const resume = { answers: answers(part.result) };
      part = await collect(make().session(id).resumeStream(resume));
      parts.push(part);
    }
    return { parts: parts.map(eventsWithoutDates), text: part.result?.text, error: part.error };
  }

  /** Of questions, the time they were asked at is not recorded. */
  const eventsWithoutDates = (part: Collected) =>
    JSON.parse(JSON.stringify(eventsOf(part)).replace(/"createdAt":\d+/g, '"createdAt":0'));

  const survey = tool({
    name: 'survey',
    description: 'Asks two questions, the second depends on the first.',
    input: z.object({ about: z.string() }),
    async execute({ about }, ctx) {
      await ctx.update('begins');
      const one = await ctx.suspend({ title: `${about} one` });
      await ctx.update('goes on');
      const two = await ctx.suspend({ title: `${about} two`, details: { after: one } });
      return JSON.stringify([one, two]);
    },
  });
  const script = (...about: readonly string[]) => [
    toolCalls(...about.map((one) => ({ name: 'survey', args: { about: one } }))),
    text('Thanks.'),
  ];

  async function recordedSurvey(about: readonly string[], answers = answerAll) {
    const lines: string[] = [];
    const middleware = [record({ to: lines })];
    const agent = new Agent({ model: scriptedModel(script(...about)), tools: [survey], middleware });
    const run = await answered(() => agent, answers);
    expect(run.text).toBe('Thanks.');
    return { lines, run };
  }

  function replayingSurvey(lines: readonly string[], options: Partial<AgentOptions> = {}) {
    const silent = tool({ ...survey, execute: () => 'not replayed' });
    const middleware = [replay({ from: lines })];
    return new Agent({ model: scriptedModel([]), tools: [silent], middleware, ...options });
  }

  it('of one call are all asked again, each with its own answer', async () => {
    const { lines, run } = await recordedSurvey(['A']);
    expect(run.parts).toHaveLength(3);
    const agent = replayingSurvey(lines);
    expect(await answered(() => agent)).toEqual(run);
    expect(await answered(() => agent)).toEqual(run);
  });

  it('are all asked again by other processes', async () => {
    const { lines, run } = await recordedSurvey(['A']);
    const store = memoryStore();
    expect(await answered(() => replayingSurvey(lines, { store }))).toEqual(run);
  });

  it('are all asked where they are answered in place', async () => {
    const { lines } = await recordedSurvey(['A']);
    const asked: unknown[] = [];
    const onRequest: AgentOptions['onRequest'] = ({ title }) => {
      asked.push(title);
      return { type: 'respond', text: `${title}!` };
    };
    const { result, events } = await collect(replayingSurvey(lines, { onRequest }).stream('hi'));
    expect(result?.text).toBe('Thanks.');
    expect(asked).toEqual(['A one', 'A two']);
    const updates = events.flatMap((event) => (event.type === 'tool_execution_update' ? event.update : []));
    expect(updates).toMatchObject([{ text: 'begins' }, { text: 'goes on' }]);
  });

  const oneByOne = ({ pending }: Pick<RunResult, 'pending'>) => answerAll({ pending: pending.slice(0, 1) });

  it('wait again where they waited for the answers to others', async () => {
    const { lines, run } = await recordedSurvey(['A', 'B'], oneByOne);
    expect(run.parts.length).toBeGreaterThan(3);
    const agent = replayingSurvey(lines);
    expect(await answered(() => agent, oneByOne)).toEqual(run);
    const store = memoryStore();
    expect(await answered(() => replayingSurvey(lines, { store }), oneByOne)).toEqual(run);
  });

  it('are asked once each, although people answer in other steps than they did', async () => {
    for (const [then, now] of [
      [oneByOne, answerAll],
      [answerAll, oneByOne],
    ] as const) {
      const { lines } = await recordedSurvey(['A', 'B'], then);
      const agent = replayingSurvey(lines);
      const titles: unknown[] = [];
      const { text: last } = await answered(() => agent, noting(titles, now));
      expect(last).toBe('Thanks.');
      expect(titles.toSorted()).toEqual(['A one!', 'A two!', 'B one!', 'B two!']);
    }
  });

  it('of a sub-agent are asked again one after the other', async () => {
    const lines: string[] = [];
    const make = (models: readonly Script[], inner: readonly Script[], middleware: readonly Middleware[]) => {
      const clerk = new Agent({ name: 'clerk', model: scriptedModel(inner), tools: [survey] });
      const tools = [clerk.asTool({ name: 'clerk', description: 'Asks around.' })];
      return new Agent({ model: scriptedModel(models), tools, middleware });
    };
    const outer = [toolCalls({ name: 'clerk', args: { prompt: 'go' } }), text('Done.')];
    const live = make(outer, script('A'), [record({ to: lines })]);
    const answers: unknown[] = [];
    const types = ({ parts }: Awaited<ReturnType<typeof answered>>) =>
      parts.map((events: AgentEvent[]) => events.map(({ type }) => type));
    const run = await answered(() => live, noting(answers));
    const again = make([], [], [replay({ from: lines })]);
    const replayed = await answered(() => again, noting(answers));
    expect(replayed.text).toBe('Done.');
    expect(types(replayed)).toEqual(types(run));
    expect(answers).toEqual(['A one!', 'A two!', 'A one!', 'A two!']);
  });
});

describe('a miss', () => {
  it('fails the run and shows how the nearest recording differs', async () => {
    const lines: string[] = [];
    const model = scriptedModel(['ok'], { id: 'm' });
    const middleware = [record({ to: lines })];
    const recorded = new Agent({ model, middleware, tools: [add], settings: { temperature: 0 } });
    await recorded.run(`${'x'.repeat(100)} one two three`);
    await recorded.run('something else altogether').catch(noop);
    const agent = new Agent({
      model,
      tools: [add],
      settings: { temperature: 1 },
      middleware: [replay({ from: lines })],
    });
    const error = await agent.run(`${'x'.repeat(100)} one 2 three`).catch((thrown) => thrown);
    expect(error).toMatchObject({
      name: 'RunError',
      code: 'CASSETTE_MISS',
      cause: { code: 'CASSETTE_MISS' },
    });
    expect(error.cause.message).toBe(
      [
        'No recording for this model call (test/m) of turn 1 in the cassette. The nearest one, on line 2, differs:',
        '  settings.temperature',
        '    recorded: 0',
        '    asked:    1',
        '  messages[0].content[0].text',
        `    recorded: …"${'x'.repeat(19)} one two three"`,
        `    asked:    …"${'x'.repeat(19)} one 2 three"`,
        "Record it again; replay({ onMiss: 'passthrough' }) makes calls that were not recorded.",
      ].join('\n'),
    );
    expect(error.cause.data).toMatchObject({ seam: 'model', turn: 1, nearest: 2, differences: [{}, {}] });
  });

  it('looks at whole requests, of which later lines hold only what is new', async () => {
    const script = [toolCalls({ name: 'add', args: { a: 1, b: 2 } }), text('3')];
    const { lines } = await recording(script, 'hi', { tools: [add], systemPrompt: 'Be brief.' });
    const lying = tool({ ...add, execute: () => 4 });
    const changed = lines.map((line) => line.replace('"content":"3"', '"content":"4"'));
    const { agent } = replaying(changed, { tools: [lying], systemPrompt: 'Be brief.' });
    await expect(agent.run('hi')).rejects.toThrow(
      /line 4, differs:\n {2}messages\[2\]\.content\[0\]\.text\n {4}recorded: "3"\n {4}asked: {4}"4"\n/,
    );
  });

  it('of a tool fails the run too, although the model could read its error', async () => {
    const script = [toolCalls({ name: 'add', args: { a: 1, b: 2 } }), text('3')];
    const { lines } = await recording(script, 'hi', { tools: [add] });
    const changed = lines.map((line) => line.replace('{\\"a\\":1,', '{\\"a\\":7,'));
    const error = await replaying(changed, { tools: [add] })
      .agent.run('hi')
      .catch((thrown) => thrown);
    expect(error.code).toBe('CASSETTE_MISS');
    expect(error.message).toContain('No recording for this call of "add" of turn 1');
    expect(error.message).toContain('args.a\n    recorded: 1\n    asked:    7');
  });

  it('is heard although a layer further out answers in its place', async () => {
    const hides = defineMiddleware({
      name: 'hides',
      wrapModel: (_, next) => next().catch(() => assistantMessage('Sorry.')),
    });
    const { agent } = replaying([], { outside: [hides] });
    await expect(agent.run('hi')).rejects.toMatchObject({ code: 'CASSETTE_MISS' });
  });

  describe.each([
    [
      'of a model',
      {
        wrapModel: (_: unknown, next: Next<ModelResponse, never>) =>
          next().catch(() => assistantMessage('Sorry.')),
      },
    ],
    [
      'of a tool',
      {
        wrapTool: (_: unknown, next: Next<ToolResult, never>) =>
          next().catch(() => toolResult({ content: 'ok' })),
      },
    ],
  ])('a damaged cassette is heard although a layer answers in the place %s', (_, hides) => {
    const script = [toolCalls({ name: 'add', args: { a: 1, b: 2 } }), text('3')];

    it('when its lines cannot be read', async () => {
      const { lines } = await recording(script, 'hi', { tools: [add] });
      const damaged = [...lines.slice(0, -1), lines.at(-1)!.slice(0, 20)];
      const outside = [defineMiddleware({ name: 'hides', ...hides } as Middleware)];
      for (const run of [
        (agent: Agent) => agent.run('hi'),
        (agent: Agent) => agent.stream('hi').result,
        (agent: Agent) => agent.session('s').run('hi'),
      ])
        await expect(run(replaying(damaged, { outside, tools: [add] }).agent)).rejects.toMatchObject({
          code: 'CASSETTE_INVALID',
        });
    });

    it('when a miss finds that a line refers to one that is gone', async () => {
      const { lines } = await recording(script, 'hi', { tools: [add] });
      // Without its first call, the second one goes on from nowhere.
      const damaged = lines.filter((line) => !line.includes('"turn":1,') || !line.includes('"type":"model"'));
      expect(damaged.length).toBeLessThan(lines.length);
      const outside = [defineMiddleware({ name: 'hides', ...hides } as Middleware)];
      await expect(replaying(damaged, { outside, tools: [add] }).agent.run('hi')).rejects.toMatchObject({
        code: 'CASSETTE_INVALID',
      });
    });
  });

  it('says so when a run asks more often than was recorded, and when there is nothing', async () => {
    const side = scriptedModel(['one'], { id: 'side' });
    const asks = (times: number) =>
      defineMiddleware({
        name: 'asks',
        async beforeRun(ctx) {
          for (let i = 0; i < times; i++) await ctx.generate(side, { messages: 'next' });
        },
      });
    const { lines } = await recording(['ok'], 'hi', { outside: [asks(1)] });
    await expect(replaying(lines, { outside: [asks(2)] }).agent.run('hi')).rejects.toThrow(
      'It was recorded once, and this run has asked for it before.',
    );
    await expect(replaying([]).agent.run('hi')).rejects.toThrow('There is nothing in it.');
    const missing = new Agent({ model: side, middleware: [replay({ from: 'no/such/file.jsonl' })] });
    await expect(missing.run('hi')).rejects.toThrow('in no/such/file.jsonl. There is nothing in it.');
  });

  it('tells no secrets', async () => {
    process.env.REPLAY_TEST_KEY = 'hidden-value-1';
    try {
      const { lines } = await recording(['ok'], 'nothing alike');
      const model = scriptedModel([]);
      const agent = new Agent({ model, middleware: [replay({ from: lines, redact: [/pin \d+/] })] });
      const error = await agent.run('my key is hidden-value-1, pin 1234').catch((thrown) => thrown);
      expect(error.message).toContain('my key is [redacted], [redacted]');
      expect(JSON.stringify(error.cause.data)).not.toMatch(/hidden-value-1|1234/);
    } finally {
      delete process.env.REPLAY_TEST_KEY;
    }
  });
});

describe("onMiss: 'passthrough'", () => {
  it('makes the calls that were not recorded', async () => {
    let ran = 0;
    const count = tool({
      name: 'count',
      description: 'Counts.',
      input: z.object({ n: z.number() }),
      execute: ({ n }) => `${n}:${++ran}`,
    });
    const call = (n: number, id: string) => ({ name: 'count', args: { n }, id });
    const { lines } = await recording([toolCalls(call(1, 'a')), text('ok')], 'hi', { tools: [count] });
    const model = scriptedModel([toolCalls(call(1, 'a'), call(2, 'b')), text('new')]);
    const agent = new Agent({
      model,
      tools: [count],
      middleware: [replay({ from: lines, onMiss: 'passthrough' })],
    });
    const { text: answer, messages } = await agent.run('other');
    expect(answer).toBe('new');
    expect(messages.flatMap((message) => (message.role === 'tool' ? message.content : []))).toMatchObject([
      { text: '1:1' },
      { text: '2:2' },
    ]);
    expect(ran).toBe(2);
  });

  it('together with record keeps a cassette complete', async () => {
    const lines: string[] = [];
    const model = scriptedModel(['new answer']);
    const { lines: old } = await recording(['old answer'], 'old');
    const agent = new Agent({
      model,
      middleware: [record({ to: lines }), replay({ from: old, onMiss: 'passthrough' })],
    });
    await agent.run('old');
    await agent.run('new');
    const again = replaying(lines).agent;
    expect([(await again.run('new')).text, (await again.run('old')).text]).toEqual([
      'new answer',
      'old answer',
    ]);
  });

  it('record writes no complaints of a cassette further in', async () => {
    const lines: string[] = [];
    const agent = new Agent({
      model: scriptedModel([]),
      middleware: [record({ to: lines }), replay({ from: [] })],
    });
    await expect(agent.run('hi')).rejects.toMatchObject({ code: 'CASSETTE_MISS' });
    expect(lines).toEqual([]);
  });
});

describe('a call that guards refused', () => {
  const ran: unknown[] = [];
  const sending = (most: number) =>
    tool({
      name: 'send',
      description: 'Sends a text.',
      input: z.object({ text: z.string().max(most) }),
      execute(args) {
        ran.push(args);
        return 'sent';
      },
    });
  const sends = sending(20);
  const finds = (text: string) => ({ start: text.indexOf('secret'), end: text.indexOf('secret') + 6 });
  const blocks = defineMiddleware({
    name: 'blocks',
    guard: {
      on: ['tool-args'],
      action: 'block',
      find: (text) => (text.includes('secret') ? [finds(text)] : []),
    },
  });
  const script = () => [
    toolCalls({ name: 'send', args: { text: 'a secret' } }, { name: 'send', args: { text: 'fine' } }),
    text('done'),
  ];
  const live = (lines: readonly string[], middleware: readonly Middleware[], then: readonly Script[] = []) =>
    new Agent({
      model: scriptedModel(then),
      tools: [sends],
      middleware: [...middleware, replay({ from: lines, onMiss: 'passthrough' })],
    });

  it('is refused again, though what they objected to is not on the cassette', async () => {
    // What is left of its arguments need not be valid.
    const setup = { outside: [blocks], tools: [sending(10)] };
    const { lines, run } = await recording(script(), 'hi', setup);
    expect(lines.join('\n')).not.toContain('secret');
    ran.length = 0;
    const again = await collect(replaying(lines, setup).agent.stream('hi'));
    // What guards took out is on no cassette, so they cannot find it again: only what came of it is repeated.
    expect(withoutVerdicts(eventsOf(again))).toEqual(withoutVerdicts(eventsOf(run)));
    const middleware = [blocks, replay({ from: lines, onMiss: 'passthrough' })];
    const passing = new Agent({ model: scriptedModel([]), tools: setup.tools, middleware });
    expect(await passing.run('hi')).toMatchObject({ text: 'done' });
    expect(ran).toEqual([]);
  });

  it('is refused where the guard is gone', async () => {
    const { lines } = await recording(script(), 'hi', { outside: [blocks], tools: [sends] });
    ran.length = 0;
    for (const agent of [live(lines, []), replaying(lines, { tools: [sends] }).agent]) {
      const { messages } = await agent.run('hi');
      expect(messages.filter(({ role }) => role === 'tool')).toMatchObject([
        { isError: true },
        { content: [{ text: 'sent' }] },
      ]);
    }
    expect(ran).toEqual([]);
  });

  it('is refused again where `redact` took out what a guard judged', async () => {
    const judges = defineMiddleware({
      name: 'judges',
      guard: {
        on: ['tool-args'],
        judge: ({ text }) => (text.includes('4711') ? { type: 'deny', reason: 'No pins.' } : undefined),
      },
    });
    const lines: string[] = [];
    const redact = ['4711', /\d/];
    const recorder = new Agent({
      model: scriptedModel([toolCalls({ name: 'send', args: { text: 'pin 4711' } }), text('done')]),
      tools: [sends],
      middleware: [judges, record({ to: lines, redact })],
    });
    ran.length = 0;
    await recorder.run('hi');
    const middleware = [judges, replay({ from: lines, redact, onMiss: 'passthrough' })];
    const { messages } = await new Agent({ model: scriptedModel([]), tools: [sends], middleware }).run('hi');
    expect(messages[2]).toMatchObject({ role: 'tool', isError: true, content: [{ text: 'No pins.' }] });
    expect(ran).toEqual([]);
  });

  it('is found by its place among the calls, whatever stands before it, and recorded again from a replay', async () => {
    const preset = defineMiddleware({
      name: 'preset',
      beforeModel(ctx) {
        if (ctx.turn === 1)
          ctx.response = {
            role: 'assistant',
            content: [
              { type: 'text', text: 'one ' },
              { type: 'text', text: 'two' },
              { type: 'tool-call', id: 'a', name: 'send', arguments: '{"text":"fine"}' },
              { type: 'thinking', text: 'hm' },
              { type: 'tool-call', id: 'b', name: 'send', arguments: '{"text":"a secret"}' },
            ],
            stopReason: 'tool-calls',
          };
      },
    });
    const first: string[] = [];
    const model = scriptedModel([text('done')]);
    const middleware = [blocks, record({ to: first }), preset];
    await new Agent({ model, tools: [sends], middleware }).run('hi');
    ran.length = 0;
    const second: string[] = [];
    const between = [blocks, record({ to: second }), replay({ from: first, onMiss: 'passthrough' })];
    const { messages } = await new Agent({
      model: scriptedModel([]),
      tools: [sends],
      middleware: between,
    }).run('hi');
    expect(messages.filter(({ role }) => role === 'tool')).toMatchObject([
      { isError: false },
      { isError: true },
    ]);
    expect(JSON.parse(second[1]!).answer.verdicts).toEqual([
      { call: 1, deny: { by: 'blocks', reason: 'Refused by guard "blocks".' } },
    ]);
    expect(second[1]).toBe(first[1]);
    expect(ran).toEqual([]);
  });

  it('waits for people again where a guard wanted to ask, though it cannot see any more why', async () => {
    const cleans = defineMiddleware({ name: 'cleans', guard: { ...blocks.guard!, action: 'redact' } });
    const asks = defineMiddleware({
      name: 'asks',
      guard: {
        on: ['tool-args'],
        judge: ({ text }) =>
          text.includes('secret') ? { type: 'ask', request: { title: 'Send it?' } } : undefined,
      },
    });
    const lines: string[] = [];
    const outside = [asks, cleans];
    const recorder = new Agent({
      model: scriptedModel([toolCalls({ name: 'send', args: { text: 'secret' } }), text('done')]),
      tools: [sends],
      middleware: [...outside, record({ to: lines })],
    });
    ran.length = 0;
    const onRequest = () => ({ type: 'reject' as const, reason: 'No.' });
    await recorder.run('hi', { onRequest });
    const again = await live(lines, outside).run('hi');
    expect(again).toMatchObject({ status: 'suspended', pending: [{ title: 'Send it?' }] });
    const gone = await live(lines, [], [text('then')]).run('hi');
    expect(gone.messages[2]).toMatchObject({ role: 'tool', isError: true });
    expect(ran).toEqual([]);
  });

  it('is read from cassettes that do not say so', async () => {
    const { lines } = await recording(script(), 'hi', { outside: [blocks], tools: [sends] });
    const older = lines.map((line) => {
      const { answer, ...entry } = JSON.parse(line);
      if (!answer) return line;
      const { verdicts: _, ...rest } = answer;
      return JSON.stringify({ ...entry, answer: rest });
    });
    expect(older.join('\n')).not.toContain('verdicts');
    const run = replaying(older, { outside: [blocks], tools: [sends] }).agent.run('hi');
    await expect(run).rejects.toMatchObject({ code: 'CASSETTE_MISS' });
  });
});

describe('from', () => {
  let folder: string;
  beforeAll(() => {
    folder = mkdtempSync(join(tmpdir(), 'cassette-'));
  });
  afterAll(() => rmSync(folder, { recursive: true }));

  it('is a file, by its path or address', async () => {
    const { lines } = await recording(['ok']);
    const file = join(folder, 'ok.jsonl');
    writeFileSync(file, `${lines.join('\n')}\n`);
    for (const from of [file, pathToFileURL(file)]) {
      const agent = new Agent({ model: scriptedModel([]), middleware: [replay({ from })] });
      expect((await agent.run('hi')).text).toBe('ok');
    }
  });

  const header = '{"allium":"cassette","version":1}';
  it.each<[string, string[], string]>([
    ['something else', ['{"name":"x"}'], 'Line 1 of the cassette is not the header of a cassette'],
    [
      'a version of tomorrow',
      ['{"allium":"cassette","version":9}'],
      'says version 9, and only 1 can be read here',
    ],
    ['a conflict of git', [header, '<<<<<<< HEAD'], 'Line 2 of the cassette is not JSON'],
    [
      'a line of another kind',
      [header, '', '{"type":"note"}'],
      'Line 3 of the cassette is neither a model nor a tool call',
    ],
  ])('%s is refused with the line', async (_, from, message) => {
    const agent = new Agent({ model: scriptedModel([]), middleware: [replay({ from })] });
    const error = await agent.run('hi').catch((thrown) => thrown);
    expect(error).toMatchObject({ code: 'CASSETTE_INVALID' });
    expect(error.message).toContain(message);
  });

  /** What is said of a cassette in which the line of this type was edited. */
  async function complaint(type: 'model' | 'tool', edit: (entry: any) => object): Promise<string> {
    const { lines } = await recording(
      [toolCalls({ name: 'add', args: { a: 1, b: 2 } }), chunks('th', 'ree')],
      'hi',
      {
        tools: [add],
      },
    );
    const at = lines.findLastIndex((line) => line.includes(`"type":"${type}","run"`));
    const from = lines.with(at, JSON.stringify(edit(JSON.parse(lines[at]!))));
    const error = await replaying(from, { tools: [add] })
      .agent.run('hi')
      .catch((thrown) => thrown);
    expect(error).toMatchObject({ code: 'CASSETTE_INVALID', cause: { data: { line: at + 1 } } });
    return error.message;
  }

  it.each<[string, object, string]>([
    ['nothing', {}, 'Line 4 of the cassette has `answer` without one of `finish`, `error`, `stop`.'],
    [
      'an unknown end',
      { content: [], finish: 'enough' },
      '`answer` that no model gives. It yielded {"type":"finish"',
    ],
    ['text as content', { content: 'hi', finish: 'stop' }, '`answer.content` that is no list: "hi".'],
    [
      'no text',
      { content: [{ type: 'text' }], finish: 'stop' },
      '`answer.content[0].text` that is no text: undefined.',
    ],
    [
      'an unknown part',
      { content: [{ type: 'song' }], finish: 'stop' },
      'yielded {"type":"song"}: its `type` is',
    ],
    [
      'counts that are none',
      { content: [], finish: 'stop', usage: { inputTokens: 'x' } },
      'reported a usage that',
    ],
    [
      'a verdict on no call',
      {
        content: [{ type: 'text', text: 'x' }],
        finish: 'stop',
        verdicts: [{ call: 0, deny: { reason: 'No.' } }],
      },
      '`answer.verdicts` that are not about calls in it',
    ],
    ['a text as error', { error: 'no' }, '`answer.error` that is no object: "no".'],
  ])('an answer edited to %s is refused with line and field', async (_, answer, message) => {
    expect(await complaint('model', (entry) => ({ ...entry, answer }))).toContain(message);
  });

  it.each([[[2, 400]], [[4, 2]], [[-1]], [[0.5]], ['2']])(
    'cuts that are not places in the text are refused with line and field: %j',
    async (cuts) => {
      const content = [{ type: 'text', text: 'three', cuts }];
      const message = await complaint('model', (entry) => ({
        ...entry,
        answer: { content, finish: 'stop' },
      }));
      expect(message).toContain(
        `Line 4 of the cassette has \`answer.content[0].cuts\` that are not places in its text, in order: ${JSON.stringify(cuts)}.`,
      );
    },
  );

  it.each<[string, object, string]>([
    [
      'no outcome',
      { outcome: {} },
      'Line 3 of the cassette has `outcome` without one of `result`, `error`, `stop`,',
    ],
    [
      'a result without content',
      { outcome: { result: {} } },
      '`outcome.result` that no tool gives. Expected `content`',
    ],
    [
      'a text as question',
      { outcome: { suspend: 'Sure?' } },
      '`outcome.suspend` that is no object: "Sure?".',
    ],
    ['progress that is none', { updates: [{ text: 'x' }] }, '`updates` that are no list of content'],
  ])('a tool call edited to %s is refused with line and field', async (_, fields, message) => {
    expect(await complaint('tool', (entry) => ({ ...entry, ...fields }))).toContain(message);
  });

  it('may be edited: other texts, without their cuts, other results, another end of lines', async () => {
    const { lines } = await recording([chunks('th', 'ree')]);
    const edited = lines.map((line) => `${line.replace('three', 'four').replace(',"cuts":[2]', '')}\r`);
    const { agent } = replaying([`\ufeff${edited[0]}`, ...edited.slice(1)]);
    expect((await agent.run('hi')).text).toBe('four');
  });

  it('a request that goes on from one that was deleted is refused when it is looked at', async () => {
    const script = [toolCalls({ name: 'add', args: { a: 1, b: 2 } }), text('3')];
    const { lines } = await recording(script, 'hi', { tools: [add] });
    const agent = replaying(lines.toSpliced(1, 1), { tools: [add] }).agent;
    await expect(agent.run('hi')).rejects.toThrow(
      /Line 3 of the cassette goes on from the request "\w+", which is not/,
    );
  });

  it.each([
    [{}, 'Expected `from` to be the path of a cassette, or the lines of one, got undefined.'],
    [{ from: '' }, 'Expected `from` to be'],
    [{ from: [1] }, 'Expected `from` to be'],
    [{ from: [], onMiss: 'ignore' }, "Expected `onMiss` to be 'error' or 'passthrough', got \"ignore\"."],
    [
      { from: [], redact: 'x' },
      'Expected `redact` to be a list of texts and regular expressions, got "string".',
    ],
    [{ from: [], redact: [''] }, 'Expected `redact` to be'],
    [{ from: [], normalise: 'x' }, 'Expected `normalise` to be a function'],
    [{ onMis: 'error' }, 'Unknown option `onMis` of replay(). Did you mean `onMiss`?'],
  ])('refuses %j', (options, message) => {
    expect(() => replay(options as never)).toThrow(message);
  });
});

it('is warned of beside a redaction only where it records', () => {
  const redact: Middleware = { name: 'redact', traits: ['redacts'], wrapModel: (_, next) => next() };
  const hazards = (inner: Middleware) =>
    new Agent({ model: scriptedModel([]), middleware: [redact, inner] })
      .explain()
      .hazards.map(({ id }) => id);
  expect(hazards(replay({ from: [] }))).toEqual([]);
  expect(hazards(record({ to: [] }))).toEqual(['redaction-outside-sink']);
});
