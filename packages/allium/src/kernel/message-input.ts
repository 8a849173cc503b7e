/** Whatever callers hand in as messages, checked once at the edge. */
import { AlliumError, shown } from './errors.js';
import { deepFreeze, type Message, type MessageInput, type UserContent, userMessage } from './messages.js';

const ROLES = ['user', 'assistant', 'tool'];

/** Input of a run, or a list of messages, as messages. */
export function toMessages(input: MessageInput | readonly MessageInput[]): Message[] {
  if (typeof input === 'string') return [userMessage(input)];
  if (!Array.isArray(input)) return [checkMessage(input as Message)];
  if (input.length > 0 && input.every((item) => typeof item === 'object' && item !== null && 'type' in item && !('role' in item))) {
    return [checkMessage(userMessage(input as readonly UserContent[]))];
  }
  return (input as readonly MessageInput[]).flatMap((item) => toMessages(item));
}

/** A message with everything it needs, or an error that says what is wrong with it. */
export function checkMessage(message: Message): Message {
  const fail = (why: string) => new AlliumError('INVALID_MESSAGE', `${why}, got ${shown(message)}. userMessage(text) makes a message.`);
  if (typeof message !== 'object' || message === null) throw fail('Expected text, content or a message');
  if (!ROLES.includes(message.role)) throw fail(`Expected a message with a role of ${ROLES.join(', ')}`);
  if (typeof (message.content as unknown) === 'string') return { ...message, content: [{ type: 'text', text: message.content as unknown as string }] } as Message;
  if (!Array.isArray(message.content)) throw fail('Expected message content to be text or a list');
  for (const part of message.content as readonly { type?: unknown; text?: unknown }[]) {
    if (typeof part?.type !== 'string') throw fail('Expected every content part to have a `type`');
    if (part.type === 'text' && typeof part.text !== 'string') throw fail('Expected text content to have a `text`');
  }
  return message;
}

/** The message as it goes into the history: with its id, frozen. */
export function placed<M extends Message>(message: M, id: string): M {
  return deepFreeze({ ...message, id });
}
