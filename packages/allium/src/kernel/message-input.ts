/** Whatever callers hand in as messages, checked once at the edge. */
import { AlliumError, messageOf, shown } from './errors.js';
import { type Flaw, toJson } from './json-copy.js';
import {
  deepFreeze,
  type Message,
  type MessageInput,
  type Metadata,
  toolCallsOf,
  type UserContent,
  userMessage,
} from './messages.js';

/** What the content of a message of each role is made of. */
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
  'tool-call': ['id', 'name', 'arguments'],
};

/** Input of a run, or a list of messages, as messages. */
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

function listOf(input: MessageInput | readonly MessageInput[]): Message[] {
  if (typeof input === 'string') return [userMessage(input)];
  if (!Array.isArray(input)) return [checkMessage(input as Message)];
  if (
    input.length > 0 &&
    input.every((item) => typeof item === 'object' && item !== null && 'type' in item && !('role' in item))
  ) {
    return [checkMessage(userMessage(input as readonly UserContent[]))];
  }
  return (input as readonly MessageInput[]).flatMap((item) => listOf(item));
}

/** A message with everything it needs, or an error that says what is wrong with it. */
export function checkMessage(message: Message): Message {
  const fail = (why: string): AlliumError =>
    new AlliumError('INVALID_MESSAGE', `${why}, got ${shown(message)}. userMessage(text) makes a message.`);
  if (typeof message !== 'object' || message === null) throw fail('Expected text, content or a message');
  const allowed = Object.hasOwn(PARTS, message.role) ? PARTS[message.role]! : undefined;
  if (!allowed) throw fail(`Expected a message with a role of ${Object.keys(PARTS).join(', ')}`);
  const given: unknown = message.content;
  const content = typeof given === 'string' ? [{ type: 'text', text: given }] : given;
  if (!Array.isArray(content)) throw fail('Expected message content to be text or a list');
  for (const part of content as readonly Record<string, unknown>[]) {
    const type = part?.type;
    if (typeof type !== 'string') throw fail('Expected every content part to have a `type`');
    if (!allowed.includes(type))
      throw fail(`Expected the content of a message of role ${message.role} to be ${allowed.join(', ')}`);
    const missing = (TEXTS[type] ?? []).find((field) => typeof part[field] !== 'string');
    if (missing) throw fail(`Expected ${type} content to have a \`${missing}\` that is text`);
  }
  if (message.role === 'tool') {
    if (typeof message.toolCallId !== 'string' || typeof message.toolName !== 'string') {
      throw fail('Expected a tool message to have a `toolCallId` and a `toolName`');
    }
    if (typeof message.isError !== 'boolean') return { ...message, content, isError: false } as Message;
  }
  return content === given ? message : ({ ...message, content } as Message);
}

/** A frozen copy of a message from outside: what the caller keeps is the caller's, and all of it can be journaled. */
export function ownMessage(given: Message): Message {
  const message = checkMessage(given);
  checkMetadata(message);
  for (const part of message.content) checkMetadata(part);
  try {
    return deepFreeze(structuredClone(message));
  } catch (cause) {
    throw new AlliumError(
      'INVALID_MESSAGE',
      `Expected a message of plain data, got ${shown(message)}: ${messageOf(cause)}`,
      { cause },
    );
  }
}

function checkMetadata({ metadata }: { readonly metadata?: Metadata }): void {
  if (metadata === undefined) return;
  if (typeof metadata !== 'object' || metadata === null || Array.isArray(metadata))
    throw noRecord('metadata', { at: '', what: shown(metadata) });
  toJson(metadata, 'metadata', noRecord);
}

function noRecord(name: string, { what, at }: Flaw): AlliumError {
  return new AlliumError(
    'INVALID_MESSAGE',
    `Expected the ${name} of a message to be an object of JSON values, got ${what}${at && ` at ${at}`}. Give plain data.`,
  );
}

/** What would make a history invalid if these were appended: every call needs its result, right after it, in order. */
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
