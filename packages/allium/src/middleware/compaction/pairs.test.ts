import {
  Agent,
  defineMiddleware,
  type Middleware,
  memoryStore,
  type RunResult,
  textOf,
  window,
} from 'allium';
import { compaction } from 'allium/middleware/compaction';
import { contextEditing } from 'allium/middleware/context-editing';
import { historyTruncator } from 'allium/middleware/history-truncator';
import { promptCaching } from 'allium/middleware/prompt-caching';
import { structuredOutput } from 'allium/middleware/structured-output';
import { type Script, type ScriptedModel, scriptedModel, text } from 'allium/testing';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';

/** What compaction has to get on with, in either order. A line is enough; `holds` says what the other one still does. */
interface Partner {
  readonly name: string;
  readonly make: () => Middleware;
  /** What the model answers. @default 'ok' */
  readonly answer?: string;
  readonly holds?: (seen: Seen) => void;
}

interface Seen {
  readonly model: ScriptedModel;
  readonly summaryModel: ScriptedModel;
  readonly results: readonly RunResult[];
  readonly texts: readonly string[];
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
];

async function conversation(middleware: readonly Middleware[], answer: string) {
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
  const model = scriptedModel([text(answer, { inputTokens: 0, outputTokens: 0 })], { repeat: true });
  const place = middleware.map((one) => one ?? made);
  const session = new Agent({ model, store: memoryStore(), middleware: place }).session('s');
  const results: RunResult[] = [];
  const dropped: unknown[] = [];
  for (let n = 1; n <= 12; n++) {
    const stream = session.stream(`${n} sk-${n}${n} `.padEnd(90, 'x'));
    for await (const event of stream)
      if (event.type === 'custom' && event.name === 'orphans_dropped') dropped.push(event.data);
    results.push(await stream.result);
  }
  const texts = (await session.messages()).map(textOf);
  return { model, summaryModel, results, texts, dropped };
}

/** Stands in a list for the compaction under test. */
const HERE = undefined as never;

describe.each(PARTNERS)('compaction and $name', ({ make, answer = 'ok', holds }) => {
  it.each([
    ['outside', () => [HERE, make()]],
    ['inside', () => [make(), HERE]],
  ] as const)('get on with it standing %s', async (_, list) => {
    const seen = await conversation(list(), answer);
    const { model, summaryModel, results, texts, dropped } = seen;
    expect(results.every(({ status }) => status === 'done')).toBe(true);
    expect(summaryModel.requests.length).toBeGreaterThanOrEqual(1);
    expect(texts.filter((said) => /^\d+ /.test(said))).toHaveLength(12);
    expect(model.requests.at(-1)!.messages.map(textOf).join('\n')).toContain('SUMMARY of');
    expect(model.requests.at(-1)!.messages.length).toBeLessThan(20);
    expect(dropped).toEqual([]);
    holds?.(seen);
  });
});

describe('a window behind compaction', () => {
  it('leaves the summary in, however narrow it is', async () => {
    const { model, summaryModel } = await conversation([HERE, historyTruncator({ maxMessages: 2 })], 'ok');
    expect(summaryModel.requests.length).toBeGreaterThanOrEqual(1);
    const sent = model.requests.at(-1)!.messages.map(textOf);
    expect(sent).toHaveLength(2);
    expect(sent[0]).toContain('SUMMARY of');
    expect(sent[1]).toMatch(/^12 /);
  });
});
