/** Language models of specification v2, v3 and v4 that follow a script, typed by the packages that define them. */
import type {
  LanguageModelV3,
  LanguageModelV3CallOptions,
  LanguageModelV3StreamPart,
} from '@ai-sdk/provider';
import type { LanguageModelV2, LanguageModelV2StreamPart } from '@ai-sdk/provider-v2';
import type { LanguageModelV4, LanguageModelV4StreamPart } from '@ai-sdk/provider-v4';
import type { AiSdkLanguageModel } from '../src/index.js';

export type Version = 'v2' | 'v3' | 'v4';
export const VERSIONS: readonly Version[] = ['v2', 'v3', 'v4'];

// biome-ignore lint/suspicious/noExplicitAny: parts and options of three specifications, and wrong ones on purpose.
export type AnyPart = any;

export interface Call {
  readonly options: AnyPart;
}

export interface Fake {
  readonly model: AiSdkLanguageModel;
  readonly calls: readonly Call[];
  /** How many streams were cancelled. */
  readonly cancelled: number;
}

/** What one call streams: parts, or what is thrown instead of a stream. */
export type Turn = readonly AnyPart[] | { readonly throws: unknown } | { readonly hangs: readonly AnyPart[] };

export interface FakeOptions {
  readonly provider?: string;
  readonly modelId?: string;
}

/** A fake that gives one turn per call, the last one again and again. */
export function fake(
  version: Version,
  turns: readonly (Turn | ((options: AnyPart) => Turn))[],
  options: FakeOptions = {},
): Fake {
  const calls: Call[] = [];
  let cancelled = 0;
  const { provider = 'fake.chat', modelId = 'one' } = options;
  const doStream = async (given: LanguageModelV3CallOptions) => {
    calls.push({ options: given });
    const next = turns[Math.min(calls.length, turns.length) - 1]!;
    const turn = typeof next === 'function' ? next(given) : next;
    if ('throws' in turn) throw turn.throws;
    const hangs = 'hangs' in turn;
    const parts = hangs ? turn.hangs : turn;
    let at = 0;
    const stream = new ReadableStream<AnyPart>({
      pull(controller) {
        if (at < parts.length) controller.enqueue(parts[at++]);
        else if (!hangs) controller.close();
        else return new Promise(() => {});
        return undefined;
      },
      cancel() {
        cancelled++;
      },
    });
    return { stream };
  };
  const common = {
    provider,
    modelId,
    supportedUrls: {},
    doGenerate: () => Promise.reject(new Error('unused')),
  };
  const made: Record<Version, AiSdkLanguageModel> = {
    v2: { ...common, specificationVersion: 'v2', doStream } as LanguageModelV2,
    v3: { ...common, specificationVersion: 'v3', doStream } as LanguageModelV3,
    v4: { ...common, specificationVersion: 'v4', doStream } as unknown as LanguageModelV4,
  };
  return {
    model: made[version],
    calls,
    get cancelled() {
      return cancelled;
    },
  };
}

type Reason = 'stop' | 'tool-calls' | 'length';

/** The last part in the shape of each specification: 10 tokens in (2 from the cache, 1 into it), 5 out (3 thought). */
export function finish(
  version: Version,
  reason: Reason = 'stop',
  providerMetadata?: Record<string, AnyPart>,
): AnyPart {
  const more = providerMetadata && { providerMetadata };
  if (version === 'v2') {
    const usage = {
      inputTokens: 10,
      outputTokens: 5,
      totalTokens: 15,
      cachedInputTokens: 2,
      reasoningTokens: 3,
    };
    return { type: 'finish', finishReason: reason, usage, ...more } satisfies LanguageModelV2StreamPart;
  }
  const usage = {
    inputTokens: { total: 10, noCache: 7, cacheRead: 2, cacheWrite: 1 },
    outputTokens: { total: 5, text: 2, reasoning: 3 },
  };
  const part = { type: 'finish', finishReason: { unified: reason, raw: reason }, usage, ...more } as const;
  return part satisfies LanguageModelV3StreamPart satisfies LanguageModelV4StreamPart;
}

/** Text in pieces, as one block. */
export function text(...pieces: readonly string[]): AnyPart[] {
  return block('text', '0', pieces);
}

export function thinking(
  metadata: Record<string, AnyPart> | undefined,
  ...pieces: readonly string[]
): AnyPart[] {
  const parts = block('reasoning', '0', pieces);
  return metadata ? parts.with(-1, { ...parts.at(-1), providerMetadata: metadata }) : parts;
}

export function block(type: 'text' | 'reasoning', id: string, pieces: readonly string[]): AnyPart[] {
  return [
    { type: `${type}-start`, id },
    ...pieces.map((delta) => ({ type: `${type}-delta`, id, delta })),
    { type: `${type}-end`, id },
  ];
}

/** A call whose arguments come in two pieces. */
export function call(
  id: string,
  toolName: string,
  input: string,
  more: Record<string, AnyPart> = {},
): AnyPart[] {
  const half = input.length >> 1;
  return [
    { type: 'tool-input-start', id, toolName },
    { type: 'tool-input-delta', id, delta: input.slice(0, half) },
    { type: 'tool-input-delta', id, delta: input.slice(half) },
    { type: 'tool-input-end', id },
    { type: 'tool-call', toolCallId: id, toolName, input, ...more },
  ];
}
