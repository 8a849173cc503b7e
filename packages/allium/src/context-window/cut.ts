/** Where a list of messages may be cut: never between a call and its result. */

import { type Message, toolCallsOf } from '../index.js';

/**
 * The last place at or before `cut`, and not before `from`, after which no result lacks its call. Results without any
 * call don't count.
 */
export function cutBackward(messages: readonly Message[], from: number, cut: number): number {
  let at = cut;
  for (;;) {
    const earlier = firstCallOf(messages, from, at, alone(messages, at));
    if (earlier === at) return at;
    at = earlier;
  }
}

/** The first place from `cut` on that separates no result from its call; the end of the list if there is none. */
export function cutForward(messages: readonly Message[], cut: number): number {
  let at = cut;
  for (;;) {
    const lacking = alone(messages, at);
    if (lacking.size === 0) return at;
    at = messages.findLastIndex((message) => message.role === 'tool' && lacking.has(message.toolCallId)) + 1;
  }
}

/** Ids of the calls whose results are at `from` or after it, while the calls are before it. */
function alone(messages: readonly Message[], from: number): Set<string> {
  const calls = new Set<string>();
  const lacking = new Set<string>();
  for (let i = from; i < messages.length; i++) {
    const message = messages[i]!;
    if (message.role === 'assistant') for (const { id } of toolCallsOf(message)) calls.add(id);
    if (message.role === 'tool' && !calls.has(message.toolCallId)) lacking.add(message.toolCallId);
  }
  return lacking;
}

/** The earliest message between `from` and `cut` that asks for one of these calls; `cut` if none does. */
function firstCallOf(messages: readonly Message[], from: number, cut: number, wanted: Set<string>): number {
  let first = cut;
  for (let i = cut - 1; i >= from && wanted.size > 0; i--) {
    const message = messages[i]!;
    if (message.role !== 'assistant') continue;
    for (const { id } of toolCallsOf(message)) if (wanted.delete(id)) first = i;
  }
  return first;
}
