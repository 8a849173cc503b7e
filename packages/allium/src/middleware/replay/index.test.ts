import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import {
  Agent,
  AlliumError,
  assistantMessage,
  defineMiddleware,
  type Guard,
  type Middleware,
  StopRun,
  textOf,
  tool,
  toolResult,
  window,
} from 'allium';
import { deferredTools } from 'allium/middleware/deferred-tools';
import { record } from 'allium/middleware/record';
import { replay } from 'allium/middleware/replay';
import { retry } from 'allium/middleware/retry';
import { todoList } from 'allium/middleware/todo-list';
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
import {
  add,
  eventsOf,
  recorded,
  recording,
  replaying,
  type Setup,
} from '../../../../../test/replay-setup.js';

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

  it('names the model that answered, if an inner layer had asked another one', async () => {
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

  it('has the todo list and the tools that its calls left', async () => {
    const refund = tool({ name: 'refund', description: '', input: z.object({}), execute: () => 'refunded' });
    const groups = [{ id: 'g', title: 'G', description: 'd', toolNames: ['refund'], load: () => [refund] }];
    const agentOf = (script: readonly Script[], last: Middleware) =>
      new Agent({
        model: scriptedModel(script),
        newId: () => 'one',
        middleware: [todoList(), deferredTools({ groups, strategy: 'inject' }), last],
      });
    const todos = (status: string) => ({
      name: 'write_todos',
      args: { todos: [{ content: 'Pay', status }] },
    });
    const lines: string[] = [];
    const live = await agentOf(
      [
        toolCalls(todos('in_progress'), { name: 'load_tools', args: { groups: ['g', 'none'] } }),
        toolCalls({ name: 'refund' }, todos('completed')),
        'Done.',
      ],
      record({ to: lines }),
    ).run('go');
    const replayed = await agentOf([], replay({ from: lines })).run('go');
    const said = ({ messages }: typeof live) => messages.map(({ role, content }) => ({ role, content }));
    expect(said(replayed)).toEqual(said(live));
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

  it('answers identical questions within one run the same way', async () => {
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

  it('is found by the request as `normalise` leaves it', async () => {
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

  it('are retried if they were retried when recorded, whatever the reason', async () => {
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

  it.each([
    ['judge', { judge: ({ text }) => (/bad/.test(text) ? { type: 'deny', reason: 'No.' } : undefined) }],
    [
      'find',
      { find: (text) => [...text.matchAll(/bad/g)].map(({ index }) => ({ start: index, end: index + 3 })) },
    ],
    [
      'find, streamed',
      {
        hold: window(8),
        find: (text) => [...text.matchAll(/bad/g)].map(({ index }) => ({ start: index, end: index + 3 })),
      },
    ],
  ] satisfies [string, Partial<Guard>][])(
    'an answer that a guard gave feedback about is refused again, and the model asked again (%s)',
    async (_, how) => {
      const guard = defineMiddleware({ name: 'no', guard: { on: ['output'], action: 'feedback', ...how } });
      const { lines, run } = await recording(['bad one', 'good one'], 'hi', { outside: [guard] });
      expect(run.result!.text).toBe('good one');
      expect(lines.join('\n')).not.toContain('bad');
      for (const outside of [[guard], []]) {
        const { agent, model } = replaying(lines, { outside });
        const again = await agent.run('hi');
        expect(again.messages.map(({ content }) => content)).toEqual(
          run.result!.messages.map(({ content }) => content),
        );
        expect(again).toMatchObject({ status: 'done', text: 'good one', turns: 1 });
        expect(model.requests).toEqual([]);
      }
    },
  );

  it.each(['with', 'without'])(
    'an answer that a guard sent back is sent back again, %s the guard',
    async (how) => {
      const guard = defineMiddleware({
        name: 'no-prices',
        guard: {
          on: ['output'],
          action: 'feedback',
          judge: ({ text }) => (text.includes('$') ? { type: 'deny', reason: 'No prices.' } : undefined),
        },
      });
      const live = await recording(['It costs $12.', 'It costs $9.', 'Ask our sales team.'], 'hi', {
        outside: [guard],
      });
      expect(live.lines.join('\n')).not.toContain('$');
      const replayed = replaying(live.lines, { outside: how === 'with' ? [guard] : [] });
      const { messages } = await replayed.agent.run('hi');
      expect(messages.map((message) => textOf(message))).toEqual([
        'hi',
        expect.stringContaining('No prices.'),
        expect.stringContaining('No prices.'),
        'Ask our sales team.',
      ]);
    },
  );

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
      'has version 9, but this release reads only version 1',
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
    [
      'nothing',
      {},
      'Line 4 of the cassette has `answer` without one of `finish`, `error`, `stop`, `feedback`.',
    ],
    [
      'an unknown end',
      { content: [], finish: 'enough' },
      '`answer` that no model gives. It yielded {"type":"finish"',
    ],
    ['text as content', { content: 'hi', finish: 'stop' }, '`answer.content` that is not a list: "hi".'],
    [
      'no text',
      { content: [{ type: 'text' }], finish: 'stop' },
      '`answer.content[0].text` that is not text: undefined.',
    ],
    [
      'an unknown part',
      { content: [{ type: 'song' }], finish: 'stop' },
      'yielded {"type":"song"}: its `type` must be',
    ],
    [
      'counts that are none',
      { content: [], finish: 'stop', usage: { inputTokens: 'x' } },
      'reported token usage that',
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
    ['a text as error', { error: 'no' }, '`answer.error` that is not an object: "no".'],
    ['feedback of nobody', { feedback: { reason: 'No.' } }, '`answer.feedback` that is not { reason, by }'],
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
      '`outcome.suspend` that is not an object: "Sure?".',
    ],
    ['progress that is none', { updates: [{ text: 'x' }] }, '`updates` that are not a list of content'],
  ])('a tool call edited to %s is refused with line and field', async (_, fields, message) => {
    expect(await complaint('tool', (entry) => ({ ...entry, ...fields }))).toContain(message);
  });

  it('may be edited: other texts, without their cuts, other results, another end of lines', async () => {
    const { lines } = await recording([chunks('th', 'ree')]);
    const edited = lines.map((line) => `${line.replace('three', 'four').replace(',"cuts":[2]', '')}\r`);
    const { agent } = replaying([`\ufeff${edited[0]}`, ...edited.slice(1)]);
    expect((await agent.run('hi')).text).toBe('four');
  });

  it('a request that builds on a deleted one is refused when it is read', async () => {
    const script = [toolCalls({ name: 'add', args: { a: 1, b: 2 } }), text('3')];
    const { lines } = await recording(script, 'hi', { tools: [add] });
    const agent = replaying(lines.toSpliced(1, 1), { tools: [add] }).agent;
    await expect(agent.run('hi')).rejects.toThrow(
      /Line 3 of the cassette continues from the request "\w+", which the cassette does not contain/,
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

it('a hazard beside a redaction is reported only if it records', () => {
  const redact: Middleware = { name: 'redact', traits: ['redacts'], wrapModel: (_, next) => next() };
  const hazards = (inner: Middleware) =>
    new Agent({ model: scriptedModel([]), middleware: [redact, inner] })
      .explain()
      .hazards.map(({ id }) => id);
  expect(hazards(replay({ from: [] }))).toEqual([]);
  expect(hazards(record({ to: [] }))).toEqual(['redaction-outside-sink']);
});
