/** Our messages in the format of AI SDK prompts. */
import type {
  AssistantContent,
  AssistantMessage,
  Message,
  Metadata,
  ProviderContent,
  SystemBlock,
  ThinkingContent,
  ToolCall,
  ToolMessage,
  UserMessage,
} from 'allium';
import { digestOf, isUntouched } from './digest.js';
import { isObject, type SpecVersion } from './language-model.js';
import { isMistral, mistralId, READ } from './mistral.js';
import type { AiSdkMetadata, CallMetadata } from './part-mapper.js';
import { filePart, outputOf } from './prompt-content.js';
import { keysOf, type OptionKeys, optionsFor, providerOptionsOf } from './provider-options.js';
import { putSeal } from './seal.js';
import { MAY_BE_HALF, wellFormed, wellFormedValue } from './well-formed.js';

/** A message or part of a prompt. The three specifications differ in few places, so one loose type does for all. */
export type PromptPart = { type: string; providerOptions?: Record<string, unknown> } & Record<
  string,
  unknown
>;
export type PromptMessage = {
  role: 'system' | 'user' | 'assistant' | 'tool';
  content: string | PromptPart[];
  providerOptions?: Record<string, unknown>;
};

/** A message of a user or the model. */
type Spoken = PromptMessage & { content: PromptPart[] };

export interface PromptOptions {
  readonly version: SpecVersion;
  /** As in `message.model`, before the slash: who may see its own metadata again. */
  readonly provider: string;
  /** Its name in `message.model`. */
  readonly model?: string;
  /** The names under which it finds its options. `all`: the prompt was written for it, so ids stay, too. */
  readonly keys: OptionKeys;
  /** Options of the system message, such as a cache marker. */
  readonly systemOptions?: unknown;
  /** The system prompt block by block, if it has several. */
  readonly systemBlocks?: readonly SystemBlock[] | undefined;
  /** The converted messages for this model: those of a history are frozen, so each is converted once. */
  readonly made?: WeakMap<Message, unknown>;
}

/** The prompt for one model, without what another provider reported about its answers, and without its thinking. */
export function toPrompt(
  systemPrompt: string,
  messages: readonly Message[],
  options: PromptOptions,
): PromptMessage[] {
  const prompt: PromptMessage[] = [];
  if (options.systemBlocks) {
    for (const { text, metadata } of options.systemBlocks) {
      const own = optionsFor(providerOptionsOf(metadata), options.keys);
      if (!isBlank(text))
        prompt.push({ role: 'system', content: wellFormed(text), ...(own && { providerOptions: own }) });
    }
  } else if (!isBlank(systemPrompt)) {
    const own = optionsFor(options.systemOptions, options.keys);
    prompt.push({ role: 'system', content: wellFormed(systemPrompt), ...(own && { providerOptions: own }) });
  }
  let results: PromptPart[] | undefined;
  const native = new Set<string>();
  for (const message of messages) {
    if (message.role === 'assistant' && options.model !== undefined && message.model === options.model)
      for (const part of message.content)
        if (part.type === 'tool-call' && isNative(part)) native.add(part.id);
    if (message.role === 'tool') {
      // Results of one turn belong in one message.
      if (!results) {
        results = [];
        prompt.push({ role: 'tool', content: results });
      }
      results.push(
        once(message, options, () => toolResult(message, options, native.has(message.toolCallId))),
      );
      continue;
    }
    const { role, content, providerOptions } =
      message.role === 'user' ? once(message, options, user) : once(message, options, assistant);
    if (content.length === 0) continue;
    if (results && role === 'user' && isMistral(options))
      prompt.push({ role: 'assistant', content: [{ type: 'text', text: READ }] });
    results = undefined;
    // Its own lists: a wrapper of a language model may add to its prompt.
    const parts = [...content];
    prompt.push(providerOptions ? { role, content: parts, providerOptions } : { role, content: parts });
  }
  return prompt;
}

function once<M extends Message, T>(
  message: M,
  options: PromptOptions,
  make: (message: M, options: PromptOptions) => T,
): T {
  const { made } = options;
  if (made === undefined || !Object.isFrozen(message)) return make(message, options);
  let known = made.get(message) as T | undefined;
  if (known === undefined) {
    known = make(message, options);
    made.set(message, known);
  }
  return known;
}

function user({ content, metadata }: UserMessage, options: PromptOptions): Spoken {
  const parts: PromptPart[] = [];
  // A message of blanks is for the provider to judge.
  const hasMore = content.some((part) => part.type !== 'text' || !isBlank(part.text));
  for (const part of content) {
    const own = optionsFor(providerOptionsOf(part.metadata), options.keys);
    if (part.type !== 'text') parts.push(withOptions(filePart(part, options.version), own));
    else if (own || (hasMore ? !isBlank(part.text) : part.text !== ''))
      parts.push(withOptions({ type: 'text', text: wellFormed(part.text) }, own));
  }
  return message('user', parts, metadata, options);
}

function message(
  role: 'user' | 'assistant',
  content: PromptPart[],
  metadata: Metadata | undefined,
  { keys }: PromptOptions,
): Spoken {
  const own = optionsFor(providerOptionsOf(metadata), keys);
  return { role, content, ...(own && { providerOptions: own }) };
}

/** What is known about the assistant message whose parts are converted. */
interface Origin {
  readonly options: PromptOptions;
  /** Another provider wrote it. */
  readonly foreign: boolean;
  /** This very model wrote it. */
  readonly own: boolean;
  /** The names under which that provider finds its options, which are not sent. */
  readonly without: ReadonlySet<string> | undefined;
  /** Some of its thinking is gone, so what refers to it can't be sent either. */
  readonly torn: boolean;
}

function assistant(given: AssistantMessage, options: PromptOptions): Spoken {
  return message('assistant', [...assistantParts(given, options).values()], given.metadata, options);
}

/** What is sent of an answer, with what the provider wants to see again of it. */
export function assistantParts(
  given: AssistantMessage,
  options: PromptOptions,
): ReadonlyMap<AssistantContent, PromptPart> {
  const author = given.model?.slice(0, given.model.indexOf('/'));
  const foreign = author !== undefined && author !== options.provider;
  const aiSdk = given.metadata?.aiSdk as AiSdkMetadata | undefined;
  const calls = given.content.filter((part) => part.type === 'tool-call');
  const late = (part: AssistantContent) =>
    part.type === 'tool-call' ? lateOf(aiSdk, part, calls) : undefined;
  const content = foreign
    ? given.content
    : given.content.filter((part, i) => isFollowed(part, given.content.slice(i + 1), late));
  const intact = content.filter(
    (part) => part.type === 'thinking' && part.metadata && untouched(part),
  ).length;
  const torn = !foreign && intact < (aiSdk?.thinking ?? 0);
  const own = given.model !== undefined && given.model === options.model;
  const origin: Origin = { options, foreign, own, without: foreign ? keysOf(author) : undefined, torn };
  const parts = new Map<AssistantContent, PromptPart>();
  for (const part of content) {
    const made = assistantPart(part, late(part), origin);
    if (made) parts.set(part, made);
  }
  return parts;
}

/** OpenAI refuses thinking by name unless the text or call that it led to follows by name, and so unchanged. */
function isFollowed(
  part: AssistantContent,
  rest: readonly AssistantContent[],
  late: (part: AssistantContent) => CallMetadata | undefined,
): boolean {
  if (part.type !== 'thinking' || !hasItem(part.metadata)) return true;
  const next = rest.find(({ type }) => type !== 'thinking');
  if (next?.type === 'tool-call') {
    const own = late(next);
    if (own) return hasItem(own as unknown as Metadata) && isUntouched(next, next.arguments, own.digest);
  }
  if (next?.type !== 'text' && next?.type !== 'tool-call') return next !== undefined;
  return hasItem(next.metadata) && untouched(next);
}

function hasItem(metadata: Metadata | undefined): boolean {
  return Object.values(metadata?.provider ?? {}).some((own) => isObject(own) && own.itemId !== undefined);
}

/** Metadata that came after a call had begun: by its id, or by its place if the id is new. */
function lateOf(
  aiSdk: AiSdkMetadata | undefined,
  call: ToolCall,
  calls: readonly ToolCall[],
): CallMetadata | undefined {
  const { calls: late } = aiSdk ?? {};
  if (!late) return undefined;
  const found = late.find((one) => one?.id === call.id);
  if (found || late.length !== calls.length) return found ?? undefined;
  return late[calls.indexOf(call)] ?? undefined;
}

function assistantPart(
  part: AssistantContent,
  late: CallMetadata | undefined,
  origin: Origin,
): PromptPart | undefined {
  switch (part.type) {
    case 'text': {
      const own = untouched(part) ? optionsOf(part.metadata, origin) : undefined;
      if (isBlank(part.text) && !own) return undefined;
      return withOptions({ type: 'text', text: wellFormed(part.text) }, own);
    }
    case 'thinking':
      return thinking(part, origin);
    case 'tool-call':
      return toolCall(part, late, origin);
    case 'file':
      return origin.foreign
        ? undefined
        : withOptions(filePart(part, origin.options.version), optionsOf(part.metadata, origin));
    case 'provider':
      return origin.foreign ? undefined : providerPart(part, origin);
  }
}

/** Only its own provider understands thinking, and only if it is unchanged. */
function thinking(part: ThinkingContent, origin: Origin): PromptPart | undefined {
  if (origin.foreign || !untouched(part)) return undefined;
  const { signature, metadata } = part;
  if (metadata?.seal !== undefined && signature === undefined) return undefined;
  // Written by hand, or by another adapter: use the first name of the provider.
  const seal = metadata?.seal ?? [origin.options.provider, part.redacted ? 'redactedData' : 'signature'];
  const own = putSeal(optionsOf(metadata, origin), seal, signature);
  if (part.text === '' && !own) return undefined;
  return withOptions({ type: 'reasoning', text: wellFormed(part.text) }, own);
}

function toolCall(call: ToolCall, late: CallMetadata | undefined, origin: Origin): PromptPart {
  const metadata = late ? { ...call.metadata, ...late } : call.metadata;
  const fresh = late ? isUntouched(call, call.arguments, late.digest) : untouched(call);
  const own = fresh ? optionsOf(metadata, origin) : undefined;
  const { id, name: toolName, arguments: text } = call;
  const toolCallId = origin.own && isNative(call) ? id : callIdOf(id, origin.options);
  return withOptions({ type: 'tool-call', toolCallId, toolName, input: inputOf(text) }, own);
}

/** Anthropic refuses a text without a word in it, and so every later request of a session whose history has one. */
function isBlank(text: string): boolean {
  return text.trim() === '';
}

/** Kimi looks for such ids in its history, and gives up if its own calls have others. */
function isNative({ id, name }: ToolCall): boolean {
  return id.startsWith(`functions.${name}:`) && /:\d+$/.test(id);
}

const PLAIN_ID = /^[\w-]{1,64}$/;

/** Ids come from any provider, or from us; Anthropic takes letters, digits, `_` and `-` only, OpenAI 64 at most. */
function callIdOf(id: string, options: PromptOptions): string {
  if (options.keys === 'all') return id;
  if (isMistral(options)) return mistralId(id);
  return PLAIN_ID.test(id) ? id : `${id.replace(/[^\w-]/g, '_').slice(-48)}_${digestOf(id)}`;
}

/** Tools the provider ran, and their results. Sources and the like are for the reader, not for the model. */
function providerPart({ kind, value, metadata }: ProviderContent, origin: Origin): PromptPart | undefined {
  if (!isObject(value)) return undefined;
  const own = optionsOf(metadata, origin);
  const { toolCallId, toolName } = value;
  switch (kind) {
    case 'tool-call': {
      const input = inputOf(typeof value.input === 'string' ? value.input : JSON.stringify(value.input));
      return withOptions({ type: 'tool-call', toolCallId, toolName, input, providerExecuted: true }, own);
    }
    case 'tool-result': {
      const output = { type: value.isError === true ? 'error-json' : 'json', value: value.result };
      return withOptions({ type: 'tool-result', toolCallId, toolName, output }, own);
    }
    case 'custom':
      return origin.options.version === 'v4'
        ? withOptions({ type: 'custom', kind: value.kind }, own)
        : undefined;
    case 'reasoning-file': {
      if (origin.options.version !== 'v4') return undefined;
      const file = filePart(
        { type: 'file', data: String(value.data), mimeType: String(value.mediaType) },
        'v4',
      );
      return withOptions({ ...file, type: 'reasoning-file' }, own);
    }
    default:
      return undefined;
  }
}

function untouched(part: AssistantContent): boolean {
  if (part.type === 'text' || part.type === 'thinking')
    return isUntouched(part, part.text, part.metadata?.digest);
  if (part.type === 'tool-call') return isUntouched(part, part.arguments, part.metadata?.digest);
  return true;
}

/** The metadata of a part that its own provider may see again, and markers that others have set for it. */
function optionsOf(
  metadata: Metadata | undefined,
  { options, without, torn }: Origin,
): Record<string, unknown> | undefined {
  const own = optionsFor(providerOptionsOf(metadata), options.keys, without);
  if (!own || !torn) return own;
  // OpenAI's items refer to each other: one that was kept would ask for the thinking that was not.
  return Object.fromEntries(Object.entries(own).map(([key, { itemId: _, ...rest }]) => [key, rest]));
}

function toolResult(given: ToolMessage, options: PromptOptions, native: boolean): PromptPart {
  const { toolName, content, isError, metadata } = given;
  const toolCallId = native ? given.toolCallId : callIdOf(given.toolCallId, options);
  const own = optionsFor(providerOptionsOf(metadata), options.keys);
  const output = outputOf(content, isError, options.version);
  return withOptions({ type: 'tool-result', toolCallId, toolName, output }, own);
}

/**
 * Providers want an object. If a model wrote something else, it was answered with an error, and is shown as it was.
 */
function inputOf(text: string): unknown {
  try {
    const value: unknown = JSON.parse(text || '{}', MAY_BE_HALF.test(text) ? wellFormedValue : undefined);
    // Old histories may hold values that are nested too deep to be written again: those are sent as text.
    if (text.length > 1000) JSON.stringify(value);
    return isObject(value) && !Array.isArray(value) ? value : { arguments: value };
  } catch {
    return { arguments: wellFormed(text) };
  }
}

function withOptions(part: PromptPart, own: Record<string, unknown> | undefined): PromptPart {
  return own ? { ...part, providerOptions: own } : part;
}
