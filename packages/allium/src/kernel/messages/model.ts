/** The model port: one method that streams. A non-streaming answer is a stream read to its end. */
import { invalidOption, isRecord } from '../lib/errors.js';
import { FOREIGN_SETTINGS } from '../lib/foreign-names.js';
import * as kinds from '../lib/kinds.js';
import type { Kind } from '../lib/shapes.js';
import type {
  FileContent,
  FinishReason,
  Message,
  Metadata,
  ProviderContent,
  TextContent,
  ThinkingContent,
  ToolCall,
  Usage,
} from './messages.js';

/** The request to a model. Everything in it is read-only. */
export interface ModelRequest {
  readonly messages: readonly Message[];
  readonly systemPrompt: string;
  readonly tools: readonly ToolSpec[];
  readonly settings: ModelSettings;
}

/** How a tool is shown to a model. */
export interface ToolSpec {
  readonly name: string;
  readonly description: string;
  /** JSON Schema of the arguments, made once per tool. */
  readonly inputSchema: JsonSchema;
  /** JSON Schema of what it returns, if the tool says. Few providers have a place for it. */
  readonly outputSchema?: JsonSchema;
}

/**
 * Where a block ends in the system prompt. It doesn't hold the text, so guards and middleware only have to change it
 * in one place. A block that was changed is no longer told apart.
 */
export interface SystemMark {
  readonly chars: number;
  readonly hash: string;
  readonly metadata?: Metadata;
}

export type JsonSchema = Readonly<Record<string, unknown>>;

export interface ModelSettings {
  /** How many tokens the model may write at most. A budget may lower it. */
  readonly maxOutputTokens?: number;
  /** How random the choice of words is, on the provider's scale. */
  readonly temperature?: number;
  /** Choose only among the likeliest words that together have this probability. */
  readonly topP?: number;
  /** Texts at which the model stops. */
  readonly stopSequences?: readonly string[];
  /** Makes answers repeatable, for models that support it. */
  readonly seed?: number;
  /** Whether the model has to call a tool, and which. */
  readonly toolChoice?: 'auto' | 'none' | 'required' | { readonly tool: string };
  /** JSON Schema that the answer has to follow, for models that support it. */
  readonly responseSchema?: JsonSchema;
  /** Options by provider name. Each provider only sees its own. */
  readonly provider?: Readonly<Record<string, Readonly<Record<string, unknown>>>>;
  /** Metadata of the system prompt, like that of messages: `provider` holds options by provider name, such as a cache marker. */
  readonly systemMetadata?: Metadata;
  /** Where the blocks of the system prompt end, and their metadata. An agent whose `systemPrompt` is a list sets it. */
  readonly systemBlocks?: readonly SystemMark[];
}

/** How each setting is checked. A provider checks its own options. */
export const MODEL_SETTINGS: Kind = kinds.shape(
  {
    maxOutputTokens: kinds.integer(1),
    temperature: kinds.number(0),
    topP: kinds.number(0),
    stopSequences: kinds.listOf(kinds.text, 'a list of texts'),
    seed: kinds.integer(),
    toolChoice: kinds.kind("'auto', 'none', 'required' or { tool: '…' }", isToolChoice),
    responseSchema: kinds.kind('a JSON Schema as an object', isRecord),
    provider: kinds.kind(
      'objects of options by the name of their provider',
      (value) => isRecord(value) && Object.values(value).every((one) => one === undefined || isRecord(one)),
    ),
    systemMetadata: kinds.record,
    systemBlocks: kinds.list,
  } satisfies { [Name in keyof ModelSettings]-?: Kind },
  FOREIGN_SETTINGS,
);

function isToolChoice(value: unknown): boolean {
  if (value === 'auto' || value === 'none' || value === 'required') return true;
  return isRecord(value) && Object.keys(value).length === 1 && typeof value.tool === 'string';
}

/**
 * One piece of a streamed answer. Consecutive pieces of one type form one content block; a `block` key says which block a
 * piece belongs to, so that blocks may interleave.
 */
export type ModelPart =
  | (TextContent & Keyed)
  | (ThinkingContent & Keyed)
  /** A whole call, or its start if `tool-call-delta` pieces with the same id follow. */
  | ToolCall
  | { readonly type: 'tool-call-delta'; readonly id: string; readonly arguments: string }
  | FileContent
  | ProviderContent
  /** The last piece of every complete stream. Without it the answer counts as cut off. */
  | {
      readonly type: 'finish';
      readonly reason: FinishReason;
      readonly usage?: Partial<Usage>;
      readonly metadata?: Metadata;
    };

interface Keyed {
  readonly block?: string | number;
  /** The block is complete, so guards needn't wait for more of it. */
  readonly end?: boolean;
}

/** US dollars per million tokens. */
export interface Price {
  readonly input: number;
  readonly output: number;
  readonly cacheRead?: number;
  readonly cacheWrite?: number;
}

/**
 * A language model.
 *
 * Contract of `stream`: it is called once per attempt. It may throw or reject at any time. It ends with a `finish` piece; if
 * it doesn't return after that, it is abandoned after `teardownTimeoutMs`. It stops when `signal` aborts. The signal is only
 * created when you read it, so a model that doesn't need one pays nothing. It may also return a synchronous iterable.
 */
export interface Model {
  readonly provider: string;
  readonly id: string;
  readonly price?: Price;
  /**
   * False for a model that can't follow `settings.responseSchema`, `'without-tools'` for one that can't when it is offered
   * tools, too: `structuredOutput` then asks through a tool.
   */
  readonly jsonMode?: boolean | 'without-tools';
  /** Tokens that a request and its answer may have together. Some middleware act at a share of it. */
  readonly contextWindow?: number;
  stream(
    request: ModelRequest,
    options: { readonly signal: AbortSignal },
  ): AsyncIterable<ModelPart> | Iterable<ModelPart>;
}

/**
 * A transform of a stream of parts. Each stream gets a new one.
 *
 * Contract: it is synchronous. It may call `emit` any number of times before `part` or `end` return. If they throw, the model
 * call fails.
 */
export interface StreamTransform {
  part(part: ModelPart, emit: (part: ModelPart) => void): void;
  /** Called once when the stream has ended, before its `finish` piece is passed on. */
  end?(emit: (part: ModelPart) => void): void;
}

/** The last one made. Nearly always the same model is asked for, and every answer keeps its name. */
let named = { provider: '', id: '', name: '/' };

/** The name of a model in messages, prices and explanations: `provider/id`. */
export function modelName(model: Pick<Model, 'provider' | 'id'>): string {
  if (typeof model !== 'object' || model === null)
    throw invalidOption('model', 'a model with provider and id', model);
  const { provider, id } = model;
  if (provider !== named.provider || id !== named.id) named = { provider, id, name: `${provider}/${id}` };
  return named.name;
}

export const MODEL: Kind<Model> = kinds.model<Model>();

/** The price of a model; undefined if it isn't known. */
export type PriceOf = (model: Model) => Price | undefined;

/** What this usage costs at this price, in US dollars. */
export function costOf(price: Price, usage: Usage): number {
  const { input, output, cacheRead = input, cacheWrite = input } = price;
  return (
    (usage.inputTokens * input +
      usage.outputTokens * output +
      usage.cacheRead * cacheRead +
      usage.cacheWrite * cacheWrite) /
    1e6
  );
}
