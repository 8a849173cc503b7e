/** The model port: one method that streams. A non-streaming answer is a stream read to its end. */
import { invalidOption, isRecord } from '../lib/errors.js';
import { FOREIGN_SETTINGS } from '../lib/foreign-names.js';
import * as kinds from '../lib/kinds.js';
import { checkValue, type Kind } from '../lib/shapes.js';
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

/** What a model is asked. Everything in it is read-only. */
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

export type JsonSchema = Readonly<Record<string, unknown>>;

export interface ModelSettings {
  /** The most the model may write. A budget may lower it. */
  readonly maxOutputTokens?: number;
  /** How free the model is in its choice of words, on the scale of its provider. */
  readonly temperature?: number;
  /** Only the likeliest words that together have this probability. */
  readonly topP?: number;
  /** Texts at which the model stops. */
  readonly stopSequences?: readonly string[];
  /** For models that can repeat themselves. */
  readonly seed?: number;
  /** Whether the model has to call a tool, and which. */
  readonly toolChoice?: 'auto' | 'none' | 'required' | { readonly tool: string };
  /** JSON Schema the answer has to follow, for models that can. */
  readonly responseSchema?: JsonSchema;
  /** Options by provider name; only the provider they are named for sees them. */
  readonly provider?: Readonly<Record<string, Readonly<Record<string, unknown>>>>;
  /** Of the system prompt, as messages have it: `provider` holds options by provider name, such as a cache marker. */
  readonly systemMetadata?: Metadata;
}

/** What each setting has to be. Options for one provider are the provider's to check. */
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
  } satisfies { [Name in keyof ModelSettings]-?: Kind },
  FOREIGN_SETTINGS,
);

function isToolChoice(value: unknown): boolean {
  if (value === 'auto' || value === 'none' || value === 'required') return true;
  return isRecord(value) && Object.keys(value).length === 1 && typeof value.tool === 'string';
}

/**
 * One piece of a streamed answer: content, or the beginning of some. Consecutive pieces of one type form one content
 * block; a `block` key, where given, says which block a piece belongs to, so that blocks may interleave.
 */
export type ModelPart =
  | (TextContent & Keyed)
  | (ThinkingContent & Keyed)
  /** A whole call, or its beginning when `tool-call-delta` pieces with the same id follow. */
  | ToolCall
  | { readonly type: 'tool-call-delta'; readonly id: string; readonly arguments: string }
  | FileContent
  | ProviderContent
  /** The last piece of every complete stream: without it the answer counts as cut off. */
  | {
      readonly type: 'finish';
      readonly reason: FinishReason;
      readonly usage?: Partial<Usage>;
      readonly metadata?: Metadata;
    };

interface Keyed {
  readonly block?: string | number;
  /** Nothing more comes of this block: guards need not hold back for it what follows. */
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
 * Contract of `stream`: it is called once per attempt and must not be called again to go on; it may throw or
 * reject at any time; it ends with a `finish` piece, and if it then goes on without a word it is let go after
 * `teardownTimeoutMs`; it stops when `signal` aborts, unless that piece is all that was left. Reading `signal` is what
 * makes it exist, so a model that needs none costs none. It may also return a plain (synchronous) iterable.
 */
export interface Model {
  readonly provider: string;
  readonly id: string;
  readonly price?: Price;
  /** False for a model that cannot follow `settings.responseSchema`: `structuredOutput` then asks through a tool. */
  readonly jsonMode?: boolean;
  /** Tokens that a request and its answer may have together, for middleware that go by a part of it. */
  readonly contextWindow?: number;
  stream(
    request: ModelRequest,
    options: { readonly signal: AbortSignal },
  ): AsyncIterable<ModelPart> | Iterable<ModelPart>;
}

/**
 * A transform of a stream of parts; made anew for each stream.
 *
 * Contract: it works at once. `emit` may be called any number of times, before `part` or `end` return; what they throw
 * fails the model call.
 */
export interface StreamTransform {
  part(part: ModelPart, emit: (part: ModelPart) => void): void;
  /** Called once when the stream has ended, before its `finish` piece goes on. */
  end?(emit: (part: ModelPart) => void): void;
}

/** `provider/id`: how a model is named in messages, prices and explanations. */
export function modelName(model: Pick<Model, 'provider' | 'id'>): string {
  if (typeof model !== 'object' || model === null)
    throw invalidOption('model', 'a model with provider and id', model);
  return `${model.provider}/${model.id}`;
}

export const MODEL: Kind<Model> = kinds.model<Model>();

/** Throws for something that is not a model. */
export function checkModel(option: string, model: unknown): void {
  checkValue(option, MODEL, model);
}
