import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import {
  Agent,
  type AgentOptions,
  defineMiddleware,
  type Middleware,
  tool,
  toolResult,
  toolSpec,
  window,
} from 'allium';
import { record } from 'allium/middleware/record';
import { replay } from 'allium/middleware/replay';
import { retry } from 'allium/middleware/retry';
import {
  chunks,
  collect,
  failWith,
  fakeClock,
  hang,
  type Script,
  scriptedModel,
  testMiddleware,
  text,
  toolCalls,
} from 'allium/testing';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { z } from 'zod';

testMiddleware(() => record({ to: [] }), { name: 'record', describe, it });

const anything = z.looseObject({});
const echo = tool({
  name: 'echo',
  description: 'Echoes.',
  input: anything,
  execute: (args) => JSON.stringify(args),
});

type Setup = Omit<AgentOptions, 'model' | 'middleware'> & {
  readonly outside?: readonly Middleware[];
  readonly options?: Omit<Parameters<typeof record>[0], 'to'>;
};

async function recorded(script: readonly Script[], input: string, setup: Setup = {}) {
  const { outside = [], options = {}, ...rest } = setup;
  const lines: string[] = [];
  const middleware = [...outside, record({ to: lines, ...options })];
  const run = await collect(new Agent({ ...rest, model: scriptedModel(script), middleware }).stream(input));
  return { lines, run, entries: lines.slice(1).map((line) => JSON.parse(line)), file: lines.join('\n') };
}

describe('a cassette', () => {
  it('is a header and a line for each call, with its keys in a fixed order', async () => {
    const script = [
      chunks('Let ', 'me.', { type: 'tool-call', id: 'a', name: 'echo', arguments: '{"b":1,"a":2}' }),
      text('Done.'),
    ];
    const { lines } = await recorded(script, 'Go.', { tools: [echo], systemPrompt: 'Be brief.' });
    const keys = lines.slice(1).map((line) => (JSON.parse(line) as { key: string }).key);
    const schema = JSON.stringify(toolSpec(echo).inputSchema);
    expect(JSON.parse(schema)).toEqual(JSON.parse(lines[1]!).request.tools[0].inputSchema);
    const inputSchema = /"inputSchema":(\{.*?\})\}\]/.exec(lines[1]!)?.[1];
    expect(lines).toEqual([
      '{"allium":"cassette","version":1}',
      `{"type":"model","run":1,"turn":1,"key":"${keys[0]}","request":{"model":"test/scripted","systemPrompt":"Be brief.","messages":[{"role":"user","content":[{"type":"text","text":"Go."}]}],"tools":[{"name":"echo","description":"Echoes.","inputSchema":${inputSchema}}]},"answer":{"content":[{"type":"text","text":"Let me.","cuts":[4]},{"type":"tool-call","id":"a","name":"echo","arguments":"{\\"b\\":1,\\"a\\":2}"}],"finish":"tool-calls","usage":{"inputTokens":10,"outputTokens":5,"totalTokens":15}}}`,
      `{"type":"tool","run":1,"turn":1,"call":0,"key":"${keys[1]}","tool":"echo","args":{"a":2,"b":1},"outcome":{"result":{"content":"{\\"b\\":1,\\"a\\":2}"}}}`,
      `{"type":"model","run":1,"turn":2,"key":"${keys[2]}","request":{"after":"${keys[0]}","messages":[{"role":"assistant","content":[{"type":"text","text":"Let me."},{"type":"tool-call","name":"echo","arguments":"{\\"b\\":1,\\"a\\":2}"}]},{"role":"tool","toolName":"echo","content":[{"type":"text","text":"{\\"b\\":1,\\"a\\":2}"}],"isError":false}]},"answer":{"content":[{"type":"text","text":"Done."}],"finish":"stop","usage":{"inputTokens":10,"outputTokens":5,"totalTokens":15}}}`,
    ]);
  });

  it('is the same text whenever the same run is recorded, however long tools take', async () => {
    const files = new Set<string>();
    for (let repeat = 0; repeat < 10; repeat++) {
      const slow = tool({
        name: 'slow',
        description: 'Waits.',
        input: z.object({ n: z.number() }),
        async execute({ n }) {
          for (let i = 0; i < (n * 7 + repeat * 5) % 6; i++) await new Promise((done) => setImmediate(done));
          return n;
        },
      });
      const calls = Array.from({ length: 6 }, (_, n) => ({ name: 'slow', args: { n }, id: `c${n}` }));
      files.add((await recorded([toolCalls(...calls), text('ok')], 'go', { tools: [slow] })).file);
    }
    expect(files.size).toBe(1);
  });

  it('numbers runs, and writes only what is new since an earlier request of the run', async () => {
    const lines: string[] = [];
    const agent = new Agent({
      model: scriptedModel(['a', 'b', 'c']),
      tools: [echo],
      middleware: [record({ to: lines })],
    });
    await agent.run('one');
    await agent.run('two');
    const entries = lines.slice(1).map((line) => JSON.parse(line));
    expect(entries.map(({ run }) => run)).toEqual([1, 2]);
    expect(entries.map(({ request }) => request.after)).toEqual([undefined, undefined]);
  });

  it('grows with what is new only', async () => {
    const turns = 40;
    const script = Array.from({ length: turns }, () => toolCalls({ name: 'echo', args: { x: 1 } }));
    const { lines } = await recorded([...script, text('ok')], 'go', { tools: [echo] });
    const sizes = lines.filter((line) => line.includes('"type":"model"')).map((line) => line.length);
    expect(sizes[turns - 1]).toBeLessThan(sizes[3]! + 20);
  });

  it('holds errors with name, message, status and code, after what had been streamed', async () => {
    const error = Object.assign(new TypeError('Bad'), {
      status: 400,
      code: 'bad_request',
      body: { secret: 1 },
    });
    const { entries } = await recorded([failWith(error, 'Hel', 'lo')], 'hi');
    expect(entries[0].answer).toEqual({
      content: [{ type: 'text', text: 'Hello', cuts: [3] }],
      error: { name: 'TypeError', message: 'Bad', code: 'bad_request', status: 400 },
    });
  });

  it('holds each attempt of an outer retry, and only the last of an inner one', async () => {
    const down = Object.assign(new Error('Down'), { status: 503 });
    const kinds: unknown[] = [];
    for (const last of [true, false]) {
      const clock = fakeClock();
      const lines: string[] = [];
      const tries = retry({ clock, jitter: 'none' });
      const agent = new Agent({
        model: scriptedModel([failWith(down, 'x'), text('ok')]),
        middleware: last ? [tries, record({ to: lines })] : [record({ to: lines }), tries],
      });
      const run = agent.run('hi');
      await clock.advance(1000);
      await run;
      const entries = lines.slice(1).map((line) => JSON.parse(line));
      kinds.push(entries.map(({ answer }) => Object.keys(answer)));
      // The same question again need not be told again.
      if (last) expect(entries[1].request).toEqual({ after: entries[0].key, messages: [] });
    }
    expect(kinds).toEqual([
      [
        ['content', 'error'],
        ['content', 'finish', 'usage'],
      ],
      [['content', 'finish', 'usage']],
    ]);
  });

  it('holds the calls other middleware make, those of a guard included', async () => {
    const side = scriptedModel(['fine'], { id: 'side', repeat: true });
    const asks = defineMiddleware({
      name: 'asks',
      extraLlmCalls: () => [side],
      async beforeModel(ctx) {
        await ctx.generate(side, { messages: 'summarise', systemPrompt: 'Short.' });
      },
      guard: {
        on: ['output'],
        async judge(subject, ctx) {
          await ctx.context.generate(side, { messages: `judge ${subject.text}` });
        },
      },
    });
    const { entries } = await recorded(['ok'], 'hi', { outside: [asks] });
    // The guard judges what the middleware got, and then what the user gets.
    const models = entries.map(({ request }) => request.model);
    expect(models).toEqual(['test/side', 'test/side', 'test/scripted', 'test/side']);
  });

  it('holds neither aborted calls nor those that an outer layer answers itself', async () => {
    const lines: string[] = [];
    const abort = new AbortController();
    const agent = new Agent({ model: scriptedModel([hang('Hel')]), middleware: [record({ to: lines })] });
    const run = agent.run('hi', { signal: abort.signal }).catch((error) => error);
    await new Promise((resolve) => setImmediate(resolve));
    abort.abort();
    expect(await run).toMatchObject({ code: 'ABORTED' });
    expect(lines).toEqual([]);
  });

  it('holds an answer from a cache further in, in one piece', async () => {
    const lines: string[] = [];
    const cached = defineMiddleware({
      beforeModel(ctx) {
        ctx.response = { role: 'assistant', content: [{ type: 'text', text: 'cached' }], stopReason: 'stop' };
      },
    });
    const agent = new Agent({ model: scriptedModel([]), middleware: [record({ to: lines }), cached] });
    await agent.run('hi');
    expect(JSON.parse(lines[1]!).answer).toEqual({
      content: [{ type: 'text', text: 'cached', block: '#0' }],
      finish: 'stop',
    });
  });
});

describe('guards', () => {
  const digits = (on: 'output' | 'request' | 'tool-args' | 'tool-result' | 'thinking') =>
    defineMiddleware({
      name: `no-digits-${on}`,
      guard: {
        on: [on],
        hold: window(10),
        find: (given) =>
          [...given.matchAll(/\d{4,}/g)].map((m) => ({ start: m.index, end: m.index + m[0].length })),
      },
    });
  const outside = [
    digits('output'),
    digits('request'),
    digits('tool-args'),
    digits('tool-result'),
    digits('thinking'),
  ];

  it('keep what they removed out of it: prompt, answer, thinking, arguments, result, details, progress', async () => {
    const leaks = tool({
      name: 'leaks',
      description: 'Leaks.',
      input: anything,
      execute(_, ctx) {
        ctx.update('at 44441');
        return toolResult({ content: 'is 55551', details: { pin: '66661' } });
      },
    });
    const script = [
      chunks(
        { type: 'thinking', text: 'think 111' },
        { type: 'thinking', text: '11, yes', signature: 'sealed' },
        'say 22',
        '221, ',
        'ok',
        { type: 'tool-call', id: 'a', name: 'leaks', arguments: '{"pin":' },
        { type: 'tool-call-delta', id: 'a', arguments: '"33331"}' },
      ),
      text('ok'),
    ];
    const setup = { outside, tools: [leaks], systemPrompt: 'told 88881' };
    const { file, entries } = await recorded(script, 'asked 77771', setup);
    expect(file).not.toMatch(/11111|22221|33331|44441|55551|66661|77771|88881|sealed/);
    expect(entries[0].answer.content).toEqual([
      { type: 'thinking', text: 'think [redacted], yes', redacted: true, cuts: [16] },
      { type: 'text', text: 'say [redacted], ok', cuts: [14, 16] },
      { type: 'tool-call', id: 'a', name: 'leaks', arguments: '{"pin":"[redacted]"}', cuts: [7] },
    ]);
    expect(entries[1].outcome.result).toEqual({ content: 'is [redacted]', details: { pin: '[redacted]' } });
  });

  it('keep out an answer that broke off before they had seen all of it', async () => {
    const { file, entries } = await recorded([failWith(new Error('Down'), 'my pin 12', '345')], 'hi', {
      outside,
    });
    expect(file).not.toContain('my pin');
    expect(entries[0].answer).toEqual({ error: { name: 'Error', message: 'Down' } });
  });

  const breaks = (error: unknown) =>
    tool({
      name: 'breaks',
      description: 'Breaks.',
      input: anything,
      execute() {
        throw error;
      },
    });
  const failure = Object.assign(new TypeError('pin 12345', { cause: new Error('cause 12345') }), {
    code: 'E_PIN',
    status: 503,
    body: 'body 12345',
  });

  it('keep out what they find in the error of a tool, and the model reads the same on replay', async () => {
    const { file, entries, lines, run } = await recorded(
      [toolCalls({ name: 'breaks', args: {} }), text('sorry')],
      'hi',
      { outside, tools: [breaks(failure)] },
    );
    expect(file).not.toContain('12345');
    expect(entries[1].outcome.error).toEqual({
      name: 'TypeError',
      message: 'pin [redacted]',
      code: 'E_PIN',
      status: 503,
    });
    const middleware = [...outside, replay({ from: lines })];
    const agent = new Agent({ model: scriptedModel([]), tools: [breaks(failure)], middleware });
    const { messages } = await agent.run('hi');
    expect(messages.map(({ content }) => content)).toEqual(
      run.result!.messages.map(({ content }) => content),
    );
  });

  it('let a clean error through whole, and remove only the cause if that is bad', async () => {
    const call = [toolCalls({ name: 'breaks', args: {} }), text('sorry')];
    const fine = Object.assign(new Error('Down', { cause: new Error('Cable') }), { body: 'none' });
    const whole = await recorded(call, 'hi', { outside, tools: [breaks(fine)] });
    expect(whole.entries[1].outcome.error).toEqual({
      name: 'Error',
      message: 'Down',
      body: 'none',
      cause: { name: 'Error', message: 'Cable' },
    });
    const caused = new Error('Down', { cause: new Error('cause 12345') });
    const { entries } = await recorded(call, 'hi', { outside, tools: [breaks(caused)] });
    expect(entries[1].outcome.error).toEqual({ name: 'Error', message: 'Down' });
  });

  it('leave only the refusal of an error they refuse, and the stop if they stop the run', async () => {
    const call = [toolCalls({ name: 'breaks', args: {} }), text('sorry')];
    for (const action of ['block', 'stop'] as const) {
      const guard = { ...digits('tool-result').guard!, action };
      const setup = { outside: [defineMiddleware({ name: 'no', guard })], tools: [breaks(failure)] };
      const { file, entries, lines, run } = await recorded(call, 'hi', setup);
      expect(file).not.toContain('12345');
      expect(entries[1].outcome).toEqual(
        action === 'block'
          ? { result: { content: 'Refused by guard "no".', isError: true } }
          : { stop: { reason: 'guardrail', message: 'Stopped by guard "no".' } },
      );
      const middleware = [...setup.outside, replay({ from: lines })];
      const agent = new Agent({ model: scriptedModel([]), tools: setup.tools, middleware });
      const { messages, stop } = await agent.run('hi');
      expect(run.result!.stop).toMatchObject(stop);
      expect(messages.map(({ content }) => content)).toEqual(
        run.result!.messages.map(({ content }) => content),
      );
    }
  });

  it('leave only the kind of a model error that quotes what they find', async () => {
    const { file, entries } = await recorded([failWith(failure)], 'hi', { outside });
    expect(file).not.toContain('12345');
    expect(entries[0].answer).toEqual({
      error: { name: 'TypeError', message: 'E_PIN', code: 'E_PIN', status: 503 },
    });
  });

  it('keep out what an outer middleware wrote into the arguments, and that replays', async () => {
    const assigning = defineMiddleware({
      name: 'assigning',
      beforeTool(ctx) {
        ctx.args = { pin: '12345' };
      },
    });
    const setup = { outside: [...outside, assigning], tools: [echo] };
    const { file, entries, lines, run } = await recorded(
      [toolCalls({ name: 'echo', args: {} }), text('done')],
      'hi',
      setup,
    );
    expect(file).not.toContain('12345');
    expect(entries[1].args).toEqual({ pin: '[redacted]' });
    const middleware = [...setup.outside, replay({ from: lines })];
    const { messages } = await new Agent({ model: scriptedModel([]), tools: [echo], middleware }).run('hi');
    expect(messages.map(({ content }) => content)).toEqual(
      run.result!.messages.map(({ content }) => content),
    );
  });

  it('search the events of sub-agents as they do without a recorder, and report nothing about them', async () => {
    const guard = defineMiddleware({
      name: 'no',
      guard: {
        on: ['tool-result'],
        find: (said) => [...said.matchAll(/SECRET/g)].map(({ index }) => ({ start: index, end: index + 6 })),
      },
    });
    const agentOf = () => {
      const call = { type: 'tool-call', id: 'c', name: 'echo', arguments: '{"a":"SEC\\u0052ET"}' } as const;
      const helper = new Agent({ model: scriptedModel([chunks('SECRET', call), 'Found.']), tools: [echo] });
      return new Agent({
        model: scriptedModel([toolCalls({ name: 'help', args: { prompt: 'Look.' } }), 'done']),
        tools: [helper.asTool({ name: 'help', description: 'Helps.' })],
        middleware: [guard, record({ to: [] })],
      });
    };
    const { events, result } = await collect(agentOf().stream('hi'));
    const forwarded = JSON.stringify(events.filter(({ type }) => type === 'tool_execution_update'));
    expect(forwarded).toContain('[redacted]');
    expect(forwarded).not.toMatch(/SECRET|u0052/);
    expect(result!.changes).toEqual((await agentOf().run('hi')).changes);
  });

  it('leave only the refusal of a refused answer', async () => {
    const no = defineMiddleware({
      name: 'no',
      guard: { on: ['output'], judge: () => ({ type: 'deny', reason: 'Not that.' }) },
    });
    const { entries } = await recorded(['forbidden'], 'hi', { outside: [no] });
    expect(entries[0].answer).toEqual({ stop: { reason: 'guardrail', message: 'Not that.' } });
  });

  it('a cassette made with guards replays under them', async () => {
    const setup = { outside, tools: [echo] };
    const script = [
      chunks('pin 12', '345 ok', { type: 'tool-call', id: 'a', name: 'echo', arguments: '{"pin":"9876"}' }),
      text('done'),
    ];
    const { lines, run } = await recorded(script, 'asked 77771', setup);
    const model = scriptedModel([]);
    const agent = new Agent({ model, tools: [echo], middleware: [...outside, replay({ from: lines })] });
    const result = await agent.run('asked 77771');
    expect(result.messages.map(({ content }) => content)).toEqual(
      run.result!.messages.map(({ content }) => content),
    );
  });
});

describe('secrets', () => {
  const env = {
    CASSETTE_TEST_API_KEY: 'sk-planted-0001',
    cassette_test_token: 'tok planted/0002+=',
    CASSETTE_TEST_SECRET_JSON: 'a"quoted\\planted\n0003',
    CASSETTE_TEST_PIN_KEY: '90210443',
  };
  beforeEach(() => {
    Object.assign(process.env, env);
  });
  afterEach(() => {
    for (const name of Object.keys(env)) delete process.env[name];
  });
  const planted = [
    ...Object.values(env),
    'Authorization: Bearer planted.0004.jwt',
    '{"authorization":"Basic cGxhbnRlZDA1"}',
    "-H 'Proxy-Authorization: planted-0006-x'",
    'a bearer planted0007token',
    'card planted-0008',
    'literal planted 0009',
  ];
  const redact = [/card [\w-]+/, 'literal planted 0009'];
  /** What may not be found, as it would stand in a file. */
  const traces = /planted|cGxhbnRlZDA1|90210443|quoted/;
  const all = planted.join(' ; ');

  it('are not in the file: prompt, arguments, result', async () => {
    const headers = { Authorization: 'planted-0010', 'x-api-key': 'planted-0011', accept: 'json' };
    const leaks = tool({
      name: 'leaks',
      description: `Do not tell ${env.CASSETTE_TEST_API_KEY}.`,
      input: anything,
      async execute(args, ctx) {
        await ctx.update(all, { headers });
        return toolResult({
          content: JSON.stringify({ args, all }),
          details: { headers, nested: [planted, 90210443] },
        });
      },
    });
    const fails = tool({
      name: 'fails',
      description: 'Fails.',
      input: anything,
      execute: () => {
        throw Object.assign(new Error(all, { cause: new Error(all) }), {
          url: all,
          [env.CASSETTE_TEST_API_KEY]: 1,
        });
      },
    });
    const pieces = all.match(/[\s\S]{1,3}/g)!;
    const args = JSON.stringify({ all, pin: 90210443, list: planted, [env.CASSETTE_TEST_API_KEY]: true });
    const script = [
      chunks(
        ...pieces.map((piece) => ({ type: 'thinking', text: piece }) as const),
        ...pieces.map((piece) => ({ type: 'text', text: piece }) as const),
        { type: 'tool-call', id: 'a', name: 'leaks', arguments: '' },
        ...args
          .match(/[\s\S]{1,5}/g)!
          .map((piece) => ({ type: 'tool-call-delta', id: 'a', arguments: piece }) as const),
        { type: 'tool-call', id: 'b', name: 'fails', arguments: args },
        { type: 'tool-call', id: 'c', name: 'leaks', arguments: `{"broken": "${env.CASSETTE_TEST_API_KEY}` },
        { type: 'finish', reason: 'tool-calls', metadata: { headers, all } },
      ),
      failWith(Object.assign(new Error(all), { requestId: env.CASSETTE_TEST_API_KEY }), all),
    ];
    const settings = { provider: { test: { headers, note: all } } };
    const setup = { tools: [leaks, fails], systemPrompt: all, settings, options: { redact } };
    const { file, entries, run } = await recorded(script, `Prompt ${all}`, setup);
    expect(run.error?.code).toBe('MODEL_ERROR');
    expect(entries.map(({ type }) => type)).toEqual(['model', 'tool', 'tool', 'model']);
    expect(file.match(traces)).toBeNull();
    expect(file).toContain('Prompt [redacted] ; [redacted] ; ');
    expect(file).toContain('"accept":"json"');
    expect(entries[1].args.pin).toBe('[redacted]');
  });

  it('are gone from the file, and the run replays all the same, also with other secrets', async () => {
    const script = () => [
      chunks(`Use ${env.CASSETTE_TEST_API_KEY.slice(0, 5)}`, env.CASSETTE_TEST_API_KEY.slice(5), ' now.', {
        type: 'tool-call',
        id: 'a',
        name: 'echo',
        arguments: JSON.stringify({ key: env.CASSETTE_TEST_API_KEY }),
      }),
      text('ok'),
    ];
    const ask = () => `My key is ${process.env.CASSETTE_TEST_API_KEY}.`;
    const { lines, run, entries } = await recorded(script(), ask(), { tools: [echo] });
    expect(run.result?.text).toBe('ok');
    expect(entries[0].answer.content[0]).toEqual({ type: 'text', text: 'Use [redacted] now.', cuts: [14] });
    process.env.CASSETTE_TEST_API_KEY = 'another-secret-0099';
    const agent = new Agent({
      model: scriptedModel([]),
      tools: [echo],
      middleware: [replay({ from: lines })],
    });
    expect((await agent.run(ask())).text).toBe('ok');
  });

  it.each<[string, () => unknown]>([
    ['a long object', () => ({ why: 'x'.repeat(90), key: env.CASSETTE_TEST_API_KEY })],
    ['an object with headers', () => ({ headers: { cookie: ['id=1'], authorization: 'Bearer planted' } })],
    ['nothing', () => undefined],
    ['no number', () => Number.NaN],
  ])('are not in a thrown value that is not an error, and the run replays: %s', async (_, thrown) => {
    const fails = tool({
      name: 'fails',
      description: 'Fails.',
      input: anything,
      execute: () => {
        throw thrown();
      },
    });
    const setup = { tools: [fails] };
    const { lines, file, run } = await recorded([toolCalls({ name: 'fails' }), text('ok')], 'go', setup);
    expect(run.result?.text).toBe('ok');
    expect(file).not.toMatch(/sk-plan|Bearer plan/);
    const middleware = [replay({ from: lines })];
    const agent = new Agent({ ...setup, model: scriptedModel([]), middleware });
    expect((await agent.run('go')).text).toBe('ok');
  });

  it('are only long enough values, of variables named like secrets', async () => {
    process.env.CASSETTE_TEST_SHORT_KEY = 'short-1';
    process.env.CASSETTE_TEST_OTHER = 'other-value-1';
    try {
      const { file } = await recorded(
        ['ok'],
        'short-1 other-value-1, bearer instruments and authorization: none',
      );
      expect(file).toContain('short-1 other-value-1, bearer instruments and authorization: none');
    } finally {
      delete process.env.CASSETTE_TEST_SHORT_KEY;
      delete process.env.CASSETTE_TEST_OTHER;
    }
  });
});

describe('to', () => {
  let folder: string;
  beforeAll(() => {
    folder = mkdtempSync(join(tmpdir(), 'cassette-'));
  });
  afterAll(() => rmSync(folder, { recursive: true }));
  const run = (to: Parameters<typeof record>[0]['to'], input = 'hi') =>
    new Agent({ model: scriptedModel(['ok']), middleware: [record({ to })] }).run(input);

  it('is a file in a new folder, started again with the first call', async () => {
    const file = join(folder, 'deep/er/run.jsonl');
    await run(file, 'one');
    const first = readFileSync(file, 'utf8');
    await run(pathToFileURL(file), 'two');
    const second = readFileSync(file, 'utf8');
    expect(first).toMatch(/^\{"allium":"cassette","version":1\}\n\{"type":"model".*"one".*\}\n$/);
    expect(second).toMatch(/^\{"allium":"cassette","version":1\}\n\{"type":"model".*"two".*\}\n$/);
  });

  it('touches nothing before there is something to write', () => {
    const file = join(folder, 'kept.jsonl');
    writeFileSync(file, 'kept');
    record({ to: file });
    expect(readFileSync(file, 'utf8')).toBe('kept');
  });

  it('may be an async function: lines come one by one, and the run waits', async () => {
    const lines: string[] = [];
    let active = 0;
    const to = async (line: string) => {
      expect(++active).toBe(1);
      await new Promise((resolve) => setImmediate(resolve));
      lines.push(line);
      active--;
    };
    const calls = [1, 2, 3].map((x) => ({ name: 'echo', args: { x }, id: `c${x}` }));
    const model = scriptedModel([toolCalls(...calls), text('ok')]);
    await new Agent({ model, tools: [echo], middleware: [record({ to })] }).run('hi');
    expect(lines.map((line) => JSON.parse(line).type)).toEqual([
      undefined,
      'model',
      'tool',
      'tool',
      'tool',
      'model',
    ]);
  });

  it('that cannot be written fails the run', async () => {
    await expect(run(() => Promise.reject(new Error('disk full')))).rejects.toMatchObject({
      code: 'MIDDLEWARE_ERROR',
      cause: { message: 'disk full' },
    });
  });

  it('is a file that cannot be written: the run fails before the model is asked', async () => {
    const model = scriptedModel([text('ok')]);
    const agent = new Agent({ model, middleware: [record({ to: folder })] });
    await expect(agent.run('hi')).rejects.toMatchObject({ code: 'STORE_FAILED' });
    expect(model.requests).toEqual([]);
  });

  it.each([
    [
      undefined,
      'Expected `options` to be an object with to, redact, normalise, name for record(), got undefined.',
    ],
    [{}, 'Expected `to` to be the path of a file, a list, or a function that takes a line, got undefined.'],
    [{ to: '' }, 'Expected `to` to be the path of a file, a list, or a function that takes a line, got "".'],
    [{ to: [], redact: [7] }, 'Expected `redact` to be a list of texts and regular expressions, got "list".'],
    [{ to: [], normalise: 1 }, 'Expected `normalise` to be a function, got 1.'],
    [{ to: [], redacts: [] }, 'Unknown option `redacts` of record(). Did you mean `redact`?'],
  ])('refuses %j', (options, message) => {
    expect(() => record(options as never)).toThrow(message);
  });
});
