/**
 * Gives the same key to the same question to the same model. Every turn needs one, so nothing is read twice: the hash
 * of a history continues that of its beginning, and other messages and tools are remembered.
 */

import { growsOnly } from '../kernel/journal/history.js';
import { invalidOption } from '../kernel/lib/errors.js';
import { canonicalJson, Hash } from '../kernel/lib/hash.js';
import {
  isFrozenMessage,
  type Message,
  type Metadata,
  NOTHING,
  type TextContent,
  type ToolCall,
} from '../kernel/messages/messages.js';
import type { ModelRequest, ModelSettings, ToolSpec } from '../kernel/messages/model.js';
import { type Tool, toolSpec } from '../kernel/protocol/tool.js';

/** A request and its model. `next()` goes in with one: a `ModelContext`. */
export interface KeyedRequest extends Partial<Omit<ModelRequest, 'tools'>> {
  readonly model: { readonly provider: string; readonly id: string };
  readonly tools?: readonly (ToolSpec | Tool)[];
}

/**
 * A key of messages, prompt, tools and settings: the base of caches and cassettes. Ids, usage and notes that aren't
 * sent to the model don't count; `metadata.provider` is sent, so it does. Equal requests have the same key in every
 * process.
 */
export function requestKey(request: KeyedRequest, scope = ''): string {
  if (typeof request?.model?.id !== 'string' || typeof request.model.provider !== 'string')
    throw invalidOption('request', 'a request with its `model: { provider, id }`', request);
  const { model, messages = NOTHING, systemPrompt = '', tools = NOTHING, settings = {} } = request;
  const { provider, id } = model;
  const { prompt, specs } = offer(tools, systemPrompt);
  return said(messages)
    .copy()
    .hash(prompt)
    .hash(specs)
    .number(scope.length)
    .text(' ')
    .number(provider.length)
    .text(' ')
    .number(id.length)
    .text(' ')
    .text(scope)
    .text(provider)
    .text(id)
    .text(settingsText(settings))
    .digest();
}

const settingsTexts = new WeakMap<object, string>();

/** Remembered for settings that can't change: an agent has one of them, or few. */
function settingsText(settings: ModelSettings): string {
  const known = settingsTexts.get(settings);
  if (known !== undefined) return known;
  const text = canonicalJson(settings);
  const isFixed = Object.isFrozen(settings) && Object.values(settings).every((one) => one !== Object(one));
  if (isFixed) settingsTexts.set(settings, text);
  return text;
}

interface Begun {
  count: number;
  readonly hash: Hash;
}

const histories = new WeakMap<readonly Message[], Begun>();

/** The messages, one after the other. */
function said(messages: readonly Message[]): Hash {
  if (!growsOnly(messages)) {
    const hash = new Hash();
    for (const message of messages) hash.hash(remembered(message));
    return hash;
  }
  let begun = histories.get(messages);
  if (begun === undefined || begun.count > messages.length) {
    begun = { count: 0, hash: new Hash() };
    histories.set(messages, begun);
  }
  for (; begun.count < messages.length; begun.count++) begun.hash.hash(hashOf(messages[begun.count]!));
  return begun.hash;
}

const hashes = new WeakMap<Message, Hash>();

/** For lists that are made again each turn from the same messages. */
function remembered(message: Message): Hash {
  let hash = hashes.get(message);
  if (hash === undefined) {
    hash = hashOf(message);
    if (isFrozenMessage(message)) hashes.set(message, hash);
  }
  return hash;
}

/**
 * Call ids are new for each message, so they only count as links between a call and its result. Pieces are hashed one
 * by one: joining them first costs more than hashing them.
 */
function hashOf(message: Message): Hash {
  const hash = new Hash().text(message.role);
  if (message.role === 'tool') {
    const name = String(message.toolName);
    hash.text(` ${message.isError} `).number(name.length).text(' ').text(name);
  }
  const { content, metadata } = message;
  for (let i = 0; i < content.length; i++) addPart(hash, content[i]!);
  addProvider(hash, metadata);
  return hash;
}

/** The part of the metadata that models are sent. Other notes are not part of the question. */
function addProvider(hash: Hash, metadata: Metadata | undefined): void {
  if (metadata?.provider !== undefined) hash.text('\nprovider ').text(canonicalJson(metadata.provider));
}

/** Each part begins a line and says how long its texts are, so that no two messages read the same. */
function addPart(hash: Hash, part: Message['content'][number]): void {
  if (part.type === 'text' && isBare(part))
    hash.text('\ntext ').number(part.text.length).text(' ').text(part.text);
  else if (part.type !== 'tool-call') hash.text('\njson ').text(canonicalJson(part));
  else addCall(hash, part);
}

function addCall(hash: Hash, part: ToolCall): void {
  if (typeof part.name === 'string' && typeof part.arguments === 'string')
    hash
      .text('\ncall ')
      .number(part.name.length)
      .text(' ')
      .number(part.arguments.length)
      .text(' ')
      .text(part.name)
      .text(part.arguments);
  else hash.text('\ncall ').text(canonicalJson([part.name, part.arguments]));
  addProvider(hash, part.metadata);
}

/** Nothing but text. */
function isBare(part: TextContent): boolean {
  if (typeof part.text !== 'string') return false;
  for (const key in part)
    if (key !== 'type' && key !== 'text' && part[key as keyof typeof part] !== undefined) return false;
  return true;
}

interface Offer {
  readonly specs: Hash;
  text: string;
  prompt: Hash;
}

const offers = new WeakMap<readonly unknown[], Offer>();

/** The tools, and the prompt they last came with: an agent has one list, and usually one prompt. */
function offer(tools: NonNullable<KeyedRequest['tools']>, systemPrompt: string): Offer {
  let found = offers.get(tools);
  if (found?.text === systemPrompt) return found;
  const prompt = new Hash().text(systemPrompt);
  if (found !== undefined) {
    found.text = systemPrompt;
    found.prompt = prompt;
    return found;
  }
  const specs = tools.map((tool) => ('execute' in tool ? toolSpec(tool) : tool));
  found = { specs: new Hash().text(canonicalJson(specs)), text: systemPrompt, prompt };
  if (Object.isFrozen(tools)) offers.set(tools, found);
  return found;
}
