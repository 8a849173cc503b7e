/** A prompt of the AI SDK as our messages, and back: what nobody changed stays as it was. */

import {
  type AssistantContent,
  type FileContent,
  type ImageContent,
  type Message,
  type Metadata,
  type ModelRequest,
  type ToolCall,
  type ToolContent,
  type ToolMessage,
  toolCallsOf,
  type UserContent,
} from 'allium';
import { isObject, type Loose } from './language-model.js';
import { type PromptMessage, type PromptOptions, type PromptPart, toPrompt } from './prompt.js';
import { mergeOptions, type ProviderOptions } from './provider-options.js';

export interface ReadPrompt {
  readonly systemPrompt: string;
  readonly messages: readonly Message[];
  /** The prompt for a request that was made from this one. */
  write(request: Pick<ModelRequest, 'systemPrompt' | 'messages'>, options: PromptOptions): PromptMessage[];
}

/**
 * What a message was made from: a message of the prompt, or a part of one that holds the results of several calls.
 */
interface Origin {
  readonly message: Message;
  /** None for a result that the prompt lacks. */
  readonly original: PromptMessage | PromptPart | undefined;
  /** Equal for messages with the same content. */
  readonly key: string;
}

type Unkeyed = Omit<Origin, 'key'>;

export function readPrompt(prompt: readonly PromptMessage[]): ReadPrompt {
  const systems = prompt.filter(({ role }) => role === 'system');
  const systemPrompt = systems.map(({ content }) => String(content)).join('\n\n');
  const origins = answered(prompt.flatMap(originsOf)).map((one) => ({ ...one, key: keyOf(one.message) }));
  return {
    systemPrompt,
    messages: origins.map(({ message }) => message),
    write({ systemPrompt: system, messages }, options) {
      const head =
        system === systemPrompt ? marked(systems, options.systemOptions) : toPrompt(system, [], options);
      const same = head === systems && messages.length === origins.length && messages.every(isSame, origins);
      return same ? [...prompt] : [...head, ...writeMessages(messages, origins, options)];
    },
  };
}

/** The system prompt with options that a middleware has set, such as a cache marker. */
function marked(systems: readonly PromptMessage[], options: unknown): readonly PromptMessage[] {
  const last = systems.at(-1);
  if (!last || !isObject(options)) return systems;
  const own = last.providerOptions as ProviderOptions | undefined;
  return [...systems.slice(0, -1), { ...last, providerOptions: mergeOptions(own, options)! }];
}

function isSame(this: readonly Origin[], message: Message, index: number): boolean {
  const { key, message: before } = this[index]!;
  return keyOf(message) === key && optionsIn(message) === optionsIn(before);
}

function optionsIn({ metadata }: Message): string | undefined {
  return JSON.stringify(metadata?.provider);
}

/** The original, with the options that the message has by now. */
function withOptionsOf<T extends PromptMessage | PromptPart>(message: Message, origin: Origin): T {
  const original = origin.original as T;
  if (optionsIn(message) === optionsIn(origin.message)) return original;
  return { ...original, providerOptions: message.metadata?.provider };
}

/**
 * As histories of ours are: every call has a result, in the order of the calls. Version 5 has results in the order they came
 * in, and lets calls without one pass.
 */
function answered(origins: readonly Unkeyed[]): readonly Unkeyed[] {
  const all: Unkeyed[] = [];
  for (let i = 0; i < origins.length; ) {
    const { message } = origins[i]!;
    all.push(origins[i++]!);
    if (message.role !== 'assistant') continue;
    const results: Unkeyed[] = [];
    while (origins[i]?.message.role === 'tool') results.push(origins[i++]!);
    for (const call of toolCallsOf(message)) {
      const at = results.findIndex((one) => (one.message as ToolMessage).toolCallId === call.id);
      all.push(...(at < 0 ? [{ message: noResult(call), original: undefined }] : results.splice(at, 1)));
    }
    all.push(...results);
  }
  return all;
}

function noResult({ id: toolCallId, name: toolName }: ToolCall): Message {
  const content = [{ type: 'text' as const, text: 'No result.' }];
  return { id: '', role: 'tool', toolCallId, toolName, content, isError: true };
}

function originsOf(original: PromptMessage): Unkeyed[] {
  const parts = Array.isArray(original.content) ? original.content : [];
  const metadata = metadataOf(original.providerOptions);
  switch (original.role) {
    case 'system':
      return [];
    case 'user':
      return [{ message: { id: '', role: 'user', content: parts.flatMap(userPart), ...metadata }, original }];
    case 'assistant': {
      const content = parts.flatMap(assistantPart);
      const stopReason = content.some(({ type }) => type === 'tool-call') ? 'tool-calls' : 'stop';
      return [{ message: { id: '', role: 'assistant', content, stopReason, ...metadata }, original }];
    }
    case 'tool':
      return parts
        .filter(({ type }) => type === 'tool-result')
        .map((part) => ({ message: resultOf(part), original: part }));
  }
}

/** In order: a message with the content of one that was read is that one. Others are written anew. */
function writeMessages(
  messages: readonly Message[],
  origins: readonly Origin[],
  options: PromptOptions,
): PromptMessage[] {
  const prompt: PromptMessage[] = [];
  let from = 0;
  let results: PromptPart[] | undefined;
  for (const message of messages) {
    const key = keyOf(message);
    const at = origins.findIndex((one, index) => index >= from && one.key === key);
    if (at >= 0) from = at + 1;
    if (at >= 0 && origins[at]!.original === undefined) continue;
    const written = at < 0 ? toPrompt('', [message], options)[0] : undefined;
    if (message.role !== 'tool') {
      results = undefined;
      const whole = at < 0 ? written : withOptionsOf<PromptMessage>(message, origins[at]!);
      if (whole) prompt.push(whole);
      continue;
    }
    if (!results) {
      results = [];
      prompt.push({ role: 'tool', content: results });
    }
    results.push(
      at < 0 ? (written!.content as PromptPart[])[0]! : withOptionsOf<PromptPart>(message, origins[at]!),
    );
  }
  return prompt;
}

function keyOf(message: Message): string {
  const { role, content } = message;
  return JSON.stringify(
    role === 'tool' ? [role, content, message.toolCallId, message.isError] : [role, content],
  );
}

function metadataOf(provider: unknown): { metadata?: Metadata } {
  return isObject(provider) ? { metadata: { provider } as Metadata } : {};
}

function userPart(part: PromptPart): UserContent[] {
  const metadata = metadataOf(part.providerOptions);
  if (part.type === 'text') return [{ type: 'text', text: String(part.text), ...metadata }];
  return part.type === 'file' ? [{ ...fileOf(part), ...metadata }] : [];
}

function assistantPart(part: PromptPart): AssistantContent[] {
  const metadata = metadataOf(part.providerOptions);
  switch (part.type) {
    case 'text':
      return [{ type: 'text', text: String(part.text), ...metadata }];
    case 'reasoning':
      return [{ type: 'thinking', text: String(part.text), ...metadata }];
    case 'tool-call': {
      const { toolCallId, toolName, input } = part;
      if (part.providerExecuted === true) return [providerPart(part)];
      return [
        {
          type: 'tool-call',
          id: String(toolCallId),
          name: String(toolName),
          arguments: JSON.stringify(input ?? {}),
          ...metadata,
        },
      ];
    }
    case 'file': {
      const { data, mimeType } = fileOf(part);
      return [{ type: 'file', data, mimeType, ...metadata }];
    }
    default:
      return [providerPart(part)];
  }
}

function providerPart({ type, providerOptions, ...value }: PromptPart): AssistantContent {
  return {
    type: 'provider',
    kind: type,
    value: JSON.parse(JSON.stringify(value)),
    ...metadataOf(providerOptions),
  };
}

function fileOf({ mediaType, data: given, filename }: Loose): ImageContent | FileContent {
  const mimeType = String(mediaType);
  const data = dataOf(given);
  if (mimeType.startsWith('image/')) return { type: 'image', data, mimeType };
  return { type: 'file', data, mimeType, ...(typeof filename === 'string' && { name: filename }) };
}

/** Base64 text or an address. */
function dataOf(data: unknown): string {
  if (data instanceof URL) return data.href;
  if (data instanceof Uint8Array)
    return Buffer.from(data.buffer, data.byteOffset, data.byteLength).toString('base64');
  if (isObject(data)) return dataOf(data.type === 'url' ? data.url : data.data);
  return String(data);
}

function resultOf(part: PromptPart): Message {
  const output = (isObject(part.output) ? part.output : {}) as Loose;
  const isError =
    output.type === 'error-text' || output.type === 'error-json' || output.type === 'execution-denied';
  return {
    id: '',
    role: 'tool',
    toolCallId: String(part.toolCallId),
    toolName: String(part.toolName),
    content: outputContent(output),
    isError,
    ...metadataOf(part.providerOptions),
  };
}

export function outputContent({ type, value, reason }: Loose): ToolContent[] {
  if (type === 'text' || type === 'error-text') return [{ type: 'text', text: String(value) }];
  if (type === 'execution-denied')
    return [{ type: 'text', text: `Not run: ${reason ?? 'it was not approved.'}` }];
  if (type !== 'content' || !Array.isArray(value))
    return [{ type: 'text', text: JSON.stringify(value ?? null) }];
  return (value as Loose[]).map((part): ToolContent => {
    if (part.type === 'text') return { type: 'text', text: String(part.text) };
    const address = typeof part.url === 'string' ? part.url : undefined;
    if (address === undefined && part.data === undefined) return { type: 'text', text: JSON.stringify(part) };
    const image = String(part.type).startsWith('image') || String(part.mediaType).startsWith('image/');
    const mimeType =
      part.mediaType === undefined
        ? image
          ? 'image/*'
          : 'application/octet-stream'
        : String(part.mediaType);
    return { type: image ? 'image' : 'file', data: address ?? dataOf(part.data), mimeType };
  });
}
