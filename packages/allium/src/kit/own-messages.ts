/** The messages of a caller, as copies that the caller can't change any more. */

import { AlliumError, messageOf, shown } from '../kernel/lib/errors.js';
import { type Flaw, toJson } from '../kernel/lib/frozen-json.js';
import { checkMessage, invalidMessage, lackOfJson, toMessages } from '../kernel/messages/message-input.js';
import {
  deepFreeze,
  freezeMessage,
  type Message,
  type MessageInput,
  type Metadata,
  userMessage,
} from '../kernel/messages/messages.js';

/** The input of a caller as frozen copies. */
export function ownMessages(input: MessageInput | readonly MessageInput[]): Message[] {
  if (typeof input === 'string') return [freezeMessage(userMessage(input))];
  return toMessages(input).map(ownMessage);
}

/** A frozen copy of a message from outside, which can be journaled. The caller may keep changing its own. */
function ownMessage(given: Message): Message {
  const message = checkMessage(given);
  checkMetadata(message);
  for (const part of message.content) checkMetadata(part);
  const wanted = lackOfJson(message);
  if (wanted) throw invalidMessage(wanted, message);
  try {
    return deepFreeze(structuredClone(message));
  } catch (cause) {
    throw invalidMessage(`a message of plain data (${messageOf(cause)})`, message, cause);
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
