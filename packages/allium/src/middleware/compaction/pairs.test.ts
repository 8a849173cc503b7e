import {
  Agent,
  defineMiddleware,
  type Middleware,
  memoryStore,
  type RunOptions,
  type RunResult,
  textOf,
  window,
} from 'allium';
import { compaction } from 'allium/middleware/compaction';
import { contextEditing } from 'allium/middleware/context-editing';
import { goal } from 'allium/middleware/goal';
import { historyTruncator } from 'allium/middleware/history-truncator';
import { promptCaching } from 'allium/middleware/prompt-caching';
import { structuredOutput } from 'allium/middleware/structured-output';
import { todoList } from 'allium/middleware/todo-list';
import { type Script, type ScriptedModel, scriptedModel, toolCalls } from 'allium/testing';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';

/** What compaction has to get on with, in either order. A line is enough; `holds` says what the other one still does. */
interface Partner {
  readonly name: string;
  readonly make: () => Middleware;
  /** What the model answers in each run, turn by turn. @default 'ok' */
  readonly answer?: string | readonly Script[];
  readonly runOptions?: RunOptions;
  readonly holds?: (seen: Seen) => void;
}

interface Seen {
  readonly model: ScriptedModel;
  readonly summaryModel: ScriptedModel;
  readonly results: readonly RunResult[];
  readonly texts: readonly string[];
  /** The data of the custom events of all runs, by name. */
  readonly customs: (name: string) => readonly unknown[];
}

const redacting = (on: 'input' | 'request' | 'output'): Middleware =>
  defineMiddleware({
    name: 'redacting',
    guard: {
      on: [on],
      ...(on === 'output' && { hold: window(16) }),
      find: (said) =>
        [...said.matchAll(/sk-\w{1,8}/g)].map((m) => ({ start: m.index, end: m.index + m[0].length })),
    },
  });

const noKeys = ({ model, summaryModel }: Seen) => {
  const sent = [...model.requests, ...summaryModel.requests].flatMap(({ messages }) => messages.map(textOf));
  expect(sent.join('\n')).toContain('[redacted]');
  expect(sent.join('\n')).not.toMatch(/sk-\w/);
};

const VIEW = 'Your todo list as it stands';
const writeTodos = (...statuses: string[]) =>
  toolCalls({
    name: 'write_todos',
    args: { todos: statuses.map((status, i) => ({ content: `step ${i}`, status })) },
  });

/** Reads the last line of the question only: whether the goal is met, and whether a summary passed for the history. */
const judge: Script = ({ messages }) => {
  const question = textOf(messages[0]!);
  const reason = question.includes('SUMMARY of') ? 'read a summary' : 'read the history';
  return JSON.stringify({ achieved: question.split('\n').at(-1)!.includes('all there'), reason });
};

const PARTNERS: readonly Partner[] = [
  {
    name: 'structuredOutput, by setting',
    make: () => structuredOutput({ schema: z.object({ n: z.number() }) }),
    answer: '{"n":1}',
    holds({ model, summaryModel, results }) {
      expect(results.map(({ output }) => output)).toEqual(results.map(() => ({ n: 1 })));
      expect(model.requests.every(({ settings }) => settings.responseSchema)).toBe(true);
      expect(summaryModel.requests.some(({ settings }) => settings.responseSchema)).toBe(false);
    },
  },
  {
    name: 'structuredOutput, by prompt, with repairs',
    make: () =>
      structuredOutput({ schema: z.unknown(), toJsonSchema: () => ({ title: 'Any' }), mode: 'prompt' }),
    answer: '1',
    holds({ model, summaryModel }) {
      expect(model.requests.every(({ systemPrompt }) => systemPrompt.includes('"title":"Any"'))).toBe(true);
      expect(summaryModel.requests[0]!.systemPrompt).not.toContain('"title":"Any"');
    },
  },
  { name: 'a guard that redacts input', make: () => redacting('input'), holds: noKeys },
  { name: 'a guard that redacts requests', make: () => redacting('request'), holds: noKeys },
  {
    name: 'a guard that redacts answers',
    make: () => redacting('output'),
    answer: 'the key is sk-77',
    holds({ texts, summaryModel, model }) {
      expect(texts).toContain('the key is [redacted]');
      // What the user wrote himself is not the business of this guard; a summary that repeats it is an answer.
      expect(textOf(summaryModel.requests[0]!.messages[0]!)).toContain('assistant: the key is [redacted]');
      expect(textOf(model.requests.at(-1)!.messages[0]!)).toContain('SUMMARY of [redacted]');
    },
  },
  { name: 'contextEditing', make: () => contextEditing({ clearToolResultsAfterTokens: 100, keep: 1 }) },
  { name: 'historyTruncator', make: () => historyTruncator({ maxMessages: 50 }) },
  { name: 'promptCaching', make: () => promptCaching() },
  {
    name: 'todoList',
    make: () => todoList({ systemPrompt: 'Keep a list.', toolDescription: 'Writes it.' }),
    // In each run the model wants to end too early, is sent back, and brings its list to an end.
    answer: [
      writeTodos('completed', 'in_progress'),
      'early',
      writeTodos('completed', 'completed'),
      'all there',
    ],
    holds({ model, summaryModel, results, texts }) {
      expect(results.map(({ text: said, turns }) => [said, turns])).toEqual(
        results.map(() => ['all there', 4]),
      );
      expect(texts.filter((said) => said.includes('has unfinished items'))).toHaveLength(12);
      const last = model.requests.map(({ messages }) => textOf(messages.at(-1)!));
      expect(last[0]).not.toContain(VIEW);
      // The list of the session is shown from then on: whole, once, at the end, and to nobody but the model.
      expect(last.slice(1).filter((said) => !said.startsWith(VIEW))).toEqual([]);
      expect(last[1]).toMatch(/\[x\] step 0\n.*\[>\] step 1$/);
      expect(last.at(-1)).toMatch(/\[x\] step 0\n.*\[x\] step 1$/);
      for (const { messages } of model.requests)
        expect(messages.filter((message) => textOf(message).includes(VIEW)).length).toBeLessThanOrEqual(1);
      for (const { messages } of summaryModel.requests) expect(textOf(messages[0]!)).not.toContain(VIEW);
      expect(texts.join('\n')).not.toContain(VIEW);
    },
  },
  {
    name: 'goal',
    make: () => goal({ evaluator: scriptedModel([judge], { id: 'evaluator', repeat: true }) }),
    runOptions: { goal: 'everything is there' },
    answer: ['some of it', 'all there'],
    holds({ model, results, texts, customs }) {
      expect(results.map(({ text: said, turns }) => [said, turns])).toEqual(
        results.map(() => ['all there', 2]),
      );
      const reason = 'read the history';
      expect(customs('goal')).toEqual(
        results.flatMap(() => [
          { condition: 'everything is there', status: 'open', evaluations: 1, reason },
          { condition: 'everything is there', status: 'achieved', evaluations: 2, reason },
        ]),
      );
      expect(texts.filter((said) => said.startsWith('Goal not yet met'))).toHaveLength(12);
      // What is missing reaches the model, whatever became a summary before it.
      const second = model.requests.filter((_, index) => index % 2 === 1);
      expect(second.map(({ messages }) => textOf(messages.at(-1)!))).toEqual(
        second.map(() => expect.stringMatching(/^Goal not yet met/)),
      );
    },
  },
];

async function conversation(
  middleware: readonly Middleware[],
  { answer = 'ok', runOptions = {} }: Pick<Partner, 'answer' | 'runOptions'> = {},
) {
  // It repeats the first key it reads, if it reads one.
  const summarise: Script = ({ messages }) =>
    `SUMMARY of ${/sk-\w+/.exec(textOf(messages[0]!))?.[0] ?? 'no key'}`;
  const summaryModel = scriptedModel([summarise], { id: 'summariser', repeat: true });
  const made = compaction({
    summaryModel,
    maxTokens: 900,
    keepTailTokens: 300,
    tokenCounter: (said) => said.length,
  });
  const script = typeof answer === 'string' ? [answer] : answer;
  const model = scriptedModel(script, { repeat: true, usage: {} });
  const place = middleware.map((one) => one ?? made);
  const session = new Agent({ model, store: memoryStore(), middleware: place }).session('s');
  const results: RunResult[] = [];
  const seen: { readonly name: string; readonly data?: unknown }[] = [];
  for (let n = 1; n <= 12; n++) {
    const stream = session.stream(`${n} sk-${n}${n} `.padEnd(90, 'x'), runOptions);
    for await (const event of stream) if (event.type === 'custom') seen.push(event);
    results.push(await stream.result);
  }
  const texts = (await session.messages()).map(textOf);
  const customs = (name: string) => seen.filter((event) => event.name === name).map(({ data }) => data);
  return { model, summaryModel, results, texts, customs };
}

/** Stands in a list for the compaction under test. */
const HERE = undefined as never;

describe.each(PARTNERS)('compaction and $name', ({ make, holds, ...partner }) => {
  it.each([
    ['outside', () => [HERE, make()]],
    ['inside', () => [make(), HERE]],
  ] as const)('work together with it standing %s', async (_, list) => {
    const seen = await conversation(list(), partner);
    const { model, summaryModel, results, texts, customs } = seen;
    expect(results.every(({ status }) => status === 'done')).toBe(true);
    expect(summaryModel.requests.length).toBeGreaterThanOrEqual(1);
    expect(texts.filter((said) => /^\d+ /.test(said))).toHaveLength(12);
    expect(model.requests.at(-1)!.messages.map(textOf).join('\n')).toContain('SUMMARY of');
    expect(model.requests.at(-1)!.messages.length).toBeLessThan(20);
    expect(customs('orphans_dropped')).toEqual([]);
    holds?.(seen);
  });
});

describe('a window behind compaction', () => {
  it('leaves the summary in, however narrow it is', async () => {
    const { model, summaryModel } = await conversation([HERE, historyTruncator({ maxMessages: 2 })]);
    expect(summaryModel.requests.length).toBeGreaterThanOrEqual(1);
    const sent = model.requests.at(-1)!.messages.map(textOf);
    expect(sent).toHaveLength(2);
    expect(sent[0]).toContain('SUMMARY of');
    expect(sent[1]).toMatch(/^12 /);
  });
});
