// A call that is not in the recording.

import {
  Agent,
  assistantMessage,
  defineMiddleware,
  type Middleware,
  type ModelResponse,
  type Next,
  type ToolResult,
  tool,
  toolResult,
} from 'allium';
import { record } from 'allium/middleware/record';
import { replay } from 'allium/middleware/replay';
import { scriptedModel, text, toolCalls } from 'allium/testing';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { add, recording, replaying } from '../../../../../test/replay-setup.js';

// ── Help ─────────────────────────────────────────────────────────────────────────────────────────────────────

const noop = () => {};

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

  it('compares whole requests, although later lines hold only what is new', async () => {
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

  it('is reported even if an outer layer answers in its place', async () => {
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
  ])('a damaged cassette is reported even if a layer answers in the place %s', (_, hides) => {
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
    await expect(replaying([]).agent.run('hi')).rejects.toThrow('The cassette is empty.');
    const missing = new Agent({ model: side, middleware: [replay({ from: 'no/such/file.jsonl' })] });
    await expect(missing.run('hi')).rejects.toThrow('in no/such/file.jsonl. The cassette is empty.');
  });

  it('reveals no secrets', async () => {
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

  it('record does not write down the misses of an inner cassette', async () => {
    const lines: string[] = [];
    const agent = new Agent({
      model: scriptedModel([]),
      middleware: [record({ to: lines }), replay({ from: [] })],
    });
    await expect(agent.run('hi')).rejects.toMatchObject({ code: 'CASSETTE_MISS' });
    expect(lines).toEqual([]);
  });
});
