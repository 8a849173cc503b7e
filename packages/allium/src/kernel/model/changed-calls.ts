/**
 * Tells the model which of its calls a person changed: otherwise it sees a result that doesn't fit its arguments, and may
 * call again. Only requests say so, in the same words every time. The arguments stay out of it: they may be secret.
 */
import type { Message, ToolContent, ToolMessage } from '../messages/messages.js';

const NOTE =
  'Note: a person changed the arguments of this call. The result above is for the changed arguments, as intended.';

/** The messages, with a note after the results of calls that a person changed. */
export function withChangedCalls(
  messages: readonly Message[],
  changed: ReadonlySet<string> | undefined,
): readonly Message[] {
  if (!changed) return messages;
  return Object.freeze(
    messages.map((message) =>
      message.role === 'tool' && changed.has(message.toolCallId) ? noted(message) : message,
    ),
  );
}

/** The same object every time, so that guards of requests judge it once. */
const made = new WeakMap<ToolMessage, ToolMessage>();

function noted(message: ToolMessage): ToolMessage {
  const known = made.get(message);
  if (known) return known;
  const content: readonly ToolContent[] = Object.freeze(withNote(message.content));
  const one = Object.freeze({ ...message, content });
  made.set(message, one);
  return one;
}

/** In the last text if there is one: not every provider takes a list of texts as a result. */
function withNote(content: readonly ToolContent[]): readonly ToolContent[] {
  const last = content.at(-1);
  if (last?.type !== 'text') return [...content, Object.freeze({ type: 'text', text: NOTE })];
  return [...content.slice(0, -1), Object.freeze({ ...last, text: `${last.text}\n\n${NOTE}` })];
}
