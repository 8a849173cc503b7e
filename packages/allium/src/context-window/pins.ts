/** Messages that stay in every request: those marked `metadata.pinned`, each with the calls and results it belongs to. */

import { type Context, isSyntheticMessage, type Message, toolCallsOf } from '../index.js';

export function isPinned(message: Message): boolean {
  return message.metadata?.pinned === true;
}

/** Messages without an id are in no history: a middleware puts them into every request. */
export function isPassing(message: Message): boolean {
  return message.id === '';
}

/** Index of the last message that isn't passing; of the last message if all are. */
export function lastLasting(messages: readonly Message[]): number {
  const last = messages.findLastIndex((message) => !isPassing(message));
  return last < 0 ? messages.length - 1 : last;
}

/** What is known about a list. */
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

  /** `keepTools`: the results of these tools stay as if they were pinned. */
  constructor(private readonly keepTools: ReadonlySet<string> = new Set()) {}

  private isKept(message: Message): boolean {
    return message.role === 'tool' && this.keepTools.has(message.toolName);
  }

  of(messages: readonly Message[]): Pins {
    let found = this.known.get(messages);
    if (!found || found.upTo > messages.length) {
      found = { upTo: 0, stay: [], lastUser: -1 };
      this.known.set(messages, found);
    }
    for (; found.upTo < messages.length; found.upTo++) {
      const message = messages[found.upTo]!;
      if (isPinned(message) || isPassing(message) || this.isKept(message)) found.stay.push(found.upTo);
      if (message.role === 'user' && !isSyntheticMessage(message)) found.lastUser = found.upTo;
    }
    return found;
  }

  /** Indexes before `cut` that stay, with their groups, in order. `also`: more of them to keep. */
  before(messages: readonly Message[], cut: number, also: readonly number[] = []): readonly number[] {
    const stay = [...this.of(messages).stay, ...also].filter((index) => index < cut);
    if (stay.length === 0) return stay;
    const kept = new Set<number>();
    for (const index of stay) for (const member of groupOf(messages, index, cut)) kept.add(member);
    return [...kept].sort((a, b) => a - b);
  }
}

/** Finds the question of a run: the message it was started with, and the last one a person sent since. */
export class Questions {
  private readonly begun = new WeakMap<readonly Message[], { runId: string; id: string | undefined }>();
  private readonly places = new WeakMap<readonly Message[], { id: string; index: number }>();

  constructor(private readonly pins: PinIndex) {}

  /** Their indexes in the messages of a request, in order. */
  of(messages: readonly Message[], ctx: Asking): readonly number[] {
    const { lastUser } = this.pins.of(messages);
    const first = this.placeOf(messages, this.firstOf(ctx));
    const known = [first, lastUser].filter((index) => index >= 0).sort((a, b) => a - b);
    return first === lastUser ? known.slice(1) : known;
  }

  /** The id of the message that the run was started with; undefined as long as nothing came after it. */
  private firstOf({ history, runId }: Asking): string | undefined {
    const known = this.begun.get(history);
    if (known?.runId === runId) return known.id;
    const own = history.slice(history.findLastIndex(({ id }) => !id.startsWith(`${runId}.`)) + 1);
    const answer = own.findIndex(({ role }) => role !== 'user');
    if (answer < 0) return undefined;
    const given = own.slice(0, answer);
    const asked = given.findLast((message) => !isSyntheticMessage(message)) ?? given.at(-1);
    const answered = own[answer]!;
    // An answer that came with the input is not from a model here. Then the question is what came last with it.
    const isOurs = answered.role === 'assistant' && answered.model !== undefined;
    const id = isOurs ? asked?.id : undefined;
    this.begun.set(history, { runId, id });
    return id;
  }

  private placeOf(messages: readonly Message[], id: string | undefined): number {
    if (id === undefined) return -1;
    let place = this.places.get(messages);
    if (place?.id !== id || messages[place.index]?.id !== id) {
      place = { id, index: messages.findLastIndex((message) => message.id === id) };
      this.places.set(messages, place);
    }
    return place.index;
  }
}

/** The run that a request is for. */
type Asking = Pick<Context, 'history' | 'runId'>;

/** The nearest user message before this one, since requests have to begin with one; -1 for none. */
export function leadOf(messages: readonly Message[], index: number): number {
  for (let i = index; i >= 0; i--) if (messages[i]!.role === 'user') return i;
  return -1;
}

/**
 * A message alone, or the answer with its calls and all their results. A result without its call belongs to no group.
 */
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
