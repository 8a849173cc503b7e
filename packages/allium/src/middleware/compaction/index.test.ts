import {
  Agent,
  defineMiddleware,
  type Middleware,
  memoryStore,
  type Store,
  syntheticUserMessage,
  textOf,
  tool,
  userMessage,
} from 'allium';
import { type CompactionOptions, type CompactionState, compaction } from 'allium/middleware/compaction';
import {
  collect,
  failWith,
  type Script,
  type ScriptedModel,
  scriptedModel,
  testMiddleware,
  text,
  toolCalls,
} from 'allium/testing';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';

/** One token per character, and four per message. */
const tokenCounter = (text: string) => text.length;
/** An answer of a model that reports no usage. */
const silent = (said = 'ok') => text(said, { inputTokens: 0, outputTokens: 0 });
const long = (n: number, length = 96) => `${n}:`.padEnd(length, 'x');
const summariser = (...script: Script[]) =>
  scriptedModel(script.length > 0 ? script : ['SUMMARY'], { id: 'summariser', repeat: true });

interface Setup {
  readonly model?: ScriptedModel;
  readonly summaryModel?: ScriptedModel;
  readonly store?: Store;
  readonly more?: readonly Middleware[];
}

/** A session whose every message takes 100 tokens, or about 6 for the answers. */
function setup(options: Partial<CompactionOptions> = {}, given: Setup = {}) {
  const { model = scriptedModel([silent()], { repeat: true }), summaryModel = summariser() } = given;
  const { store = memoryStore(), more = [] } = given;
  const made = compaction({
    summaryModel,
    maxTokens: 500,
    keepTailTokens: 150,
    minMessages: 2,
    tokenCounter,
    ...options,
  });
  let state: CompactionState | undefined;
  const look = defineMiddleware({
    name: 'look',
    afterModel: (ctx) => {
      state = made.stateOf(ctx);
    },
  });
  const agent = new Agent({ model, store, middleware: [made, look, ...more] });
  return {
    agent,
    model,
    summaryModel,
    store,
    session: agent.session('s'),
    state: () => state,
    /** Texts of the last request. */
    sent: () => model.requests.at(-1)!.messages.map(textOf),
  };
}

async function say(session: { run(text: string): Promise<unknown> }, from: number, to: number, length = 96) {
  for (let n = from; n <= to; n++) await session.run(long(n, length));
}

for (const [name, maxTokens] of [
  ['compaction', 1_000_000],
  ['compaction of everything', 1],
] as const) {
  testMiddleware(
    () =>
      compaction({
        summaryModel: summariser('S'),
        maxTokens,
        keepTailTokens: 5,
        minMessages: 1,
        tokenCounter,
      }),
    {
      name,
      neutral: () => compaction({ summaryModel: summariser(), maxTokens: 1_000_000, tokenCounter }),
      describe,
      it,
    },
  );
}

describe('compaction', () => {
  it('leaves a request alone until it is long', async () => {
    const { session, model, summaryModel } = setup();
    await say(session, 1, 4);
    expect(model.requests.at(-1)!.messages).toHaveLength(7);
    expect(summaryModel.requests).toHaveLength(0);
  });

  it('sends a summary and the latest messages once it is, and keeps the history as it was', async () => {
    const { session, sent, state, summaryModel } = setup();
    await say(session, 1, 5);
    expect(sent()).toEqual([expect.stringMatching(/summarised to save space.*\n\nSUMMARY$/s), 'ok', long(5)]);
    const history = await session.messages();
    expect(history.map(textOf)).toEqual([1, 2, 3, 4, 5].flatMap((n) => [long(n), 'ok']));
    const summarised = history.slice(0, 7).map(({ id }) => id);
    expect(state()).toEqual({
      summary: 'SUMMARY',
      lastSummarizedMessageId: summarised.at(-1),
      summarizedMessageIds: summarised,
      isFallback: false,
    });
    await session.run('Next.');
    expect(sent()).toEqual([expect.stringContaining('SUMMARY'), 'ok', long(5), 'ok', 'Next.']);
    expect(summaryModel.requests).toHaveLength(1);
  });

  it('asks for the summary at temperature 0, with headings, a budget and the transcript', async () => {
    const { session, summaryModel } = setup();
    await say(session, 1, 5);
    const { systemPrompt, settings, messages, tools } = summaryModel.requests[0]!;
    for (const heading of 'Goal Constraints Done Decisions Resolved Pending Artifacts Remaining'.split(' '))
      expect(systemPrompt).toContain(`## ${heading}`);
    expect(settings).toEqual({ temperature: 0, maxOutputTokens: 1024 });
    expect(tools).toEqual([]);
    expect(messages).toHaveLength(1);
    expect(textOf(messages[0]!)).toBe(
      `Transcript:\n\n${[1, 2, 3, 4].map((n) => `user: ${long(n)}`).join('\nassistant: ok\n')}`,
    );
  });

  it.each([
    [{}, 10_000, 1500],
    [{}, 100_000, 4096],
    [{ maxSummaryTokens: 2000 }, 100_000, 2000],
    [{ maxSummaryTokens: 8000 }, 100_000, 8000],
    [{ maxSummaryTokens: 50 }, 10_000, 50],
  ])('gives %j for about %d tokens a budget of %d', async (options, tokens, budget) => {
    const { session, summaryModel } = setup({ maxTokens: tokens + 100, keepTailTokens: 100, ...options });
    await say(session, 1, 3, (tokens - 18) / 2);
    const asked = summaryModel.requests[0]!.settings.maxOutputTokens!;
    expect(Math.abs(asked - budget)).toBeLessThanOrEqual(2);
  });

  it('merges the previous summary into the next', async () => {
    const { session, summaryModel, sent, state } = setup({}, { summaryModel: summariser('FIRST', 'SECOND') });
    await say(session, 1, 9);
    expect(summaryModel.requests).toHaveLength(2);
    const [first, second] = summaryModel.requests;
    expect(second!.systemPrompt).toContain('Merge the two');
    expect(first!.systemPrompt).not.toContain('Merge the two');
    expect(textOf(second!.messages[0]!)).toMatch(/^Summary of what came before:\n\nFIRST\n\nTranscript:\n\n/);
    expect(textOf(second!.messages[0]!)).not.toContain(long(1));
    expect(sent().filter((said) => said.includes('FIRST'))).toEqual([]);
    expect(sent()[0]).toContain('SECOND');
    expect(state()!.summarizedMessageIds.length).toBeGreaterThan(10);
  });

  it('takes the prompts it is given, and content as data', async () => {
    const wild = "$& $1 $$ {} {summary} %s </transcript> $'";
    const { session, summaryModel, sent } = setup(
      { summaryPrompt: 'P $& {}', existingSummarySuffix: 'SUFFIX $1 {existing}' },
      { summaryModel: summariser(`${wild} A`, `${wild} B`) },
    );
    for (let n = 1; n <= 9; n++) await session.run(`${wild}${long(n, 50)}`);
    const [first, second] = summaryModel.requests;
    expect(first!.systemPrompt).toBe('P $& {}');
    expect(second!.systemPrompt).toBe('P $& {}\n\nSUFFIX $1 {existing}');
    expect(textOf(first!.messages[0]!)).toContain(`user: ${wild}${long(1, 50)}`);
    expect(textOf(second!.messages[0]!)).toContain(`${wild} A`);
    expect(sent()[0]).toContain(`${wild} B`);
  });

  it.each([
    [true, '[read] 121 chars', '[read] short'],
    [false, `[read] ${'r'.repeat(121)}`, '[read] short'],
  ])('with pruneToolOutputs %s shows the summariser results as %s', async (pruneToolOutputs, ...lines) => {
    const texts = ['r'.repeat(121), 'short', 'x', 'x'];
    const input = z.object({});
    const read = tool({ name: 'read', description: 'Reads.', input, execute: () => texts.shift()! });
    const model = scriptedModel([...texts.map(() => toolCalls({ name: 'read' })), silent()], {
      usage: { inputTokens: 0 },
    });
    const summaryModel = summariser();
    const options = { summaryModel, maxTokens: 140, keepTailTokens: 30, minMessages: 5, pruneToolOutputs };
    const middleware = [compaction({ ...options, tokenCounter })];
    await new Agent({ model, tools: [read], middleware }).run('Read.');
    const asked = textOf(summaryModel.requests[0]!.messages[0]!);
    for (const line of lines) expect(asked.split('\n')).toContain(line);
    expect(asked).toContain('assistant calls read({})');
  });

  it('trusts the token count the model reported, plus what came after it', async () => {
    const reads = (inputTokens: number) => text('ok', { inputTokens, cacheRead: 40, cacheWrite: 60 });
    const model = scriptedModel([reads(1), reads(388), reads(389), reads(20)]);
    const { session, summaryModel } = setup({ keepTailTokens: 10, minMessages: 1 }, { model });
    await session.run('a');
    await session.run('b');
    // 388 + 40 + 60 were read, 6 are of the answer and 5 of the question: one is missing.
    await session.run('c');
    expect(summaryModel.requests).toHaveLength(0);
    await session.run('d');
    expect(summaryModel.requests).toHaveLength(1);
  });

  it('counts the system prompt and the tools as long as no model has said anything', async () => {
    const input = z.object({ a: z.string().describe('y'.repeat(200)) });
    const big = tool({ name: 'big', description: 'x'.repeat(300), input, execute: () => '' });
    const asked = async (more: object) => {
      const summaryModel = summariser();
      const options = { summaryModel, maxTokens: 500, keepTailTokens: 50, minMessages: 1, tokenCounter };
      const model = scriptedModel([silent()], { repeat: true });
      await say(new Agent({ model, middleware: [compaction(options)], ...more }).session('s'), 1, 2);
      return summaryModel.requests.length;
    };
    expect(await asked({})).toBe(0);
    expect(await asked({ tools: [big] })).toBe(1);
    expect(await asked({ systemPrompt: 'z'.repeat(300) })).toBe(1);
  });

  it('counts what middleware add to the system prompt, from the second request on', async () => {
    const added = defineMiddleware({
      name: 'added',
      transformSystemPrompt: (prompt) => `${prompt}${'z'.repeat(300)}`,
    });
    const one = setup({ keepTailTokens: 50, minMessages: 1 }, { more: [added] });
    await say(one.session, 1, 1);
    expect(one.summaryModel.requests).toHaveLength(0);
    await say(one.session, 2, 2);
    expect(one.summaryModel.requests).toHaveLength(1);
    const without = setup({ keepTailTokens: 50, minMessages: 1 });
    await say(without.session, 1, 2);
    expect(without.summaryModel.requests).toHaveLength(0);
  });

  it('keeps the last message of the history, whatever a middleware puts behind it', async () => {
    const note = syntheticUserMessage('A note.', { source: 'notes' });
    const notes: Middleware = { name: 'notes', transformContext: (messages) => [...messages, note] };
    const model = scriptedModel([silent()]);
    const options = {
      summaryModel: summariser(),
      maxTokens: 300,
      keepTailTokens: 0,
      minMessages: 1,
      tokenCounter,
    };
    const agent = new Agent({ model, middleware: [notes, compaction(options)] });
    await agent.run([long(1), long(2), long(3), long(4)]);
    const [summary, ...rest] = model.requests[0]!.messages.map(textOf);
    expect(summary).toContain('SUMMARY');
    expect(rest).toEqual([long(4), 'A note.']);
  });

  it('keeps half of maxTokens as the tail where keepTailTokens is not below it', async () => {
    const { session, sent } = setup({ keepTailTokens: 8000 });
    await say(session, 1, 5);
    // 250 tokens: two messages of 100 and the answers between and before them.
    expect(sent().slice(1)).toEqual(['ok', long(4), 'ok', long(5)]);
  });

  it('keeps one message at least, however long it is', async () => {
    const { session, sent } = setup({ keepTailTokens: 0 });
    await say(session, 1, 3);
    await session.run(long(4, 5000));
    expect(sent()).toEqual([expect.stringContaining('SUMMARY'), long(4, 5000)]);
  });

  it('does nothing for fewer than minMessages', async () => {
    const { session, summaryModel } = setup({ minMessages: 8 });
    await say(session, 1, 5);
    expect(summaryModel.requests).toHaveLength(0);
    await say(session, 6, 6);
    expect(summaryModel.requests).toHaveLength(1);
  });

  it('sends pinned messages as they are, with the calls and results they belong to', async () => {
    const { session, sent, model, summaryModel, state } = setup();
    await session.run([userMessage('Never forget.', { pinned: true })]);
    await say(session, 1, 5);
    expect(sent().slice(0, 2)).toEqual([expect.stringContaining('SUMMARY'), 'Never forget.']);
    expect(textOf(summaryModel.requests[0]!.messages[0]!)).not.toContain('Never forget.');
    expect(state()!.summarizedMessageIds).not.toContain(model.requests[0]!.messages[0]!.id);
    await say(session, 6, 12);
    expect(summaryModel.requests.length).toBeGreaterThan(1);
    expect(
      sent()
        .slice(0, 3)
        .filter((said) => said === 'Never forget.'),
    ).toHaveLength(1);
  });

  it('keeps messages that another middleware adds to every request', async () => {
    const recall = defineMiddleware({
      name: 'recall',
      transformContext: (messages) => [userMessage('I recall.'), ...messages, userMessage('The list.')],
    });
    const summaryModel = summariser();
    const made = compaction({
      summaryModel,
      maxTokens: 500,
      keepTailTokens: 150,
      minMessages: 2,
      tokenCounter,
    });
    const model = scriptedModel([silent()], { repeat: true });
    const session = new Agent({ model, middleware: [recall, made] }).session('s');
    await say(session, 1, 5);
    const sent = model.requests.at(-1)!.messages.map(textOf);
    expect(sent).toEqual([expect.stringContaining('SUMMARY'), 'I recall.', 'ok', long(5), 'The list.']);
    expect(textOf(summaryModel.requests[0]!.messages[0]!)).not.toContain('I recall.');
    await session.run('Next.');
    expect(model.requests.at(-1)!.messages.map(textOf)).toEqual([
      ...sent.slice(0, 4),
      'ok',
      'Next.',
      'The list.',
    ]);
    expect(summaryModel.requests).toHaveLength(1);
  });

  it('finds its place even if another middleware left out what it has summarised', async () => {
    const window = defineMiddleware({ name: 'window', transformContext: (messages) => messages.slice(-4) });
    const summaryModel = summariser();
    const options = { summaryModel, maxTokens: 450, keepTailTokens: 410, minMessages: 1, tokenCounter };
    const model = scriptedModel([silent()], { repeat: true });
    const session = new Agent({ model, middleware: [window, compaction(options)] }).session('s');
    await say(session, 1, 6, 396);
    expect(model.requests.at(-1)!.messages.map(textOf)).toEqual([
      expect.stringContaining('SUMMARY'),
      'ok',
      long(6, 396),
    ]);
  });

  it('reports what it did', async () => {
    const { agent } = setup({}, { summaryModel: summariser('SUMMARY', failWith(new Error('down'))) });
    const [first, second] = [agent.session('a'), agent.session('b')];
    await say(first, 1, 4);
    const { events } = await collect(first.stream(long(5)));
    const data = { messages: 7, tokensBefore: 524, isFallback: false, forced: false };
    expect(events).toContainEqual(
      expect.objectContaining({ type: 'custom', name: 'compaction', data: expect.objectContaining(data) }),
    );
    await say(second, 1, 4);
    const failed = await collect(second.stream(long(5)));
    expect(failed.events).toContainEqual(
      expect.objectContaining({ name: 'compaction_failed', data: { error: 'down', failures: 1 } }),
    );
  });

  it('names the model that it calls', () => {
    const { summaryModel } = setup();
    expect([...compaction({ summaryModel, maxTokens: 1 }).extraLlmCalls!()]).toEqual([summaryModel]);
  });

  it.each<[object, string]>([
    [{}, 'Expected `summaryModel` to be a model with provider, id and stream(), got undefined.'],
    [{ maxTokens: 0 }, 'Expected `maxTokens` to be an integer ≥ 1, got 0.'],
    [{ keepTailTokens: -1 }, 'Expected `keepTailTokens` to be an integer ≥ 0, got -1.'],
    [{ maxSummaryTokens: 0 }, 'Expected `maxSummaryTokens` to be an integer ≥ 1, got 0.'],
    [{ minMessages: 0.5 }, 'Expected `minMessages` to be an integer ≥ 1, got 0.5.'],
    [{ pruneToolOutputs: 1 }, 'Expected `pruneToolOutputs` to be true or false, got 1.'],
    [{ summaryPrompt: '' }, 'Expected `summaryPrompt` to be non-empty text, got "".'],
    [{ existingSummarySuffix: 1 }, 'Expected `existingSummarySuffix` to be text, got 1.'],
    [{ tokenCounter: 'x' }, 'Expected `tokenCounter` to be a function, got "x".'],
    [{ keepTail: 1 }, 'keepTail'],
  ])('refuses %j', (options, message) => {
    const needed = Object.keys(options).length === 0 ? {} : { summaryModel: summariser(), maxTokens: 5 };
    expect(() => compaction({ ...needed, ...options } as never)).toThrow(message);
  });
});
