/** Checks the messages that callers and middleware pass in, once. */

import { AlliumError, shown } from '../lib/errors.js';
import { foreignMessage } from '../lib/foreign-names.js';
import { unwritable } from '../lib/frozen-json.js';
import {
  type AssistantMessage,
  deepFreeze,
  FINISH_REASONS,
  isFrozenMessage,
  type Message,
  type MessageInput,
  toolCallsOf,
  type UserContent,
  userMessage,
} from './messages.js';

/** The types of content that each role may have. */
const PARTS: Readonly<Record<string, readonly string[]>> = {
  user: ['text', 'image', 'file'],
  assistant: ['text', 'thinking', 'tool-call', 'file', 'provider'],
  tool: ['text', 'image', 'file'],
};

/** The fields of a part that have to be text. */
const TEXTS: Readonly<Record<string, readonly string[]>> = {
  text: ['text'],
  thinking: ['text'],
  image: ['data', 'mimeType'],
  file: ['data', 'mimeType'],
  provider: ['kind'],
  'tool-call': ['id', 'name', 'arguments'],
};

/** Turns the input of a run into messages. */
export function toMessages(input: MessageInput | readonly MessageInput[]): Message[] {
  const messages = listOf(input);
  if (messages.length === 0) {
    throw new AlliumError(
      'INVALID_MESSAGE',
      `Expected at least one message, got ${shown(input)}. Pass text, content or messages.`,
    );
  }
  return messages;
}

function listOf(input: MessageInput | readonly MessageInput[], isInner = false): Message[] {
  if (typeof input === 'string') return [userMessage(input)];
  if (!Array.isArray(input)) return [checkMessage(input as Message)];
  if (
    input.length > 0 &&
    input.every((item) => typeof item === 'object' && item !== null && 'type' in item && !('role' in item))
  ) {
    return [checkMessage(userMessage(input as readonly UserContent[]))];
  }
  if (isInner) throw invalidMessage('text, content or a message in a list', input);
  return (input as readonly MessageInput[]).flatMap((item) => listOf(item, true));
}

/** Completes a message, or throws an error that says what is wrong with it. */
export function checkMessage(message: Message): Message {
  const fail = (wanted: string): AlliumError => invalidMessage(wanted, message);
  if (typeof message !== 'object' || message === null) throw fail('text, content or a message');
  if (!Object.hasOwn(PARTS, message.role))
    throw fail(`a message with a role of ${Object.keys(PARTS).join(', ')}`);
  const given: unknown = message.content;
  const content = typeof given === 'string' ? [{ type: 'text', text: given }] : given;
  const wanted = lackOfContent(message.role, content);
  if (wanted) throw fail(wanted);
  if (message.role === 'tool') {
    if (typeof message.toolCallId !== 'string' || typeof message.toolName !== 'string') {
      throw fail('a tool message to have a `toolCallId` and a `toolName`');
    }
    if (typeof message.isError !== 'boolean') return { ...message, content, isError: false } as Message;
  }
  return content === given ? message : ({ ...message, content } as Message);
}

export function invalidMessage(wanted: string, message: unknown, cause?: unknown): AlliumError {
  return new AlliumError(
    'INVALID_MESSAGE',
    `Expected ${wanted}, got ${shown(message)}. ${foreignMessage(message)}`,
    cause === undefined ? undefined : { cause },
  );
}

/** What a list of content lacks, as the end of "Expected …"; undefined if it is fine. `optional`: fields that may be missing. */
export function lackOfContent(
  role: Message['role'],
  content: unknown,
  optional: readonly string[] = [],
): string | undefined {
  if (!Array.isArray(content)) return 'message content to be text or a list';
  const allowed = PARTS[role]!;
  for (const part of content as readonly Record<string, unknown>[]) {
    const type = part?.type;
    if (typeof type !== 'string') return 'every content part to have a `type`';
    if (!allowed.includes(type))
      return `the content of a message of role ${role} to be ${allowed.join(', ')}`;
    const missing = TEXTS[type]?.find(
      (field) => typeof part[field] !== 'string' && !(part[field] === undefined && optional.includes(field)),
    );
    if (missing) return `${type} content to have a \`${missing}\` that is text`;
  }
  return undefined;
}

/**
 * The same for a list of messages to send. `known`: a checked list that this one was made from. Most messages are at the same
 * place there, counted from the start or the end, and if they are frozen they are still fine.
 */
export function lackOfMessages(messages: unknown, known: readonly Message[] = []): string | undefined {
  if (!Array.isArray(messages)) return 'a list of messages';
  const shift = messages.length - known.length;
  // By index, because a hole in a list is not a message either.
  for (let i = 0; i < messages.length; i++) {
    const message = messages[i] as Message;
    const there = (i < known.length && message === known[i]) || (i >= shift && message === known[i - shift]);
    if (there ? Object.isFrozen(message) : sound.has(message)) continue;
    const lack = lackOf(message, 'user', 'assistant', 'tool');
    if (lack) return `a list of messages (at [${i}]: ${lack})`;
    if (isFrozenMessage(message)) sound.add(message);
  }
  return undefined;
}

/** Messages that were checked and can't change any more. */
const sound = new WeakSet<Message>();

/** The same for a message that a middleware made. */
export function lackOf(message: unknown, ...roles: readonly Message['role'][]): string | undefined {
  const { role, content, stopReason } = (message ?? {}) as Partial<AssistantMessage>;
  if (role === undefined || !roles.includes(role) || !Array.isArray(content))
    return `a message { role: '${roles.join("' | '")}', content: [...] }`;
  if (stopReason !== undefined && !FINISH_REASONS.includes(stopReason))
    return `a \`stopReason\` of ${FINISH_REASONS.join(', ')}`;
  // A call without an id gets one later.
  return lackOfContent(role, content, ['id']) ?? lackOfJson(message as Message);
}

/** The same for fields that can't be journaled. */
export function lackOfJson(message: Pick<Message, 'content'>): string | undefined {
  for (const owner of [message, ...message.content])
    for (const [field, value] of Object.entries(owner))
      if (!(owner === message && field === 'content') && unwritable(value) !== undefined)
        return `a \`${field}\` that can be written as JSON`;
  return undefined;
}

/** Why these can't be appended to a history, if so. Every call needs its result, right after it, in order. */
export function misplacedIn(messages: readonly Message[]): string | undefined {
  if (messages.every(({ role }) => role === 'user')) return undefined;
  let open: readonly string[] = [];
  for (const message of messages) {
    if (message.role === 'tool') {
      if (open[0] !== message.toolCallId)
        return `the result of call "${message.toolCallId}" does not follow its call.`;
      open = open.slice(1);
    } else if (open.length > 0) return `call "${open[0]}" has no result.`;
    else if (message.role === 'assistant') open = toolCallsOf(message).map(({ id }) => id);
  }
  return open.length > 0 ? `call "${open[0]}" has no result.` : undefined;
}

/** The message as it goes into the history: with its id, frozen. */
export function placed<M extends Message>(message: M, id: string): M {
  return deepFreeze({ ...message, id });
}
