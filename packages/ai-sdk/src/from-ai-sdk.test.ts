import type { LanguageModelV3 } from '@ai-sdk/provider';
import type { LanguageModelV2 } from '@ai-sdk/provider-v2';
import type { LanguageModelV4 } from '@ai-sdk/provider-v4';
import { extractReasoningMiddleware, wrapLanguageModel } from 'ai';
import { Agent, type AssistantMessage, memoryStore, tool } from 'allium';
import { testModel } from 'allium/testing';
import { describe, expect, expectTypeOf, it } from 'vitest';
import { z } from 'zod';
import { partsOf, request, responseOf } from '../test/ask.js';
import {
  type AnyPart,
  block,
  call,
  fake,
  finish,
  text,
  thinking,
  VERSIONS,
  type Version,
} from '../test/fakes.js';
import { type AiSdkLanguageModel, type FromAiSdkOptions, fromAiSdk } from './index.js';

const WEATHER = { name: 'get_weather', description: 'The weather.', inputSchema: { type: 'object' } };

/** Answers like the conformance suite asks. */
const talking = (version: Version) =>
  fake(version, [
    (options: AnyPart) => {
      const wanted = (name: string) => options.tools?.some((offered: AnyPart) => offered.name === name);
      return wanted('get_weather')
        ? [
            ...call('a', 'get_weather', '{"city":"Oslo"}'),
            ...call('b', 'get_weather', '{"city":"Rome"}'),
            finish(version, 'tool-calls'),
          ]
        : [
            ...thinking({ fake: { signature: 'sealed' } }, 'Hm.'),
            ...text('Good ', 'morning.'),
            finish(version),
          ];
    },
  ]).model;

for (const version of VERSIONS) {
  testModel(() => fromAiSdk(talking(version)), {
    name: `fromAiSdk with a model of ${version}`,
    thinking: {},
    failing: { model: () => fromAiSdk(fake(version, [{ throws: new Error('503') }]).model) },
    describe,
    it,
  });
}

describe.each(VERSIONS)('an answer of a model of %s', (version) => {
  const answer = async (...parts: AnyPart[]) => responseOf(fromAiSdk(fake(version, [parts]).model));

  it('has its text in the pieces that came, and keeps blocks apart even if they share an id', async () => {
    const { model } = fake(version, [[...text('Good ', 'morning.'), ...text('And bye.'), finish(version)]]);
    expect(await partsOf(fromAiSdk(model))).toMatchObject([
      { type: 'text', text: 'Good ' },
      { type: 'text', text: 'morning.' },
      { type: 'text', text: '', end: true },
      { type: 'text', text: 'And bye.' },
      { type: 'finish', reason: 'stop' },
    ]);
    expect((await responseOf(fromAiSdk(model))).content).toEqual([
      { type: 'text', text: 'Good morning.' },
      { type: 'text', text: 'And bye.' },
    ]);
  });

  it('keeps blocks that interleave apart', async () => {
    const [a, b] = [block('text', 'a', ['One', ' two.']), block('text', 'b', ['Three', ' four.'])];
    const mixed = a.flatMap((part, i) => [part, b[i]]);
    expect((await answer(...mixed, finish(version))).content).toMatchObject([
      { text: 'One two.' },
      { text: 'Three four.' },
    ]);
  });

  it('has thinking where it began, also if it has no text and ends last', async () => {
    const [begun, end] = block('reasoning', 'r', []);
    const start = { ...begun, providerMetadata: { fake: { itemId: 'rs_1' } } };
    const source = { type: 'source', sourceType: 'url', id: 's', url: 'https://a.example' };
    for (const rest of [[source, ...text('So.')], text('So.')]) {
      const { content } = await answer(start, ...rest, end, finish(version));
      expect(content[0]).toMatchObject({
        type: 'thinking',
        metadata: { provider: { fake: { itemId: 'rs_1' } } },
      });
      expect(content.slice(1).map(({ type }) => type)).toEqual(
        rest.includes(source) ? ['provider', 'text'] : ['text'],
      );
    }
  });

  it('has thinking with its signature, wherever in the block the signature came', async () => {
    const signed = { fake: { signature: 'sealed', more: 1 } };
    for (const parts of [
      thinking(signed, 'Hm, ', 'yes.'),
      thinking(undefined, 'Hm, ', 'yes.').toSpliced(3, 0, {
        type: 'reasoning-delta',
        id: '0',
        delta: '',
        providerMetadata: signed,
      }),
    ]) {
      expect((await answer(...parts, finish(version))).content).toEqual([
        {
          type: 'thinking',
          text: 'Hm, yes.',
          signature: 'sealed',
          metadata: {
            provider: { fake: { more: 1 } },
            seal: ['fake', 'signature'],
            digest: expect.any(String),
          },
        },
      ]);
    }
  });

  it('has hidden thinking as a block without text', async () => {
    const hidden = {
      type: 'reasoning-start',
      id: '0',
      providerMetadata: { anthropic: { redactedData: 'xyz' } },
    };
    const { content } = await answer(
      hidden,
      { type: 'reasoning-end', id: '0' },
      ...text('Yes.'),
      finish(version),
    );
    expect(content).toMatchObject([
      { type: 'thinking', text: '', redacted: true, signature: 'xyz' },
      { text: 'Yes.' },
    ]);
  });

  it('streams the arguments of a call', async () => {
    const { model } = fake(version, [
      [...call('a', 'get_weather', '{"city":"Oslo"}'), finish(version, 'tool-calls')],
    ]);
    expect(await partsOf(fromAiSdk(model), { tools: [WEATHER] })).toMatchObject([
      { type: 'tool-call', id: 'a', name: 'get_weather', arguments: '' },
      { type: 'tool-call-delta', id: 'a', arguments: '{"city"' },
      { type: 'tool-call-delta', id: 'a', arguments: ':"Oslo"}' },
      { type: 'finish', reason: 'tool-calls' },
    ]);
  });

  it('has calls that came whole, without arguments, or corrected after they had streamed', async () => {
    const whole = { type: 'tool-call', toolCallId: 'a', toolName: 'get_weather', input: '{"city":"Rome"}' };
    const empty = call('b', 'get_weather', '').with(-1, { ...whole, toolCallId: 'b', input: '' });
    const tidied = call('c', 'get_weather', '{ "x": 1 }').with(-1, {
      ...whole,
      toolCallId: 'c',
      input: '{"x":1}',
    });
    const { model } = fake(version, [[whole, ...empty, ...tidied, finish(version, 'tool-calls')]]);
    const parts = await partsOf(fromAiSdk(model), { tools: [WEATHER] });
    const json = (id: string) =>
      parts.map((part) => ('id' in part && part.id === id ? part.arguments : '')).join('');
    expect([json('a'), json('b'), json('c')]).toEqual(['{"city":"Rome"}', '{}', '{ "x": 1 }']);
  });

  it('has provider-run tools, sources and files beside the text, and runs none of those tools', async () => {
    const ran = { toolCallId: 's', toolName: 'web_search' };
    const { content, stopReason } = await answer(
      { type: 'tool-input-start', id: 's', toolName: 'web_search', providerExecuted: true },
      { type: 'tool-input-delta', id: 's', delta: '{"q":"x"}' },
      { type: 'tool-input-end', id: 's' },
      { type: 'tool-call', ...ran, input: '{"q":"x"}', providerExecuted: true },
      { type: 'tool-result', ...ran, result: { partly: true }, providerExecuted: true, preliminary: true },
      { type: 'tool-result', ...ran, result: { found: 1 }, providerExecuted: true },
      {
        type: 'source',
        sourceType: 'url',
        id: '1',
        url: 'https://example.com',
        providerMetadata: { fake: { n: 1 } },
      },
      {
        type: 'file',
        mediaType: 'image/png',
        data: version === 'v4' ? { type: 'data', data: 'AAEC' } : new Uint8Array([0, 1, 2]),
      },
      ...text('Found.'),
      finish(version),
    );
    expect(stopReason).toBe('stop');
    expect(content).toMatchObject([
      { type: 'provider', kind: 'tool-call', value: { ...ran, input: '{"q":"x"}' } },
      { type: 'provider', kind: 'tool-result', value: { ...ran, result: { found: 1 } } },
      {
        type: 'provider',
        kind: 'source',
        value: { url: 'https://example.com' },
        metadata: { provider: { fake: { n: 1 } } },
      },
      { type: 'file', data: 'AAEC', mimeType: 'image/png' },
      { type: 'text', text: 'Found.' },
    ]);
  });

  it('counts cached tokens apart from input, and puts the other counts into its metadata', async () => {
    const { usage, metadata } = await answer(
      { type: 'stream-start', warnings: [{ type: 'other', message: 'no seed' }] },
      { type: 'response-metadata', id: 'r1', modelId: 'one-2026', timestamp: new Date(0) },
      ...text('Hi.'),
      finish(version, 'stop', { fake: { logprobs: [1], gone: undefined } }),
    );
    const fresh = version === 'v2' ? { inputTokens: 8, cacheWrite: 0 } : { inputTokens: 7, cacheWrite: 1 };
    expect(usage).toEqual({ ...fresh, outputTokens: 5, cacheRead: 2, totalTokens: 15 });
    expect(metadata).toEqual({
      aiSdk: {
        warnings: [{ type: 'other', message: 'no seed' }],
        reasoningTokens: 3,
        ...(version !== 'v2' && { finishReason: 'stop' }),
        response: { id: 'r1', modelId: 'one-2026', timestamp: '1970-01-01T00:00:00.000Z' },
        providerMetadata: { fake: { logprobs: [1] } },
      },
    });
  });

  it('ignores pings and raw chunks, and keeps parts of unknown types', async () => {
    const { content } = await answer(
      { type: 'ping' },
      { type: 'raw', rawValue: {} },
      null,
      { type: 'hologram', shape: 'cube', providerMetadata: {} },
      finish(version),
    );
    expect(content).toEqual([{ type: 'provider', kind: 'hologram', value: { shape: 'cube' } }]);
  });

  it('without a finish reason counts as cut off, unless the server is known to send none', async () => {
    const reason =
      version === 'v2' ? 'unknown' : { unified: version === 'v3' ? 'other' : 'interrupted', raw: undefined };
    const { model } = fake(version, [
      [...text('Good '), { ...finish(version), finishReason: reason, usage: {} }],
    ]);
    await expect(responseOf(fromAiSdk(model))).rejects.toMatchObject({ cause: { code: 'MODEL_STREAM_CUT' } });
    const lenient = await responseOf(fromAiSdk(model, { acceptUnfinished: true }));
    expect(lenient).toMatchObject({ stopReason: 'other', content: [{ text: 'Good ' }] });
  });

  it("fails with the provider's own error object, before the stream or within it", async () => {
    const error = Object.assign(new Error('Overloaded'), { statusCode: 529, isRetryable: true });
    const chunk = { type: 'overloaded_error', message: 'Overloaded' };
    for (const [turn, thrown] of [
      [{ throws: error }, error],
      [[...text('Good '), { type: 'error', error: chunk }, finish(version)], chunk],
    ] as const) {
      const faked = fake(version, [turn]);
      const caught = await partsOf(fromAiSdk(faked.model)).catch((failure) => failure);
      expect(caught).toBe(thrown);
      expect(faked.cancelled).toBe(Array.isArray(turn) ? 1 : 0);
    }
  });
});

describe('a stream', () => {
  const hanging = () => fake('v3', [{ hangs: text('Good ').slice(0, 2) }]);

  it('that is aborted rejects at once with the reason, even if the model ignores the signal', async () => {
    const faked = hanging();
    const controller = new AbortController();
    const stream = fromAiSdk(faked.model).stream(request(), {
      signal: controller.signal,
    }) as AsyncIterable<unknown>;
    const iterator = stream[Symbol.asyncIterator]();
    await iterator.next();
    const pending = iterator.next();
    controller.abort('enough');
    await expect(pending).rejects.toBe('enough');
    expect(faked.cancelled).toBe(1);
    expect(await iterator.next()).toEqual({ done: true, value: undefined });
  });

  it('that nobody reads to its end is cancelled', async () => {
    const faked = hanging();
    for await (const _ of fromAiSdk(faked.model).stream(request(), { signal: new AbortController().signal }))
      break;
    expect(faked.cancelled).toBe(1);
  });

  it('passes the signal to the model, and does not call the model if it is already aborted', async () => {
    const faked = fake('v3', [[finish('v3')]]);
    const { signal } = new AbortController();
    await partsOf(fromAiSdk(faked.model), {}, signal);
    expect(faked.calls[0]?.options.abortSignal).toBe(signal);
    await expect(partsOf(fromAiSdk(faked.model), {}, AbortSignal.abort('no'))).rejects.toBe('no');
    expect(faked.calls).toHaveLength(1);
  });

  it('that is aborted before the model answers ends at once and cancels a late stream', async () => {
    const faked = hanging();
    let answer: (() => void) | undefined;
    const asked = new Promise<void>((resolve) => {
      answer = resolve;
    });
    const model: AiSdkLanguageModel = {
      ...faked.model,
      doStream: (options) => asked.then(() => faked.model.doStream(options)),
    };
    const controller = new AbortController();
    const reading = partsOf(fromAiSdk(model), {}, controller.signal);
    controller.abort('enough');
    await expect(reading).rejects.toBe('enough');
    answer!();
    await new Promise((resolve) => setImmediate(resolve));
    expect(faked.cancelled).toBe(1);
  });

  it('that fails while nobody reads it fails at the next read', async () => {
    const parts = [...text('Good '), { type: 'error', error: 'broken' }];
    const iterator = (
      fromAiSdk(fake('v3', [parts]).model).stream(request(), {
        signal: new AbortController().signal,
      }) as AsyncIterable<unknown>
    )[Symbol.asyncIterator]();
    await iterator.next();
    await expect(iterator.next()).rejects.toBe('broken');
  });
});

describe('the options of a call', () => {
  const optionsOf = async (
    more: Parameters<typeof partsOf>[1],
    options?: FromAiSdkOptions,
    version: Version = 'v3',
  ) => {
    const faked = fake(version, [[finish(version)]], { provider: 'acme-cloud.chat' });
    await partsOf(fromAiSdk(faked.model, options), more);
    const { prompt: _, abortSignal: __, ...rest } = faked.calls[0]!.options;
    return rest;
  };

  it('hold the settings of the request and nothing else', async () => {
    expect(await optionsOf({})).toEqual({});
    const responseSchema = { type: 'object', title: 'Answer', properties: {}, additionalProperties: false };
    const settings = {
      maxOutputTokens: 9,
      temperature: 0,
      topP: 0.5,
      stopSequences: ['x'],
      seed: 7,
      responseSchema,
    };
    const { responseSchema: schema, ...plain } = settings;
    expect(await optionsOf({ settings })).toEqual({
      ...plain,
      responseFormat: { type: 'json', schema, name: 'Answer' },
    });
  });

  it('offer tools and the tool choice, but only if there are tools', async () => {
    const tools = [WEATHER];
    expect(await optionsOf({ settings: { toolChoice: 'required' } })).toEqual({});
    for (const [toolChoice, type] of [
      [undefined, 'auto'],
      ['none', 'none'],
      ['required', 'required'],
    ] as const)
      expect(await optionsOf({ tools, settings: { toolChoice } })).toEqual({
        tools: [{ type: 'function', ...WEATHER }],
        toolChoice: { type },
      });
    const { toolChoice } = await optionsOf({ tools, settings: { toolChoice: { tool: 'get_weather' } } });
    expect(toolChoice).toEqual({ type: 'tool', toolName: 'get_weather' });
  });

  it("offer provider-defined tools in the specification's own form, also in place of ours", async () => {
    const providerTools = {
      web_search: { type: 'provider', id: 'acme.search', args: { n: 1 } },
      get_weather: { id: 'acme.sky' },
    };
    for (const [version, type] of [
      ['v2', 'provider-defined'],
      ['v3', 'provider'],
      ['v4', 'provider'],
    ] as const) {
      expect((await optionsOf({ tools: [WEATHER] }, { providerTools }, version)).tools).toEqual([
        { type, id: 'acme.search', name: 'web_search', args: { n: 1 } },
        { type, id: 'acme.sky', name: 'get_weather', args: {} },
      ]);
    }
  });

  it('hold the options of this provider only', async () => {
    const provider = {
      openai: { user: 'x' },
      'acme-cloud': { a: 1 },
      acmeCloud: { b: 2 },
      anthropic: { c: 3 },
    };
    const { providerOptions } = await optionsOf({ settings: { provider } });
    expect(providerOptions).toEqual({ 'acme-cloud': { a: 1 }, acmeCloud: { b: 2 } });
    expect(await optionsOf({ settings: { provider } }, { optionKeys: ['anthropic'] })).toMatchObject({
      providerOptions: { anthropic: { c: 3 } },
    });
  });

  it('may be given for all calls, but those of a request win', async () => {
    const callOptions = {
      topK: 3,
      temperature: 1,
      headers: { a: 'b' },
      providerOptions: { acmeCloud: { x: 1, y: 1 }, other: {} },
    };
    const settings = { temperature: 0, provider: { acmeCloud: { y: 2 } } };
    expect(await optionsOf({ settings }, { callOptions })).toEqual({
      topK: 3,
      temperature: 0,
      headers: { a: 'b' },
      providerOptions: { acmeCloud: { x: 1, y: 2 } },
    });
  });
});

describe('fromAiSdk', () => {
  it('names the model after the first part of its provider, or as the options say', () => {
    const { model } = fake('v3', [[]], { provider: 'openai.responses', modelId: 'gpt-5' });
    expect(fromAiSdk(model)).toMatchObject({ provider: 'openai', id: 'gpt-5' });
    const price = { input: 1, output: 2 };
    expect(fromAiSdk(model, { provider: 'mine', id: 'five', price })).toMatchObject({
      provider: 'mine',
      id: 'five',
      price,
    });
  });

  it('takes models of all specifications, as their packages type them', () => {
    expectTypeOf<LanguageModelV2>().toExtend<AiSdkLanguageModel>();
    expectTypeOf<LanguageModelV3>().toExtend<AiSdkLanguageModel>();
    expectTypeOf<LanguageModelV4>().toExtend<AiSdkLanguageModel>();
  });

  it('takes a model made by `wrapLanguageModel`', async () => {
    const { model } = fake('v3', [[...text('<think>Hm.</think>', 'Yes.'), finish('v3')]]);
    const wrapped = wrapLanguageModel({
      model: model as LanguageModelV3,
      middleware: extractReasoningMiddleware({ tagName: 'think' }),
    });
    expect((await responseOf(fromAiSdk(wrapped))).content).toMatchObject([
      { type: 'thinking', text: 'Hm.' },
      { type: 'text', text: 'Yes.' },
    ]);
  });

  it('treats a newer specification like the latest known one, and refuses anything else', () => {
    const { model } = fake('v3', [[]]);
    expect(() => fromAiSdk({ ...model, specificationVersion: 'v5' })).not.toThrow();
    expect(() => fromAiSdk({ ...model, specificationVersion: 'v1' })).toThrow(
      'has specification "v1"; Allium understands v2, v3 and v4',
    );
    expect(() => fromAiSdk('openai/gpt-5' as never)).toThrow('use resolveModel("openai/gpt-5")');
    expect(() => fromAiSdk('gpt-5' as never)).toThrow('use resolveModel("<provider>/gpt-5")');
    expect(() => fromAiSdk({} as never)).toThrow('Expected `model` to be a language model of the AI SDK');
    expect(() => fromAiSdk(model, { providerTools: { x: {} } })).toThrow(
      'Expected `providerTools.x` to be a tool that a provider defines, with an `id`, got {}.',
    );
    expect(() => fromAiSdk(model, { name: 'x' } as never)).toThrow('Unknown option `name` of fromAiSdk()');
  });

  it.each<[string, unknown, string]>([
    ['provider', '', 'non-empty text, got ""'],
    ['id', 5, 'non-empty text, got 5'],
    ['price', 5, 'an object with `input` and `output`, got 5'],
    ['price.output', { input: 1 }, 'a number ≥ 0, in dollars per million tokens, got undefined'],
    ['price.input', { input: '1', output: 1 }, 'a number ≥ 0, in dollars per million tokens, got "1"'],
    ['price.cacheRead', { input: 1, output: 1, cacheRead: -1 }, 'a number ≥ 0'],
    ['providerTools', ['x'], 'an object of tools by name, got ["x"]'],
    ['systemOptions', 'x', 'an object of options by provider, got "x"'],
    ['systemOptions.anthropic', { anthropic: 'x' }, 'an object, got "x"'],
    ['callOptions', null, 'an object, got null'],
    ['optionKeys', 'openai', 'a list of names, got "openai"'],
    ['id', 10n, 'non-empty text, got 10n'],
    ['acceptUnfinished', 'false', 'true or false, got "false"'],
    ['jsonMode', 'no', 'true, false or \'without-tools\', got "no"'],
  ])('refuses a wrong `%s`', (option, value, expected) => {
    const { model } = fake('v3', []);
    const [name = ''] = option.split('.');
    expect(() => fromAiSdk(model, { [name]: value })).toThrow(
      expect.objectContaining({
        ...{ code: 'INVALID_OPTION', data: expect.objectContaining({ option }) },
        message: expect.stringContaining(`Expected \`${option}\` to be ${expected}`),
      }),
    );
    expect(() => fromAiSdk(model, { [name]: undefined })).not.toThrow();
  });
});

describe('a session that goes on in another process', () => {
  it('sends signatures, metadata and cache markers back as they were', async () => {
    const step = { id: 'a', toolName: 'add', input: '{"a":1}' };
    const first = fake('v3', [
      [
        ...thinking({ fake: { signature: 'sealed', more: 1 } }, 'Hm.'),
        ...text('Let me see.').with(-1, {
          type: 'text-end',
          id: '0',
          providerMetadata: { fake: { itemId: 'msg_1' } },
        }),
        ...call(step.id, step.toolName, step.input, {
          providerMetadata: { fake: { thoughtSignature: 'call-seal' } },
        }),
        finish('v3', 'tool-calls'),
      ],
      [...text('Two.'), finish('v3')],
    ]);
    const store = memoryStore();
    const tools = [
      tool({ name: 'add', description: 'Adds.', input: z.object({ a: z.number() }), execute: () => '2' }),
    ];
    const cached = { provider: { fake: { cacheControl: 'here' }, other: { cacheControl: 'there' } } };
    const input = [{ type: 'text' as const, text: 'Add.', metadata: cached }];
    await new Agent({ model: fromAiSdk(first.model), store, tools }).session('s').run(input);

    const second = fake('v3', [[...text('Still two.'), finish('v3')]]);
    await new Agent({ model: fromAiSdk(second.model), store, tools }).session('s').run('And now?');
    const prompt = second.calls[0]!.options.prompt;
    expect(prompt.slice(0, 3)).toEqual([
      {
        role: 'user',
        content: [{ type: 'text', text: 'Add.', providerOptions: { fake: { cacheControl: 'here' } } }],
      },
      {
        role: 'assistant',
        content: [
          { type: 'reasoning', text: 'Hm.', providerOptions: { fake: { signature: 'sealed', more: 1 } } },
          { type: 'text', text: 'Let me see.', providerOptions: { fake: { itemId: 'msg_1' } } },
          {
            type: 'tool-call',
            toolCallId: 'a',
            toolName: 'add',
            input: { a: 1 },
            providerOptions: { fake: { thoughtSignature: 'call-seal' } },
          },
        ],
      },
      {
        role: 'tool',
        content: [
          { type: 'tool-result', toolCallId: 'a', toolName: 'add', output: { type: 'text', value: '2' } },
        ],
      },
    ]);
    expect(JSON.stringify(await store.read('s', 0))).toContain('call-seal');
  });

  it("does not send the provider's item id back with text that a guard has rewritten", async () => {
    const { model, calls } = fake('v3', [
      [
        ...text('Mail bob@example.com.').with(-1, {
          type: 'text-end',
          id: '0',
          providerMetadata: { fake: { itemId: 'msg_1' } },
        }),
        finish('v3'),
      ],
    ]);
    const guard = {
      name: 'addresses',
      guard: {
        on: ['output' as const],
        hold: 'full' as const,
        find: (text: string) =>
          [...text.matchAll(/\S+@\S+/g)].map(({ index, 0: found }) => ({
            start: index,
            end: index + found.length,
          })),
      },
    };
    const session = new Agent({ model: fromAiSdk(model), middleware: [guard] }).session('s');
    const { messages } = await session.run('Hello.');
    expect(JSON.stringify(messages.at(-1) as AssistantMessage)).not.toContain('bob@');
    await session.run('Again.');
    const sent = calls[1]!.options.prompt[1].content[0];
    expect(sent.text).not.toContain('bob@');
    expect(sent).not.toHaveProperty('providerOptions');
  });
});
