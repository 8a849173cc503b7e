import {
  Agent,
  type Message,
  type Middleware,
  memoryStore,
  syntheticUserMessage,
  textOf,
  tool,
  userMessage,
} from 'allium';
import { compaction, contextEditing, historyTruncator } from 'allium/middleware';
import { type ScriptedModel, scriptedModel, text, toolCalls } from 'allium/testing';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { randomHistory, unpaired } from './random-history.js';

// Whatever cuts a request: it begins with a user message, keeps the current question, and splits no pair.

const tokenCounter = (said: string) => said.length;
const look = tool({
  name: 'look',
  description: 'Looks.',
  input: z.object({}),
  execute: () => 'rain '.repeat(20),
});

const windows = (size: number): Record<string, () => Middleware> => ({
  [`historyTruncator, ${size} messages`]: () => historyTruncator({ maxMessages: size }),
  [`historyTruncator, ${size * 30} tokens`]: () => historyTruncator({ maxTokens: size * 30, tokenCounter }),
  [`compaction, ${size * 60} tokens`]: () =>
    compaction({
      summaryModel: scriptedModel(Array.from({ length: 99 }, () => 'Summary.')),
      maxTokens: size * 60,
      keepTailTokens: size * 10,
      minMessages: 1,
      tokenCounter,
    }),
  [`contextEditing, the last ${size - 1}`]: () =>
    contextEditing({ clearToolResultsAfterTokens: 0, keep: size - 1, tokenCounter }),
  [`a transform that keeps the last ${size}`]: () => ({ transformContext: (all) => all.slice(-size) }),
  [`a conversion that keeps the last ${size}`]: () => ({ convertToLlm: (all) => all.slice(-size) }),
  [`a layer that keeps the last ${size}`]: () => ({
    wrapModel: ({ messages }, next) => next({ messages: messages.slice(-size) }),
  }),
});

function expectSound(messages: readonly Message[], question: string): void {
  expect(messages[0]!.role).toBe('user');
  expect(unpaired(messages)).toEqual({ calls: [], results: [] });
  expect(messages.filter(({ role }) => role === 'user').map(textOf)).toContain(question);
}

const batches = (count: number) =>
  Array.from({ length: count }, () => toolCalls({ name: 'look' }, { name: 'look' }));

for (const size of [1, 2, 3, 4, 5, 6, 8]) {
  for (const [name, make] of Object.entries(windows(size))) {
    describe(name, () => {
      it('in the middle of a run with parallel calls, in every turn of every run of a session', async () => {
        const model = scriptedModel([
          ...batches(5),
          text('One.'),
          ...batches(5),
          text('Two.'),
          text('Three.'),
        ]);
        const session = new Agent({ model, tools: [look], middleware: [make()] }).session('s');
        for (const question of ['First?', 'Second?', 'Third?']) {
          const before = model.requests.length;
          await session.run(question);
          for (const { messages } of model.requests.slice(before)) expectSound(messages, question);
        }
      });
    });
  }
}

describe('a run that goes on in another process', () => {
  it.each(Object.keys(windows(2)))('%s', async (name) => {
    const store = memoryStore();
    const asks = tool({
      ...look,
      name: 'ask',
      execute: async (_, ctx) => (await ctx.suspend({ title: '?' })).type,
    });
    const agentOf = (model: ScriptedModel) =>
      new Agent({ model, store, tools: [look, asks], middleware: [windows(2)[name]!()] });
    const first = scriptedModel([...batches(3), toolCalls({ name: 'ask' })]);
    const { pending } = await agentOf(first).session('s').run('Question?');
    const second = scriptedModel([...batches(3), text('Done.')]);
    const answers = { [pending[0]!.id]: { type: 'approve' as const } };
    await agentOf(second).session('s').resume({ answers });
    expect(second.requests).toHaveLength(4);
    for (const { messages } of second.requests) expectSound(messages, 'Question?');
  });
});

describe('a run that a program began, in a session with a person', () => {
  it.each(Object.keys(windows(2)).slice(0, 3))('%s', async (name) => {
    const model = scriptedModel([text('Hello.'), ...batches(5), text('Done.')]);
    const session = new Agent({ model, tools: [look], middleware: [windows(2)[name]!()] }).session('s');
    await session.run('Hi.');
    await session.run(syntheticUserMessage('Every morning: look.', { source: 'cron' }));
    for (const { messages } of model.requests.slice(1)) expectSound(messages, 'Every morning: look.');
  });
});

describe('a sub-agent', () => {
  it.each(Object.keys(windows(2)).slice(0, 3))('%s', async (name) => {
    const child = scriptedModel([...batches(5), text('Rain.')]);
    const inner = new Agent({ model: child, tools: [look], middleware: [windows(2)[name]!()] });
    const model = scriptedModel([toolCalls({ name: 'scout', args: { prompt: 'Look out.' } }), text('Done.')]);
    const scout = inner.asTool({ name: 'scout', description: 'Looks.' });
    await new Agent({ model, tools: [scout] }).run('Go.');
    expect(child.requests).toHaveLength(6);
    for (const { messages } of child.requests) expectSound(messages, 'Look out.');
  });
});

describe('a run that is steered keeps the question it began with, too', () => {
  it.each([1, 2, 3, 4])('with %i', async (size) => {
    for (const make of Object.values(windows(size)).slice(0, 3)) {
      const model = scriptedModel([...batches(6), text('Done.')]);
      const agent = new Agent({ model, tools: [look], middleware: [make()] });
      const session = agent.session('s');
      await session.run('Question?', {
        middleware: [
          {
            async afterToolCall(ctx) {
              if (ctx.turn === 2 && ctx.toolCall.id.endsWith('0')) await session.steer('Hurry.');
            },
          },
        ],
      });
      const last = model.requests.at(-1)!.messages;
      expectSound(last, 'Question?');
      expectSound(last, 'Hurry.');
    }
  });
});

describe('in any history', () => {
  it('historyTruncator', async () => {
    await fc.assert(
      fc.asyncProperty(
        randomHistory({ whole: true }),
        fc.integer({ min: 1, max: 20 }),
        fc.integer({ min: 1, max: 3000 }),
        fc.boolean(),
        async (random, maxMessages, maxTokens, noted) => {
          const history = [userMessage('Begin.'), ...random, userMessage('Go.')];
          const note = syntheticUserMessage('A note.', { source: 'notes' });
          const model = scriptedModel([
            toolCalls({ name: 'look' }, { name: 'look' }),
            toolCalls({ name: 'look' }),
            'ok',
          ]);
          const middleware = [
            { transformContext: (all: readonly Message[]) => (noted ? [...all, note] : all) },
            historyTruncator({ maxMessages, maxTokens, tokenCounter }),
          ];
          await new Agent({ model, tools: [look], middleware }).run(history);
          const pins = (list: readonly Message[]) =>
            list.filter(({ metadata }) => metadata?.pinned).map(textOf);
          for (const { messages } of model.requests) {
            expectSound(messages, 'Go.');
            expect(pins(messages)).toEqual(pins(history));
          }
        },
      ),
      { numRuns: 80 },
    );
  });

  it('compaction', async () => {
    await fc.assert(
      fc.asyncProperty(
        randomHistory({ whole: true }),
        fc.integer({ min: 50, max: 2000 }),
        fc.integer({ min: 0, max: 500 }),
        async (random, maxTokens, keepTailTokens) => {
          const history = [userMessage('Begin.'), ...random, userMessage('Go.')];
          const model = scriptedModel([...batches(4), text('ok')]);
          const summaryModel = scriptedModel(Array.from({ length: 9 }, () => 'Summary.'));
          const middleware = [
            compaction({ summaryModel, maxTokens, keepTailTokens, minMessages: 1, tokenCounter }),
          ];
          await new Agent({ model, tools: [look], middleware }).run(history);
          for (const { messages } of model.requests) expectSound(messages, 'Go.');
        },
      ),
      { numRuns: 60 },
    );
  });

  it('a transform of the user that cuts anywhere', async () => {
    await fc.assert(
      fc.asyncProperty(
        randomHistory({ whole: true }),
        fc.integer({ min: 1, max: 12 }),
        async (random, size) => {
          const history = [userMessage('Begin.'), ...random, userMessage('Go.')];
          const model = scriptedModel([...batches(4), text('ok')]);
          const cuts: Middleware = { name: 'cuts', transformContext: (all) => all.slice(-size) };
          const { changes } = await new Agent({ model, tools: [look], middleware: [cuts] }).run(history);
          for (const { messages } of model.requests) expectSound(messages, 'Go.');
          if (size < 3) expect(changes.map(({ by }) => by)).toContain('cuts');
        },
      ),
      { numRuns: 60 },
    );
  });
});

it('leaves a request alone that its middleware begins with an answer', async () => {
  const model = scriptedModel(['ok']);
  const shown: Message = {
    id: '',
    role: 'assistant',
    stopReason: 'stop',
    content: [{ type: 'text', text: 'Hi.' }],
  };
  const greets: Middleware = { transformContext: (messages) => [shown, ...messages] };
  await new Agent({ model, middleware: [greets] }).run('Hello?');
  expect(model.requests[0]!.messages.map(textOf)).toEqual(['Hi.', 'Hello?']);
});
