/** What a model inside `toAiSdk()` receives and gives back, for prompts as the AI SDK writes them. */
import { defineMiddleware, type MiddlewareList, window } from 'allium';
import { fallback } from 'allium/middleware/fallback';
import { promptCaching } from 'allium/middleware/prompt-caching';
import { retry } from 'allium/middleware/retry';
import { chunks, scriptedModel } from 'allium/testing';
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
  readonly providerMetadata?: object;
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
      return { stream: ReadableStream.from(answer as Iterable<object>) };
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

async function* hanging() {
  yield { type: 'text-start', id: '0' };
  await new Promise(() => {});
}

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

  it('that is aborted rejects with the reason', async () => {
    for (const isEarly of [true, false]) {
      const { model, prompts } = setup([retry()], hanging() as never);
      const stopping = new AbortController();
      const reason = new DOMException('Too slow.', 'TimeoutError');
      if (isEarly) stopping.abort(reason);
      const answer = model.doGenerate({ prompt: [user('a')], abortSignal: stopping.signal });
      stopping.abort(reason);
      await expect(answer).rejects.toBe(reason);
      expect(prompts.length).toBeLessThan(2);
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

  const item = (itemId: string) => ({ providerMetadata: { openai: { itemId } } });
  const thought = (id: string, text: string, itemId: string) => [
    { type: 'reasoning-start', id },
    ...(text === '' ? [] : [{ type: 'reasoning-delta', id, delta: text }]),
    { type: 'reasoning-end', id, ...item(itemId) },
  ];
  const called = (id: string) => [
    { type: 'tool-input-start', id, toolName: 't' },
    { type: 'tool-input-delta', id, delta: '{}' },
    { type: 'tool-input-end', id },
    { type: 'tool-call', toolCallId: id, toolName: 't', input: '{}', ...item(`fc_${id}`) },
  ];
  const search = {
    type: 'tool-call',
    toolCallId: 's',
    toolName: 'search',
    input: '{}',
    providerExecuted: true,
  };
  const word = (text: string, itemId: string) => [
    { type: 'text-start', id: itemId },
    { type: 'text-delta', id: itemId, delta: text },
    { type: 'text-end', id: itemId, ...item(itemId) },
  ];
  const tools = [{ type: 'function', name: 't', inputSchema: { type: 'object' } }];

  it('keeps its order, and what the provider wants to see again, streamed or not', async () => {
    const given = [
      ...thought('0', '', 'rs_1'),
      search,
      ...word('Look.', 'msg_1'),
      ...called('1'),
      ...thought('1', 'Hm.', 'rs_2'),
      ...called('2'),
      ...word('Well.', 'msg_2'),
      finish,
    ];
    const content = [
      { type: 'reasoning', text: '', ...item('rs_1') },
      search,
      { type: 'text', text: 'Look.', ...item('msg_1') },
      { type: 'tool-call', toolCallId: '1', toolName: 't', input: '{}', ...item('fc_1') },
      { type: 'reasoning', text: 'Hm.', ...item('rs_2') },
      { type: 'tool-call', toolCallId: '2', toolName: 't', input: '{}', ...item('fc_2') },
      { type: 'text', text: 'Well.', ...item('msg_2') },
    ];
    for (const stack of [[], [noWord('hunter2', 'output')]]) {
      const { model } = setup(stack, given);
      const prompt = [user('a')];
      expect((await model.doGenerate({ prompt, tools })).content).toEqual(content);
      const { stream } = await model.doStream({ prompt, tools });
      const parts: Part[] = [];
      for await (const part of stream) parts.push(part);
      const order = parts.flatMap((part) => (/-start$|call$/.test(part.type) ? [part.type] : []));
      expect(order.slice(1)).toEqual(
        content.map(({ type }) => (type === 'tool-call' ? type : `${type}-start`)),
      );
      const known = parts.flatMap(({ type, providerMetadata: own }) =>
        /-end$|call$/.test(type) && own ? [own] : [],
      );
      expect(known).toEqual(
        content.flatMap((part) => ('providerMetadata' in part ? [part.providerMetadata] : [])),
      );
    }
  });

  it('that a guard changed is not what the provider knows by its id', async () => {
    const redacts = defineMiddleware({
      name: 'redacts',
      guard: { on: ['output'], find: (text) => (text === 'Well.' ? [{ start: 0, end: 4 }] : []) },
    });
    const { model } = setup([redacts], [...thought('0', 'Hm.', 'rs_1'), ...word('Well.', 'msg_1'), finish]);
    const { content } = await model.doGenerate({ prompt: [user('a')] });
    expect(content).toEqual([
      { type: 'reasoning', text: 'Hm.' },
      { type: 'text', text: '[redacted].' },
    ]);
  });

  it('shows text at once, also after thinking without text and what the provider ran', async () => {
    let end = () => {};
    const ended = new Promise<void>((resolve) => {
      end = resolve;
    });
    const source = { type: 'source', sourceType: 'url', id: 's', url: 'https://a.example' };
    async function* answer() {
      yield* [...thought('0', '', 'rs_1'), source, ...word('Look.', 'msg_1').slice(0, 2)];
      await ended;
      yield* [...word('', 'msg_1').slice(2), finish];
    }
    const { model } = setup([retry()], answer() as never);
    const seen: string[] = [];
    for await (const { type } of (await model.doStream({ prompt: [user('a')] })).stream) {
      seen.push(type);
      if (type === 'text-delta') end();
    }
    expect(seen).toEqual([
      'stream-start',
      'reasoning-start',
      'source',
      'text-start',
      'text-delta',
      'response-metadata',
      'reasoning-end',
      'text-end',
      'finish',
    ]);
  });

  it('of another model has nothing of the one that failed', async () => {
    const error = Object.assign(new Error('Gone.'), { status: 503 });
    const file = { type: 'file', mediaType: 'image/png', data: 'aGk=' };
    const other = scriptedModel([
      chunks({ type: 'thinking', text: '', signature: 's' }, 'Done.'),
      chunks({ type: 'thinking', text: '', signature: 's' }, 'Done.'),
    ]);
    const { model } = setup([fallback({ models: [other] })], [file, { type: 'error', error }]);
    const types = (await partsOf(model, 'a')).map(({ type }) => type);
    expect(types.slice(1)).toEqual([
      'reasoning-start',
      'text-start',
      'text-delta',
      'response-metadata',
      'reasoning-end',
      'text-end',
      'finish',
    ]);
  });

  it('has nothing that a layer took out of the stream, and all that it left', async () => {
    const file = { type: 'file', mediaType: 'image/png', data: 'aGk=' };
    const source = { type: 'source', sourceType: 'url', id: 's', url: 'https://a.example' };
    const noFiles = defineMiddleware({
      name: 'no-files',
      beforeModel: (ctx) =>
        ctx.transform(() => ({ part: (part, emit) => void (part.type !== 'file' && emit(part)) })),
    });
    const { model } = setup([noFiles], [file, source, ...said('Hi')]);
    const types = (await partsOf(model, 'a')).map(({ type }) => type);
    expect(types.filter((type) => !/^text|^stream|^response/.test(type))).toEqual(['source', 'finish']);
  });

  it.each(['length', 'content-filter'])('may end by %s', async (unified) => {
    const finishReason = { unified, raw: 'raw' };
    const { model } = setup([retry()], said('Half', { ...finish, finishReason }));
    expect(await model.doGenerate({ prompt: [user('a')] })).toMatchObject({
      content: [{ type: 'text', text: 'Half' }],
      finishReason,
      usage,
    });
    expect((await partsOf(model, 'a')).at(-1)).toMatchObject({ type: 'finish', finishReason, usage });
  });
});
