/** Messages that stay in every request: those marked `metadata.pinned`, each with the calls and results it belongs to. */
import { isSyntheticMessage, type Message, toolCallsOf } from '../kernel/messages.js';

export function isPinned(message: Message): boolean {
  return message.metadata?.pinned === true;
}

/** Messages without an id are in no history: a middleware put them into this request, and will again. */
export function isPassing(message: Message): boolean {
  return message.id === '';
}

/** Index of the last message that is no passing one: what the request has come to. The last of all if there is none. */
export function lastLasting(messages: readonly Message[]): number {
  const last = messages.findLastIndex((message) => !isPassing(message));
  return last < 0 ? messages.length - 1 : last;
}

/** What is known of a list. */
export interface Pins {
  /** Indexes of the messages that stay, without their groups. */
  readonly stay: readonly number[];
  /** Index of the last message that a person sent; -1 for none. */
  readonly lastUser: number;
}

/** Finds pinned messages. Lists grow at their end, so each message is looked at once. */
export class PinIndex {
  private readonly known = new WeakMap<
    readonly Message[],
    { upTo: number; stay: number[]; lastUser: number }
  >();

  of(messages: readonly Message[]): Pins {
    let found = this.known.get(messages);
    if (!found || found.upTo > messages.length) {
      found = { upTo: 0, stay: [], lastUser: -1 };
      this.known.set(messages, found);
    }
    for (; found.upTo < messages.length; found.upTo++) {
      const message = messages[found.upTo]!;
      if (isPinned(message) || isPassing(message)) found.stay.push(found.upTo);
      if (message.role === 'user' && !isSyntheticMessage(message)) found.lastUser = found.upTo;
    }
    return found;
  }

  /** Indexes before `cut` that stay, groups included, in order. `also` are further ones to keep. */
  before(messages: readonly Message[], cut: number, also: readonly number[] = []): readonly number[] {
    const stay = [...this.of(messages).stay, ...also].filter((index) => index < cut);
    if (stay.length === 0) return stay;
    const kept = new Set<number>();
    for (const index of stay) for (const member of groupOf(messages, index, cut)) kept.add(member);
    return [...kept].sort((a, b) => a - b);
  }
}

/** A message alone, or the answer with its calls and all their results. A result without its call belongs nowhere. */
function groupOf(messages: readonly Message[], index: number, end: number): readonly number[] {
  const message = messages[index]!;
  if (message.role === 'user') return [index];
  const head = message.role === 'assistant' ? index : callerOf(messages, index, message.toolCallId);
  if (head < 0) return [];
  const open = new Set(toolCallsOf(messages[head]!).map(({ id }) => id));
  const group = [head];
  for (let i = head + 1; i < end && open.size > 0; i++) {
    const result = messages[i]!;
    if (result.role === 'tool' && open.delete(result.toolCallId)) group.push(i);
  }
  return group;
}

function callerOf(messages: readonly Message[], before: number, callId: string): number {
  for (let i = before - 1; i >= 0; i--) {
    const message = messages[i]!;
    if (message.role === 'assistant' && toolCallsOf(message).some(({ id }) => id === callId)) return i;
  }
  return -1;
}
