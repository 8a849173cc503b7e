/**
 * Tells the model which of its calls a person changed: otherwise it sees a result that doesn't fit its arguments, and may
 * call again. Only requests say so, in the same words every time. The arguments stay out of it: they may be secret.
 */

import { asSound } from '../inbox/orphans.js';
import type { Message, ToolContent, ToolMessage } from '../messages/messages.js';

const NOTE =
  'Note: a person changed the arguments of this call on purpose. What follows is the result for the changed arguments.';

/** The messages of a valid request, with a note before the results of calls that a person changed, unless it is there already. */
export function withChangedCalls(
  messages: readonly Message[],
  changed: ReadonlySet<string> | undefined,
): readonly Message[] {
  if (!changed) return messages;
  const told = messages.map((message) =>
    message.role === 'tool' && changed.has(message.toolCallId) ? noted(message) : message,
  );
  return asSound(Object.freeze(told));
}

/** The same object every time, so that guards of requests judge it once. */
const made = new WeakMap<ToolMessage, ToolMessage>();

function noted(message: ToolMessage): ToolMessage {
  const known = made.get(message);
  if (known) return known;
  const content = withNote(message.content);
  const one =
    content === message.content ? message : Object.freeze({ ...message, content: Object.freeze(content) });
  // A hook may still change what isn't frozen.
  if (Object.isFrozen(message)) made.set(message, one);
  return one;
}

/** In the first text if there is one: not every provider takes a list of texts as a result. */
function withNote(content: readonly ToolContent[]): readonly ToolContent[] {
  const [first, ...rest] = content;
  if (first?.type !== 'text') return [Object.freeze({ type: 'text', text: NOTE }), ...content];
  if (first.text.startsWith(NOTE)) return content;
  return [Object.freeze({ ...first, text: `${NOTE}\n\n${first.text}` }), ...rest];
}
