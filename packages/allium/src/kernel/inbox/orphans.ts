/**
 * Keeps requests valid: providers refuse a call without its result, a result without its call, and a request that does
 * not begin with a user message.
 */
import { isSyntheticMessage, type Message } from '../messages/messages.js';
import type { InboxRun } from './inbox-run.js';

interface Kept {
  readonly kept: readonly Message[];
  /** Ids of the calls and results that were dropped. */
  readonly dropped: readonly string[];
}

/** Finds what is wrong with a request: ids of messages and calls. */
type Problems = (messages: readonly Message[]) => readonly string[];

/** Lists that were checked before. */
const sound = new WeakSet<readonly Message[]>();

/** For a frozen list with the calls and results of one that is valid: it needs no check. */
export function asSound(messages: readonly Message[]): readonly Message[] {
  sound.add(messages);
  return messages;
}

/** A valid request. What had to be dropped or put back is reported, with the middleware that caused it. */
export function withoutOrphans(
  run: InboxRun,
  messages: readonly Message[],
  culprits: (problems: Problems) => readonly string[],
): readonly Message[] {
  if (sound.has(messages)) return messages;
  const { kept: paired, dropped } = dropOrphans(messages);
  if (dropped.length > 0) {
    const by = culprits(orphansIn);
    const what = `left calls without results (or results without calls) in the request: ${dropped.join(', ')}`;
    for (const name of by) run.note(name, what, 'rewrote');
    run.emitCustom('orphans_dropped', { calls: dropped, by }, by[0]);
  }
  const kept = withQuestion(run, paired, messages[0]);
  if (kept !== paired)
    for (const name of culprits(headless))
      run.note(name, 'removed the question that the request answers; it was put back', 'rewrote');
  return asSound(Object.isFrozen(kept) ? kept : Object.freeze([...kept]));
}

/** If a request was cut in the middle of an exchange, puts the question of that exchange back in front. */
function withQuestion(
  { history }: InboxRun,
  messages: readonly Message[],
  given: Message | undefined,
): readonly Message[] {
  // If nothing is left, use the question of what was there.
  const first = messages[0] ?? given;
  if (first === undefined || first.role === 'user') return messages;
  const all = history.view();
  let question: Message | undefined;
  for (let i = all.findLastIndex(({ id }) => id === first.id) - 1; i >= 0; i--) {
    const message = all[i]!;
    if (message.role !== 'user') continue;
    question ??= message;
    if (isSyntheticMessage(message)) continue;
    question = message;
    break;
  }
  return question ? [question, ...messages] : messages;
}

const orphansIn: Problems = (messages) => dropOrphans(messages).dropped;
const headless: Problems = ([first]) => (first?.role === 'user' ? [] : [first?.id ?? '']);

/** Drops calls without a result after them, results without a call before them, and second results. */
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

/** The steps that caused new problems. If there is only one step, it must be that one. */
export function causedBy(
  steps: readonly { readonly by: string; readonly messages: readonly Message[] }[],
  given: readonly Message[],
  problems: Problems = orphansIn,
): readonly string[] {
  if (steps.length < 2 || problems(steps.at(-1)!.messages).length === 0) return steps.map(({ by }) => by);
  let before = new Set(problems(given));
  const causes = steps.filter(({ messages }) => {
    const now = problems(messages);
    const more = now.some((id) => !before.has(id));
    before = new Set(now);
    return more;
  });
  return causes.map(({ by }) => by);
}
