/** Keeps requests valid: providers refuse a call without its result, and a result without its call. */
import type { Message } from './messages.js';
import type { Run } from './run.js';

interface Kept {
  readonly kept: readonly Message[];
  /** Ids of the calls and results that were left out. */
  readonly dropped: readonly string[];
}

/** A request as it may be sent. What had to be left out is told, with those who caused it. */
export function withoutOrphans(
  run: Run,
  messages: readonly Message[],
  culprits: () => readonly string[],
): readonly Message[] {
  run.paired ??= new WeakSet();
  if (run.paired.has(messages)) return messages;
  const { kept, dropped } = dropOrphans(messages);
  if (dropped.length > 0) {
    const by = culprits();
    const what = `left calls without results (or results without calls) in the request: ${dropped.join(', ')}`;
    for (const name of by) run.note(name, what);
    run.emitCustom('orphans_dropped', { calls: dropped, by }, by[0]);
  }
  const frozen = Object.isFrozen(kept) ? kept : Object.freeze([...kept]);
  run.paired.add(frozen);
  return frozen;
}

/** The messages without calls that lack a result after them, results that lack a call before them, and second results. */
export function dropOrphans(messages: readonly Message[]): Kept {
  const answered = answeredCalls(messages);
  const dropped = new Set<string>();
  const open = new Set<string>();
  const kept: Message[] = [];
  for (const message of messages) {
    if (message.role === 'user') kept.push(message);
    else if (message.role === 'tool') {
      if (open.delete(message.toolCallId)) kept.push(message);
      else dropped.add(message.toolCallId);
    } else {
      const content = message.content.filter((part) => {
        if (part.type !== 'tool-call') return true;
        const fine = answered.has(part.id);
        (fine ? open : dropped).add(part.id);
        return fine;
      });
      if (content.length === message.content.length) kept.push(message);
      else if (content.length > 0) kept.push(Object.freeze({ ...message, content }));
    }
  }
  return dropped.size === 0 ? { kept: messages, dropped: [] } : { kept, dropped: [...dropped] };
}

/** Calls with a result somewhere after them. */
function answeredCalls(messages: readonly Message[]): ReadonlySet<string> {
  const calls = new Set<string>();
  const answered = new Set<string>();
  for (const message of messages) {
    if (message.role === 'tool') {
      if (calls.has(message.toolCallId)) answered.add(message.toolCallId);
    } else if (message.role === 'assistant') {
      for (const part of message.content) if (part.type === 'tool-call') calls.add(part.id);
    }
  }
  return answered;
}

/** Whose step left calls or results alone that were not alone before it. With one step nobody else can have. */
export function causedBy(
  steps: readonly { readonly by: string; readonly messages: readonly Message[] }[],
  given: readonly Message[],
): readonly string[] {
  if (steps.length < 2 || dropOrphans(steps.at(-1)!.messages).dropped.length === 0)
    return steps.map(({ by }) => by);
  let before = new Set(dropOrphans(given).dropped);
  const causes = steps.filter(({ messages }) => {
    const { dropped } = dropOrphans(messages);
    const more = dropped.some((id) => !before.has(id));
    before = new Set(dropped);
    return more;
  });
  return causes.map(({ by }) => by);
}
