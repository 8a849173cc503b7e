/** What a model inside `toAiSdk()` receives and gives back, for prompts as the AI SDK writes them. */
import { defineMiddleware, type MiddlewareList, window } from 'allium';
import { promptCaching } from 'allium/middleware/prompt-caching';
import { retry } from 'allium/middleware/retry';
import { describe, expect, it } from 'vitest';
import { toAiSdk } from './index.js';
import type { AiSdkLanguageModel } from './language-model.js';

const usage = { inputTokens: { total: 10, noCache: 10 }, outputTokens: { total: 5, text: 5 } };
const finish = { type: 'finish', finishReason: { unified: 'stop', raw: 'stop' }, usage };
const said = (text: string, ...more: object[]) => [
  { type: 'text-start', id: '0' },
  { type: 'text-delta', id: '0', delta: text },
  ...(more.length > 0 ? more : [{ type: 'text-end', id: '0' }, finish]),
];

interface Called {
  doGenerate(call: object): Promise<{ content: object[] }>;
  doStream(call: object): Promise<{ stream: ReadableStream<Part> }>;
}
interface Part {
  readonly type: string;
  readonly delta?: string;
}

async function partsOf(model: Called, text: string): Promise<readonly Part[]> {
  const parts: Part[] = [];
  for await (const part of (await model.doStream({ prompt: [user(text)] })).stream) parts.push(part);
  return parts;
}

/** Streams this answer, and keeps the prompts. */
function setup(stack: MiddlewareList, answer: readonly object[] = said('Done.'), version = 'v3') {
  const prompts: unknown[] = [];
  const model = {
    specificationVersion: version,
    provider: 'fake',
    modelId: 'f',
    async doStream({ prompt }: { prompt: unknown }) {
      prompts.push(prompt);
      return { stream: ReadableStream.from(answer) };
    },
  };
  return { model: toAiSdk(model as unknown as AiSdkLanguageModel, stack) as unknown as Called, prompts };
}

const user = (text: string) => ({ role: 'user', content: [{ type: 'text', text }] });
const calls = (...ids: string[]) => ({
  role: 'assistant',
  content: ids.map((toolCallId) => ({ type: 'tool-call', toolCallId, toolName: 't', input: {} })),
});
const result = (toolCallId: string, type = 'json', value: unknown = { of: toolCallId }) => ({
  type: 'tool-result',
  toolCallId,
  toolName: 't',
  output: { type, value },
});
const results = (...ids: string[]) => ({ role: 'tool', content: ids.map((id) => result(id)) });

const noWord = (word: string, on: 'output' | 'request') =>
  defineMiddleware({
    name: 'no-word',
    guard: {
      on: [on],
      hold: window(16),
      action: on === 'output' ? 'stop' : 'redact',
      find: (text) =>
        text.includes(word) ? [{ start: text.indexOf(word), end: text.indexOf(word) + word.length }] : [],
    },
  });

describe('a prompt', () => {
  it.each([
    [
      'results in the order they came in',
      [user('a'), calls('1', '2', '3'), results('3', '1', '2'), user('b')],
    ],
    ['results in several messages', [user('a'), calls('1', '2'), results('2'), results('1'), user('b')]],
    ['calls without a result', [user('a'), calls('1', '2'), results('2'), user('b'), calls('3')]],
  ])('with %s reaches the model as it was', async (_, prompt) => {
    for (const version of ['v2', 'v3', 'v4']) {
      const { model, prompts } = setup([retry()], undefined, version);
      await model.doGenerate({ prompt });
      expect(prompts).toEqual([prompt]);
    }
  });

  it('that is redacted in part keeps the rest, and all options and ids', async () => {
    const providerOptions = { gateway: { order: ['a'] } };
    const id = 'functions.look:0';
    const pdf = {
      type: 'file',
      mediaType: 'application/pdf',
      data: 'aGk=',
      filename: 'a.pdf',
      providerOptions,
    };
    const prompt = [
      { role: 'system', content: 'S', providerOptions },
      {
        role: 'user',
        content: [{ type: 'text', text: 'My word is hunter2.', providerOptions }, pdf],
        providerOptions,
      },
      calls(id, 'b'),
      { role: 'tool', content: [result('b'), result(id, 'text', 'It is hunter2.')], providerOptions },
    ];
    const { model, prompts } = setup([noWord('hunter2', 'request')]);
    await model.doGenerate({ prompt });
    const text = { type: 'text', text: 'My word is [redacted].', providerOptions };
    expect(prompts[0]).toEqual([
      prompt[0],
      { role: 'user', content: [text, pdf], providerOptions },
      prompt[2],
      { role: 'tool', content: [result(id, 'text', 'It is [redacted].'), result('b')] },
    ]);
  });

  it('gets the marks of promptCaching, on top of the options it has', async () => {
    const given = { fake: { a: 1 } };
    const { model, prompts } = setup([promptCaching()]);
    const prompt = [
      { role: 'system', content: 'S', providerOptions: given },
      user('a'),
      calls('1'),
      results('1'),
    ];
    await model.doGenerate({ prompt });
    const [system, first, , last] = prompts[0] as {
      providerOptions?: object;
      content: { providerOptions?: object }[];
    }[];
    const marked = { anthropic: { cacheControl: { type: 'ephemeral' } } };
    expect(system!.providerOptions).toMatchObject({ ...given, ...marked });
    expect(first!.providerOptions).toMatchObject(marked);
    expect(last!.content[0]!.providerOptions).toMatchObject(marked);
  });
});

describe('an answer', () => {
  it("that breaks off ends with the model's own error, whatever was shown before", async () => {
    const error = Object.assign(new Error('Not like this.'), { status: 400 });
    for (const stack of [[], [retry()]]) {
      const { model } = setup(stack, said('Half an ans', { type: 'error', error }));
      await expect(model.doGenerate({ prompt: [user('a')] })).rejects.toBe(error);
      const parts = await partsOf(model, 'a');
      expect(parts.at(-1)).toEqual({ type: 'error', error });
      expect(parts.map(({ delta = '' }) => delta).join('')).toBe('Half an ans');
    }
  });

  it('that a guard stops in the middle says so', async () => {
    const { model } = setup([noWord('hunter2', 'output')], said(`${'All is well. '.repeat(9)} hunter2.`));
    const parts = await partsOf(model, 'a');
    expect(parts.at(-1)).toMatchObject({ type: 'error', error: { code: 'MODEL_CALL_STOPPED' } });
  });

  it('has files in the form of its specification', async () => {
    const tagged = { type: 'data', data: 'aGk=' };
    const files = (data: unknown) => [
      { type: 'file', mediaType: 'image/png', data },
      { type: 'reasoning-file', mediaType: 'image/png', data },
    ];
    for (const [version, data] of [
      ['v3', 'aGk='],
      ['v4', tagged],
    ] as const) {
      const { model } = setup([], [...files(data), ...said('Here.')], version);
      const { content } = await model.doGenerate({ prompt: [user('Draw')] });
      expect(content.slice(0, 2)).toEqual(files(data));
      const parts = await partsOf(model, 'Draw');
      expect(parts.filter(({ type }) => type.endsWith('file'))).toEqual(files(data));
    }
  });
});
