/** Messages of people, models and tools. Frozen once they are in a history. */
import { AlliumError, isPlainObject, shown } from '../lib/errors.js';
import * as kinds from '../lib/kinds.js';
import { checkFields } from '../lib/shapes.js';

/** Plain text. */
export interface TextContent {
  readonly type: 'text';
  readonly text: string;
  readonly metadata?: Metadata;
}

/** An image. `data` is base64 text, or a URL. */
export interface ImageContent {
  readonly type: 'image';
  readonly data: string;
  readonly mimeType: string;
  readonly metadata?: Metadata;
}

/** Any other file. `data` is base64 text, or a URL. */
export interface FileContent {
  readonly type: 'file';
  readonly data: string;
  readonly mimeType: string;
  readonly name?: string;
  readonly metadata?: Metadata;
}

/** The model's thinking. `signature` is the provider's; a guard that rewrites the text removes it. */
export interface ThinkingContent {
  readonly type: 'thinking';
  readonly text: string;
  readonly signature?: string;
  readonly redacted?: boolean;
  readonly metadata?: Metadata;
}

/** A tool call. `arguments` is the JSON text exactly as the model wrote it. */
export interface ToolCall {
  readonly type: 'tool-call';
  readonly id: string;
  readonly name: string;
  readonly arguments: string;
  readonly metadata?: Metadata;
}

/** Anything else a provider returns: sources, results of tools it ran itself, … */
export interface ProviderContent {
  readonly type: 'provider';
  readonly kind: string;
  readonly value: unknown;
  readonly metadata?: Metadata;
}

export type UserContent = TextContent | ImageContent | FileContent;
export type AssistantContent = TextContent | ThinkingContent | ToolCall | FileContent | ProviderContent;
export type ToolContent = UserContent;
export type Metadata = Readonly<Record<string, unknown>>;

export interface Usage {
  readonly inputTokens: number;
  readonly outputTokens: number;
  readonly cacheRead: number;
  readonly cacheWrite: number;
  readonly totalTokens: number;
}

/** What was used outside the turns of the loop. Entries have its fields, so it is no interface. */
export type Expense = {
  readonly usage: Usage;
  /** In US dollars, if it is known. */
  readonly costUsd?: number | undefined;
  /** The id of the session of the sub-agent that used it, if one did. */
  readonly from?: string | undefined;
};

export const FINISH_REASONS = [
  'stop',
  'tool-calls',
  'length',
  'content-filter',
  'error',
  'other',
  'aborted',
] as const;

export type FinishReason = (typeof FINISH_REASONS)[number];

/** A message of a person, or written on their behalf. */
export interface UserMessage {
  readonly id: string;
  readonly role: 'user';
  readonly content: readonly UserContent[];
  readonly metadata?: Metadata;
}

/** A model's answer, before it is in a history. */
export interface ModelResponse {
  readonly role: 'assistant';
  readonly content: readonly AssistantContent[];
  readonly usage?: Usage;
  readonly stopReason: FinishReason;
  /** `provider/id` of the model that answered. */
  readonly model?: string;
  readonly metadata?: Metadata;
}

/** A model's answer in the history. */
export interface AssistantMessage extends ModelResponse {
  readonly id: string;
}

/** The result of a tool call in the history. */
export interface ToolMessage {
  readonly id: string;
  readonly role: 'tool';
  readonly toolCallId: string;
  readonly toolName: string;
  readonly content: readonly ToolContent[];
  readonly isError: boolean;
  /** For the application, never sent to the model. */
  readonly details?: unknown;
  readonly metadata?: Metadata;
}

export type Message = UserMessage | AssistantMessage | ToolMessage;

/** A user message as you write it by hand. */
export interface UserInput {
  readonly role: 'user';
  readonly content: string | readonly UserContent[];
  readonly metadata?: Metadata;
}

/** What you can pass as a user message. It gets its id when it is appended. */
export type MessageInput = string | readonly UserContent[] | Message | UserInput;

/** No tokens at all. */
export const NO_USAGE: Usage = Object.freeze({
  inputTokens: 0,
  outputTokens: 0,
  cacheRead: 0,
  cacheWrite: 0,
  totalTokens: 0,
});

/** The usage of a call that reported no tokens: none are counted, and its cost is unknown. */
export const UNKNOWN_USAGE: Usage = Object.freeze({ ...NO_USAGE });

export function isNothing({ totalTokens, inputTokens, outputTokens }: Usage): boolean {
  return totalTokens === 0 && inputTokens === 0 && outputTokens === 0;
}

/** A running sum. What readers get is frozen. */
export class UsageTotal implements Usage {
  inputTokens = 0;
  outputTokens = 0;
  cacheRead = 0;
  cacheWrite = 0;
  totalTokens = 0;

  add(usage: Usage): void {
    this.inputTokens += usage.inputTokens;
    this.outputTokens += usage.outputTokens;
    this.cacheRead += usage.cacheRead;
    this.cacheWrite += usage.cacheWrite;
    this.totalTokens += usage.totalTokens;
  }

  snapshot(): Usage {
    const { inputTokens, outputTokens, cacheRead, cacheWrite, totalTokens } = this;
    return Object.freeze({ inputTokens, outputTokens, cacheRead, cacheWrite, totalTokens });
  }
}

/** Adds costs. An unknown cost makes the sum unknown. */
export function costSum(a: number | undefined, b: number | undefined): number | undefined {
  return a === undefined || b === undefined ? undefined : a + b;
}

/** A user message from text or content. It gets its id when it is appended to a history. */
export function userMessage(content: string | readonly UserContent[], metadata?: Metadata): UserMessage {
  return { id: '', role: 'user', content: partsOf(content), ...(metadata && { metadata }) };
}

/** Content as a list. Its parts are checked when the message is passed in. */
function partsOf<Part>(content: string | readonly Part[]): readonly (Part | TextContent)[] {
  if (typeof content === 'string') return [{ type: 'text', text: content }];
  return contentOf({ content });
}

/** A model response from text or content: for presets, caches and replacements. */
export function assistantMessage(
  content: string | readonly AssistantContent[],
  rest: Partial<Omit<ModelResponse, 'role' | 'content'>> = {},
): ModelResponse {
  const parts = partsOf(content);
  const calls = parts.some((part) => part.type === 'tool-call');
  return { role: 'assistant', content: parts, stopReason: calls ? 'tool-calls' : 'stop', ...rest };
}

/** A user message that no human typed: a nudge, a reminder, a correction. `source` says who wrote it. */
export function syntheticUserMessage(text: string, options: { readonly source: string }): UserMessage {
  checkFields('syntheticUserMessage()', { source: kinds.required(kinds.text) }, options);
  return userMessage(text, { synthetic: true, source: options.source });
}

/** Is it a user message that no human typed? */
export function isSyntheticMessage(message: Message): boolean {
  return message?.metadata?.synthetic === true;
}

/** All text of a message: its text blocks, joined. */
export function textOf(message: { readonly content: readonly { readonly type: string }[] }): string {
  let text = '';
  for (const part of contentOf(message)) if (part.type === 'text') text += (part as TextContent).text;
  return text;
}

/** The tool calls in a message. */
export function toolCallsOf(message: {
  readonly content: readonly { readonly type: string }[];
}): readonly ToolCall[] {
  const content = contentOf(message);
  let calls: ToolCall[] | undefined;
  // By index, here and below: walking a frozen list with `for … of` costs a call for each step.
  for (let i = 0; i < content.length; i++) {
    const part = content[i]!;
    if (part.type === 'tool-call') {
      if (calls === undefined) calls = [part as ToolCall];
      else calls.push(part as ToolCall);
    }
  }
  return calls ?? NOTHING;
}

/** An empty list of anything. */
export const NOTHING: readonly never[] = Object.freeze([]);

function contentOf<Part>(message: { readonly content: readonly Part[] }): readonly Part[] {
  const content = message?.content;
  if (Array.isArray(content)) return content;
  throw new AlliumError(
    'INVALID_MESSAGE',
    `Expected a message with a list of content, got ${shown(message)}.`,
  );
}

/** Freezes a message. Its parts are flat except for metadata, so this is several times cheaper than `deepFreeze`. */
export function freezeMessage<M extends Message | ModelResponse>(message: M): M {
  if (Object.isFrozen(message)) return message;
  const { content, metadata } = message;
  freezeContent(content);
  if (metadata !== undefined) freezeInside(metadata);
  if (message.role === 'assistant' && message.usage !== undefined) Object.freeze(message.usage);
  if (message.role === 'tool' && message.details !== undefined) deepFreeze(message.details);
  return Object.freeze(message);
}

export function freezeContent(content: Message['content']): void {
  for (let i = 0; i < content.length; i++) {
    const part = content[i]!;
    if (part.metadata !== undefined) freezeInside(part.metadata);
    if (part.type === 'provider') freezeInside(part.value);
    Object.freeze(part);
  }
  Object.freeze(content);
}

/** Like `deepFreeze`, but looks inside what is frozen already. The value must have no cycle. */
function freezeInside(value: unknown): void {
  const open = [value];
  while (open.length > 0) {
    const item = open.pop();
    if (item === null || typeof item !== 'object' || (!Array.isArray(item) && !isPlainObject(item))) continue;
    Object.freeze(item);
    for (const inner of Object.values(item)) open.push(inner);
  }
}

/** Is the message frozen, including its content? */
export function isFrozenMessage(message: Message): boolean {
  const { content } = message;
  return (
    Object.isFrozen(message) && Object.isFrozen(content) && content.every((part) => Object.isFrozen(part))
  );
}

/** Freezes plain objects and arrays all the way down; leaves instances of classes alone. Returns its argument. */
export function deepFreeze<T>(value: T): T {
  if (value === null || typeof value !== 'object' || Object.isFrozen(value)) return value;
  // No recursion, because a value may be nested deeper than calls can be.
  const open: object[] = [value];
  for (let item = open.pop(); item !== undefined; item = open.pop()) {
    const proto = Object.getPrototypeOf(item);
    if (proto !== Object.prototype && proto !== Array.prototype && proto !== null) continue;
    Object.freeze(item);
    for (const key in item) {
      const inner: unknown = item[key as never];
      if (typeof inner === 'object' && inner !== null && !Object.isFrozen(inner)) open.push(inner);
    }
  }
  return value;
}
