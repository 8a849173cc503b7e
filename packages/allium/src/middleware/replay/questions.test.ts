// Answers of people, and calls that guards refused, in a recording.

import {
  Agent,
  type AgentEvent,
  type AgentOptions,
  defineMiddleware,
  type Middleware,
  type RunResult,
  tool,
} from 'allium';
import { record } from 'allium/middleware/record';
import { replay } from 'allium/middleware/replay';
import { memoryStore } from 'allium/stores/memory';
import { type Collected, collect, type Script, scriptedModel, text, toolCalls } from 'allium/testing';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { eventsOf, recording, replaying } from '../../../../../test/replay-setup.js';

function withoutVerdicts(events: readonly unknown[]): unknown {
  const kept = (events as AgentEvent[]).filter(({ type }) => type !== 'guard_verdict');
  return JSON.parse(JSON.stringify(kept), (key, value) =>
    key === 'changes' ? value.filter(({ verdict }: { verdict?: unknown }) => !verdict) : value,
  );
}

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

  it('are all asked if they are answered in place', async () => {
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

  it.each([true, false])(
    'leave the failure of a call beside them recorded (a guard judges it: %s)',
    async (guarded) => {
      const judge = defineMiddleware({ name: 'judge', guard: { on: ['tool-result'], find: () => [] } });
      const around = (last: Middleware) => (guarded ? [judge, last] : [last]);
      const failing = tool({
        name: 'failing',
        description: 'Fails.',
        input: z.object({}),
        execute: () => Promise.resolve().then(() => Promise.reject(new Error('Sold out.'))),
      });
      const asking = toolCalls({ name: 'survey', args: { about: 'A' } }, { name: 'failing' });
      const lines: string[] = [];
      const tools = [survey, failing];
      const models = scriptedModel([asking, text('Thanks.')]);
      const agent = new Agent({ model: models, tools, middleware: around(record({ to: lines })) });
      const run = await answered(() => agent);
      expect(run.text).toBe('Thanks.');
      const again = new Agent({
        model: scriptedModel([]),
        tools,
        middleware: around(replay({ from: lines })),
      });
      expect(await answered(() => again)).toMatchObject({ text: 'Thanks.', error: undefined });
    },
  );

  const oneByOne = ({ pending }: Pick<RunResult, 'pending'>) => answerAll({ pending: pending.slice(0, 1) });

  it('wait again if they waited for the answers to others', async () => {
    const { lines, run } = await recordedSurvey(['A', 'B'], oneByOne);
    expect(run.parts.length).toBeGreaterThan(3);
    const agent = replayingSurvey(lines);
    expect(await answered(() => agent, oneByOne)).toEqual(run);
    const store = memoryStore();
    expect(await answered(() => replayingSurvey(lines, { store }), oneByOne)).toEqual(run);
  });

  it('are asked once each, even if people now answer in a different order', async () => {
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

  it('is refused even if the guard is gone', async () => {
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

  it('is refused again if `redact` removed what a guard judged', async () => {
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

  it('waits for people again if a guard wanted to ask, even if the reason is no longer visible', async () => {
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

  it('is recognised in older cassettes that do not mark it', async () => {
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
