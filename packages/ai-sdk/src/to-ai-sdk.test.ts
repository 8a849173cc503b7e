import { generateText, simulateReadableStream, stepCountIs, streamText, tool, wrapLanguageModel } from 'ai';
import { MockLanguageModelV3 } from 'ai/test';
import { Agent, defineMiddleware, defineState, type Middleware, window } from 'allium';
import { budget } from 'allium/middleware/budget';
import { cache } from 'allium/middleware/cache';
import { callLimits } from 'allium/middleware/call-limits';
import { fallback } from 'allium/middleware/fallback';
import { retry } from 'allium/middleware/retry';
import { toolSelector } from 'allium/middleware/tool-selector';
import { scriptedModel } from 'allium/testing';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { asLanguageModelMiddleware, toAiSdk } from './index.js';

// Warnings of models belong to the results here, not on the console.
Object.assign(globalThis, { AI_SDK_LOG_WARNINGS: false });

const usage = {
  inputTokens: { total: 10, noCache: 10, cacheRead: 0, cacheWrite: 0 },
  outputTokens: { total: 5, text: 5, reasoning: 0 },
};
const finish = (unified: 'stop' | 'tool-calls' = 'stop') => ({
  type: 'finish',
  finishReason: { unified, raw: unified },
  usage,
});
const said = (...pieces: string[]) => [
  { type: 'stream-start', warnings: [] },
  { type: 'text-start', id: 't' },
  ...pieces.map((delta) => ({ type: 'text-delta', id: 't', delta })),
  { type: 'text-end', id: 't' },
  finish(),
];
const asks = (toolName: string, input: object) => [
  { type: 'stream-start', warnings: [] },
  { type: 'tool-call', toolCallId: 'c1', toolName, input: JSON.stringify(input) },
  finish('tool-calls'),
];

/** A model that streams these answers one after the other; an error is thrown. */
function fake(...answers: (object[] | Error)[]) {
  let next = 0;
  const model = new MockLanguageModelV3({
    provider: 'fake',
    modelId: 'fake-1',
    doStream: async () => {
      const answer = answers[Math.min(next++, answers.length - 1)]!;
      if (answer instanceof Error) throw answer;
      return {
        stream: simulateReadableStream({
          chunks: answer as never[],
          initialDelayInMs: null,
          chunkDelayInMs: null,
        }),
      };
    },
  });
  return model;
}

const noKeys: Middleware = {
  name: 'no-keys',
  guard: {
    on: ['output', 'input'],
    hold: window(32),
    find: (text) =>
      [...text.matchAll(/sk-\w{1,28}/g)].map((m) => ({ start: m.index, end: m.index + m[0].length })),
  },
};

describe('toAiSdk()', () => {
  it('redacts requests and both generated and streamed answers with the same guard', async () => {
    const model = fake(said('The key is s', 'k-12', '34. Keep it.'));
    const guarded = toAiSdk(model, [noKeys]);
    const generated = await generateText({ model: guarded, prompt: 'My key is sk-abc.' });
    expect(generated.text).toBe('The key is [redacted]. Keep it.');
    let streamed = '';
    for await (const piece of streamText({ model: guarded, prompt: 'Key?' }).textStream) streamed += piece;
    expect(streamed).toBe('The key is [redacted]. Keep it.');
    expect(JSON.stringify(model.doStreamCalls[0]!.prompt)).toContain('My key is [redacted].');
    expect(generated.usage).toMatchObject({ inputTokens: 10, outputTokens: 5, totalTokens: 15 });
    expect(generated.finishReason).toBe('stop');
  });

  it('lets the AI SDK run tools, with calls that the guards have judged', async () => {
    const model = fake(asks('send', { to: 'sk-9' }), said('Sent.'));
    const guard: Middleware = { name: 'g', guard: { on: ['tool-args'], find: noKeys.guard!.find! } };
    const seen: unknown[] = [];
    const send = tool({
      inputSchema: z.object({ to: z.string() }),
      execute: ({ to }) => `to ${seen.push(to)}`,
    });
    const { text, steps } = await generateText({
      model: toAiSdk(model, [guard]),
      tools: { send },
      prompt: 'Send it.',
      stopWhen: stepCountIs(3),
    });
    expect(text).toBe('Sent.');
    expect(seen).toEqual(['[redacted]']);
    expect(steps).toHaveLength(2);
    expect(model.doStreamCalls[1]!.prompt.map(({ role }) => role)).toEqual(['user', 'assistant', 'tool']);
  });

  it('passes the prompt and the options on unchanged if no middleware changes them', async () => {
    const plain = fake(said('Hi.'));
    const wrapped = fake(said('Hi.'));
    const call = {
      system: 'Be brief.',
      messages: [
        {
          role: 'user' as const,
          content: [{ type: 'text' as const, text: 'Look', providerOptions: { fake: { cache: true } } }],
        },
        { role: 'assistant' as const, content: 'I look.' },
        {
          role: 'user' as const,
          content: [{ type: 'file' as const, data: new Uint8Array([1, 2]), mediaType: 'application/pdf' }],
        },
      ],
      temperature: 0.5,
      topK: 3,
      providerOptions: { fake: { x: 1 } },
    };
    for (const model of [plain, toAiSdk(wrapped, [defineMiddleware({ name: 'nothing' })])]) {
      const { textStream } = streamText({ model, ...call });
      for await (const _ of textStream);
    }
    const [{ abortSignal: _, ...before }, { abortSignal: __, ...after }] = [
      plain.doStreamCalls[0]!,
      wrapped.doStreamCalls[0]!,
    ];
    expect(after).toEqual(before);
  });

  it('retries, caches and passes provider errors on unchanged', async () => {
    const overloaded = Object.assign(new Error('overloaded'), { statusCode: 529 });
    const model = fake(overloaded, said('Hello.'));
    const stack = [cache(), retry({ minDelayMs: 0, maxDelayMs: 0 })];
    const wrapped = toAiSdk(model, stack);
    for (let i = 0; i < 2; i++)
      expect((await generateText({ model: wrapped, prompt: 'Hi', maxRetries: 0 })).text).toBe('Hello.');
    expect(model.doStreamCalls).toHaveLength(2);
    const broken = new Error('no such model');
    const failing = toAiSdk(fake(broken), [retry()]);
    await expect(generateText({ model: failing, prompt: 'Hi', maxRetries: 0 })).rejects.toBe(broken);
  });

  it("reports a guard's stop to the AI SDK as a refusal", async () => {
    const stop: Middleware = {
      name: 's',
      guard: { on: ['output'], find: noKeys.guard!.find!, action: 'stop' },
    };
    const model = toAiSdk(fake(said('sk-1')), [stop]);
    await expect(generateText({ model, prompt: 'Hi', maxRetries: 0 })).rejects.toMatchObject({
      code: 'MODEL_CALL_STOPPED',
      data: { reason: 'guardrail', by: 's' },
    });
  });

  it('ends a stream with an error if shown text is taken back, unless it holds the text until it is whole', async () => {
    const cut = [
      ...said('Half an ans').slice(0, 3),
      { type: 'error', error: Object.assign(new Error('reset'), { code: 'ECONNRESET' }) },
    ];
    const answers = [cut, said('A whole answer.')];
    const stack = [retry({ minDelayMs: 0, maxDelayMs: 0 })];
    const errors: unknown[] = [];
    let text = '';
    const broken = streamText({
      model: toAiSdk(fake(...answers), stack),
      prompt: 'Hi',
      onError: ({ error }) => void errors.push(error),
    });
    for await (const piece of broken.textStream) text += piece;
    expect(errors).toMatchObject([{ code: 'ANSWER_TAKEN_BACK' }]);
    expect(text).toBe('Half an ans');
    text = '';
    for await (const piece of streamText({
      model: toAiSdk(fake(...answers), stack, { onReset: 'hold' }),
      prompt: 'Hi',
    }).textStream)
      text += piece;
    expect(text).toBe('A whole answer.');
  });

  it('tells the same of a call as the model does: warnings, what was sent, headers, the raw usage', async () => {
    const chunks = [
      { type: 'stream-start', warnings: [{ type: 'other', message: 'slow' }] },
      ...said('Hello').slice(1, -1),
      { ...finish(), usage: { ...usage, raw: { prompt_tokens: 10 } } },
    ];
    const model = () =>
      new MockLanguageModelV3({
        provider: 'fake',
        doStream: async () => ({
          stream: simulateReadableStream({
            chunks: chunks as never[],
            initialDelayInMs: null,
            chunkDelayInMs: null,
          }),
          request: { body: 'what was sent' },
          response: { headers: { 'x-ratelimit': '9' } },
        }),
      });
    const wanted = {
      warnings: [{ message: 'slow' }],
      request: { body: 'what was sent' },
      response: { headers: { 'x-ratelimit': '9' } },
      usage: { inputTokens: 10, raw: { prompt_tokens: 10 } },
    };
    for (const stack of [[], [noKeys]]) {
      const told = streamText({ model: toAiSdk(model(), stack), prompt: 'Hi' });
      await told.consumeStream();
      const [warnings, request, response, counts] = await Promise.all([
        told.warnings,
        told.request,
        told.response,
        told.usage,
      ]);
      expect({ warnings, request, response, usage: counts }).toMatchObject(wanted);
      expect(await generateText({ model: toAiSdk(model(), stack), prompt: 'Hi' })).toMatchObject(wanted);
    }
  });

  it('does not tell of a model whose answer was replaced by that of another', async () => {
    const cut = [
      ...said('Half').slice(0, 3),
      { type: 'error', error: Object.assign(new Error('reset'), { code: 'ECONNRESET' }) },
    ];
    const first = new MockLanguageModelV3({
      provider: 'fake',
      doStream: async () => ({
        stream: simulateReadableStream({
          chunks: cut as never[],
          initialDelayInMs: null,
          chunkDelayInMs: null,
        }),
        request: { body: 'for the first' },
      }),
    });
    const stack = [fallback({ models: [scriptedModel(['From the spare.'])], on: () => true })];
    const { text, request } = await generateText({ model: toAiSdk(first, stack), prompt: 'Hi' });
    expect([text, request.body]).toEqual(['From the spare.', undefined]);
  });

  it('takes a model with private fields', async () => {
    class Private {
      readonly specificationVersion = 'v3';
      readonly supportedUrls = {};
      readonly #name = 'p';
      get provider() {
        return this.#name;
      }
      get modelId() {
        return `${this.#name}-1`;
      }
      doGenerate(): never {
        throw new Error(`${this.#name} streams`);
      }
      async doStream() {
        return {
          stream: simulateReadableStream({
            chunks: said(`I am ${this.#name}.`) as never[],
            initialDelayInMs: null,
            chunkDelayInMs: null,
          }),
        };
      }
    }
    const model = toAiSdk(Object.freeze(new Private()), [noKeys]);
    expect(model).toBeInstanceOf(Private);
    expect((await generateText({ model, prompt: 'Who?' })).text).toBe('I am p.');
  });

  it('aborts the call when the AI SDK does', async () => {
    const abort = new AbortController();
    let seen: AbortSignal | undefined;
    const model = new MockLanguageModelV3({
      doStream: ({ abortSignal }) => {
        seen = abortSignal;
        abort.abort();
        return new Promise(() => {});
      },
    });
    await expect(
      generateText({ model: toAiSdk(model, []), prompt: 'Hi', abortSignal: abort.signal, maxRetries: 0 }),
    ).rejects.toThrow();
    expect(seen?.aborted).toBe(true);
  });
});

it('toAiSdk() also makes a middleware for wrapLanguageModel', async () => {
  const model = wrapLanguageModel({
    model: fake(said('sk-12 it is')),
    middleware: asLanguageModelMiddleware([noKeys]),
  });
  expect((await generateText({ model, prompt: 'Hi' })).text).toBe('[redacted] it is');
});

describe('a model that cannot stream', () => {
  const whole = {
    content: [
      { type: 'reasoning', text: 'They want sk-99.' },
      { type: 'text', text: 'The key is sk-1234.' },
      { type: 'tool-call', toolCallId: 'c1', toolName: 'look', input: '{"at":"sk-5"}' },
    ],
    finishReason: { unified: 'tool-calls', raw: 'tool-calls' },
    usage,
    warnings: [{ type: 'other', message: 'slow' }],
    response: { id: 'r1', modelId: 'fake-2', timestamp: new Date(0) },
    providerMetadata: { fake: { cached: true } },
  };
  const look = tool({ inputSchema: z.object({ at: z.string() }) });

  it('answers generateText as a whole, under the same guards', async () => {
    const model = new MockLanguageModelV3({ provider: 'fake', doGenerate: whole as never });
    const guarded = toAiSdk(model, [{ ...noKeys, guard: { ...noKeys.guard!, on: ['output', 'thinking'] } }]);
    const result = await generateText({ model: guarded, prompt: 'Key?', tools: { look } });
    expect(result.text).toBe('The key is [redacted].');
    expect(result.reasoningText).toBe('They want [redacted].');
    expect(result.toolCalls).toMatchObject([{ toolName: 'look', input: { at: 'sk-5' } }]);
    expect(result).toMatchObject({ finishReason: 'tool-calls', warnings: [{ message: 'slow' }] });
    expect(result.usage).toMatchObject({ inputTokens: 10, outputTokens: 5 });
    expect(model.doGenerateCalls).toHaveLength(1);
  });

  it('fails with its own error in streamText, and in generateText if it cannot generate either', async () => {
    const model = new MockLanguageModelV3({ provider: 'fake', doGenerate: whole as never });
    const seen: unknown[] = [];
    const { textStream } = streamText({
      model: toAiSdk(model, [noKeys]),
      prompt: 'Key?',
      maxRetries: 0,
      onError: ({ error }) => void seen.push(error),
    });
    for await (const _ of textStream);
    expect(seen).toMatchObject([{ message: 'Not implemented' }]);
    const neither = toAiSdk(new MockLanguageModelV3({ provider: 'fake' }), [noKeys]);
    await expect(generateText({ model: neither, prompt: 'Key?', maxRetries: 0 })).rejects.toThrow(
      'Not implemented',
    );
  });
});

it('middleware that only remember something in a run cell are accepted: toolSelector and a sticky fallback', async () => {
  const spare = scriptedModel(['from the spare model', 'from the spare model']);
  const broken = new MockLanguageModelV3({ doGenerate: () => Promise.reject(new Error('down')) });
  const stack = [
    toolSelector({ maxTools: 3, model: scriptedModel([]) }),
    fallback({ models: [spare], sticky: true, on: () => true }),
  ];
  const model = toAiSdk(broken, stack);
  for (const prompt of ['one', 'two'])
    expect((await generateText({ model, prompt, maxRetries: 0 })).text).toBe('from the spare model');
});

describe('what cannot work inside a model call is refused', () => {
  const cell = defineState({ name: 'count', scope: 'session', initial: 0 });
  it.each<[Middleware, string]>([
    [{ name: 'a', wrapTool: (_, next) => next() }, 'Middleware "a" has `wrapTool`'],
    [{ name: 'b', onRunEnd: () => [] }, '`onRunEnd`'],
    [{ name: 'c', state: [cell], beforeModel() {} }, 'the session cell "count"'],
    [callLimits({ modelCalls: 2 }), 'the run cell "modelCalls"'],
    [budget({ tokens: 100 }), 'An Agent with fromAiSdk(model) runs it as it is.'],
    [{ name: 'd', process: (_, next) => next(), seams: ['tool'] }, 'seams'],
    [{ name: 'e', guard: { on: ['tool-result'], find: () => [] } }, "a guard on 'tool-result'"],
    [{ name: 'f', guard: { on: ['tool-result'], find: () => [] } }, "so put 'request' in its `on`"],
  ])('%#', (middleware, message) => {
    expect(() => asLanguageModelMiddleware([middleware])).toThrow(message);
  });

  it.each<[string, () => unknown, string]>([
    ['options', () => ({ model: scriptedModel([]) }), 'is an object with `model`: pass the model itself.'],
    ['a model of Allium', () => scriptedModel([]), 'is a model of Allium, which goes into an Agent.'],
    ['an agent', () => new Agent({ model: scriptedModel([]) }), 'is an agent.'],
    ['middleware', () => [retry()], 'is a list: the model comes first.'],
    ['nothing', () => undefined, 'is undefined.'],
  ])('and so is %s in the place of the model', (_, first, problem) => {
    expect(() => toAiSdk(first() as never, [])).toThrow(
      `toAiSdk() takes a model of the AI SDK and a list of middleware, as in toAiSdk(openai('gpt-5'), [retry()]). Its first argument ${problem}`,
    );
  });

  it('and wrong options are refused', () => {
    expect(() => asLanguageModelMiddleware([], { onReset: 'x' as never })).toThrow(
      "Expected `onReset` to be 'error' or 'hold'",
    );
    expect(() => toAiSdk({} as never, [])).toThrow('model');
  });
});
