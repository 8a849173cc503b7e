/** The wires of four provider packages: how a model is made for each, and how an answer looks on it. */
import { createAnthropic } from '@ai-sdk/anthropic';
import { createGoogleGenerativeAI } from '@ai-sdk/google';
import { createOpenAI } from '@ai-sdk/openai';
import { createOpenAICompatible } from '@ai-sdk/openai-compatible';
import type { Model } from 'allium';
import { type FromAiSdkOptions, fromAiSdk } from '../src/index.js';

/** The bodies of requests, which differ from wire to wire. */
// biome-ignore lint/suspicious/noExplicitAny: tests look into them freely.
type Body = any;

export interface Wire {
  readonly name: string;
  model(url: string, options?: FromAiSdkOptions): Model;
  /** Makes it think aloud. */
  readonly thinking: Record<string, Record<string, unknown>>;
  /** Server-sent events of a text in pieces: the beginning, one frame per piece, the end. */
  frames(pieces: readonly string[]): { before: string[]; pieces: string[]; after: string[] };
  /** Server-sent events of an answer that calls tools. */
  calls(calls: readonly { readonly id: string; readonly name: string; readonly input: string }[]): string[];
  /** The body of an error. */
  error(type: string): object;
  /** The image in a request body as base64, and the text of the last tool result. */
  imageIn(body: Body): string | undefined;
  resultIn(body: Body): string | undefined;
}

const data = (value: unknown) => `data: ${typeof value === 'string' ? value : JSON.stringify(value)}\n\n`;
const event = (value: { readonly type: string } & Body) => `event: ${value.type}\n${data(value)}`;
const apiKey = 'test-key';
const USAGE = { prompt_tokens: 7, completion_tokens: 3, total_tokens: 10 };

const chat = {
  frames(pieces: readonly string[]) {
    const chunk = (delta: object, finish_reason: string | null = null, more: object = {}) =>
      data({
        id: 'c1',
        object: 'chat.completion.chunk',
        created: 1,
        model: 'm',
        choices: [{ index: 0, delta, finish_reason }],
        ...more,
      });
    return {
      before: [chunk({ role: 'assistant', content: '' })],
      pieces: pieces.map((content) => chunk({ content })),
      after: [
        chunk({}, 'stop'),
        data({ id: 'c1', created: 1, model: 'm', choices: [], usage: USAGE }),
        data('[DONE]'),
      ],
    };
  },
  calls(calls: readonly { readonly id: string; readonly name: string; readonly input: string }[]) {
    const chunk = (delta: object, finish_reason: string | null = null) =>
      data({ id: 'c1', created: 1, model: 'm', choices: [{ index: 0, delta, finish_reason }] });
    return [
      ...calls.flatMap(({ id, name, input }, index) => [
        chunk({ tool_calls: [{ index, id, type: 'function', function: { name, arguments: '' } }] }),
        chunk({ tool_calls: [{ index, function: { arguments: input } }] }),
      ]),
      chunk({}, 'tool_calls'),
      data({ id: 'c1', created: 1, model: 'm', choices: [], usage: USAGE }),
      data('[DONE]'),
    ];
  },
  error: (type: string) => ({ error: { message: 'Not now.', type, code: type } }),
  imageIn: (body: Body) =>
    body.messages
      .flatMap((message: Body) => (Array.isArray(message.content) ? message.content : []))
      .find((part: Body) => part.type === 'image_url')
      ?.image_url.url.split(',')[1],
  resultIn: (body: Body) => body.messages.findLast((message: Body) => message.role === 'tool')?.content,
};

export const openaiChat: Wire = {
  ...chat,
  name: '@ai-sdk/openai (chat)',
  model: (url, options) => fromAiSdk(createOpenAI({ apiKey, baseURL: `${url}/v1` }).chat('gpt-x'), options),
  thinking: {},
};

export const openaiCompatible: Wire = {
  ...chat,
  name: '@ai-sdk/openai-compatible',
  model(url, options) {
    const settings = {
      name: 'local',
      baseURL: `${url}/v1`,
      includeUsage: true,
      supportsStructuredOutputs: true,
    };
    return fromAiSdk(createOpenAICompatible(settings)('llama'), options);
  },
  thinking: {},
};

export const openaiResponses: Wire = {
  name: '@ai-sdk/openai (responses)',
  model: (url, options) => fromAiSdk(createOpenAI({ apiKey, baseURL: `${url}/v1` })('gpt-5'), options),
  thinking: { openai: { reasoningSummary: 'auto' } },
  frames(pieces) {
    const item = { type: 'message', id: 'msg_1', role: 'assistant', status: 'in_progress', content: [] };
    const at = { item_id: 'msg_1', output_index: 0, content_index: 0 };
    return {
      before: [
        event({ type: 'response.created', response: { id: 'r1', created_at: 1, model: 'gpt-5' } }),
        event({ type: 'response.output_item.added', output_index: 0, item }),
      ],
      pieces: pieces.map((delta) =>
        event({ type: 'response.output_text.delta', ...at, delta, logprobs: [] }),
      ),
      after: [
        event({ type: 'response.output_item.done', output_index: 0, item: { ...item, status: 'completed' } }),
        completed(),
      ],
    };
  },
  calls(calls) {
    return [
      event({ type: 'response.created', response: { id: 'r1', created_at: 1, model: 'gpt-5' } }),
      ...calls.flatMap(({ id, name, input }, output_index) => {
        const item = { type: 'function_call', id: `fc_${id}`, call_id: id, name };
        return [
          event({ type: 'response.output_item.added', output_index, item: { ...item, arguments: '' } }),
          event({
            type: 'response.function_call_arguments.delta',
            item_id: item.id,
            output_index,
            delta: input,
          }),
          event({
            type: 'response.output_item.done',
            output_index,
            item: { ...item, arguments: input, status: 'completed' },
          }),
        ];
      }),
      completed(),
    ];
  },
  error: chat.error,
  imageIn: (body) =>
    body.input
      .flatMap((message: Body) => (Array.isArray(message.content) ? message.content : []))
      .find((part: Body) => part.type === 'input_image')
      ?.image_url.split(',')[1],
  resultIn: (body) => body.input.findLast((item: Body) => item.type === 'function_call_output')?.output,
};

function completed(): string {
  const usage = { input_tokens: 7, output_tokens: 3 };
  return event({ type: 'response.completed', response: { id: 'r1', usage } });
}

export const anthropic: Wire = {
  name: '@ai-sdk/anthropic',
  model: (url, options) =>
    fromAiSdk(createAnthropic({ apiKey, baseURL: `${url}/v1` })('claude-sonnet-4-5'), options),
  thinking: { anthropic: { thinking: { type: 'enabled', budgetTokens: 1024 } } },
  frames(pieces) {
    return {
      before: [
        started(),
        event({ type: 'content_block_start', index: 0, content_block: { type: 'text', text: '' } }),
      ],
      pieces: pieces.map((text) =>
        event({ type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text } }),
      ),
      after: [event({ type: 'content_block_stop', index: 0 }), ...stopped('end_turn')],
    };
  },
  calls(calls) {
    return [
      started(),
      ...calls.flatMap(({ id, name, input }, index) => [
        event({
          type: 'content_block_start',
          index,
          content_block: { type: 'tool_use', id, name, input: {} },
        }),
        event({
          type: 'content_block_delta',
          index,
          delta: { type: 'input_json_delta', partial_json: input },
        }),
        event({ type: 'content_block_stop', index }),
      ]),
      ...stopped('tool_use'),
    ];
  },
  error: (type) => ({ type: 'error', error: { type, message: 'Not now.' } }),
  imageIn: (body) =>
    body.messages.flatMap((message: Body) => message.content).find((part: Body) => part.type === 'image')
      ?.source.data,
  resultIn(body) {
    const results = body.messages
      .flatMap((message: Body) => message.content)
      .filter((part: Body) => part.type === 'tool_result');
    const { content } = results.at(-1) ?? {};
    return typeof content === 'string' ? content : content?.[0]?.text;
  },
};

function started(): string {
  const message = {
    id: 'msg_1',
    type: 'message',
    role: 'assistant',
    content: [],
    model: 'claude',
    usage: { input_tokens: 7, output_tokens: 1 },
  };
  return event({ type: 'message_start', message });
}

function stopped(stop_reason: string): string[] {
  return [
    event({
      type: 'message_delta',
      delta: { stop_reason, stop_sequence: null },
      usage: { output_tokens: 3 },
    }),
    event({ type: 'message_stop' }),
  ];
}

export const google: Wire = {
  name: '@ai-sdk/google',
  model: (url, options) =>
    fromAiSdk(createGoogleGenerativeAI({ apiKey, baseURL: `${url}/v1beta` })('gemini-x'), options),
  thinking: { google: { thinkingConfig: { includeThoughts: true } } },
  frames(pieces) {
    const usageMetadata = { promptTokenCount: 7, candidatesTokenCount: 3, totalTokenCount: 10 };
    return {
      before: [],
      pieces: pieces.map((text) =>
        data({ candidates: [{ content: { role: 'model', parts: [{ text }] }, index: 0 }] }),
      ),
      after: [
        data({
          candidates: [{ content: { role: 'model', parts: [] }, finishReason: 'STOP', index: 0 }],
          usageMetadata,
        }),
      ],
    };
  },
  calls(calls) {
    const usageMetadata = { promptTokenCount: 7, candidatesTokenCount: 3, totalTokenCount: 10 };
    const parts = calls.map(({ name, input }) => ({
      functionCall: { name, args: JSON.parse(input) },
      thoughtSignature: `seal-${name}`,
    }));
    return [
      data({
        candidates: [{ content: { role: 'model', parts }, finishReason: 'STOP', index: 0 }],
        usageMetadata,
      }),
    ];
  },
  error: (type) => ({ error: { code: 503, message: 'Not now.', status: type } }),
  imageIn: (body) =>
    body.contents.flatMap((message: Body) => message.parts).find((part: Body) => part.inlineData)?.inlineData
      .data,
  resultIn: (body) =>
    body.contents.flatMap((message: Body) => message.parts).findLast((part: Body) => part.functionResponse)
      ?.functionResponse.response.content,
};

export const WIRES: readonly Wire[] = [openaiResponses, openaiChat, anthropic, google, openaiCompatible];

/** All frames of a text, in order. */
export function textFrames(wire: Wire, ...pieces: readonly string[]): string[] {
  const { before, pieces: middle, after } = wire.frames(pieces);
  return [...before, ...middle, ...after];
}
