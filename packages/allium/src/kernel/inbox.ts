/** What other processes, and other code of this one, posted to a session while it runs. */
import { firstAnswers } from './answers.js';
import { unjudged } from './content-guards.js';
import { RunContext } from './context.js';
import { Aborted, isRecord, isThenable, storeAnswered } from './errors.js';
import { tellRefusal } from './incoming.js';
import { lackOf } from './message-input.js';
import { deepFreeze, type Message, NOTHING } from './messages.js';
import type { Run } from './run.js';
import type { SessionState } from './session-state.js';
import type { Awaitable, Decision, EntryBody, InboxItem, Posted, Queued, Store } from './store.js';

/** Messages that are due, answers to open questions by request id, and the entries to be written together with them. */
export interface Due {
  readonly messages: readonly Message[];
  readonly answers: ReadonlyMap<string, Decision>;
  readonly entries: readonly EntryBody[];
}

/**
 * Which messages are due: steering after every turn, follow-ups (`all`) when nothing else is left to do. A cancel
 * aborts the run, unless it was posted before the run began.
 */
export type Wanted = 'steer' | 'all' | 'none' | 'none, before it began';

/**
 * Takes over what was posted; nothing is taken before the entries are written. A store that cannot say what was posted
 * leaves the run as one that cannot write does.
 */
export function drain(run: Run, wanted: Wanted): Awaitable<Due | undefined> {
  try {
    const items = run.store.take(run.sessionId, forgotten(run.state));
    if (!isThenable(items)) return sort(run, items, wanted);
    return Promise.resolve(items)
      .then((taken) => sort(run, taken, wanted))
      .catch((error) => run.lose(error));
  } catch (error) {
    return run.lose(error);
  }
}

/** The same for those who only look. */
export function posted(store: Store, state: SessionState): Awaitable<readonly InboxItem[]> {
  const look = (taken: readonly Posted[]): readonly InboxItem[] => itemsOf(left(taken, state));
  const taken = store.take(state.sessionId, forgotten(state));
  return isThenable(taken) ? Promise.resolve(taken).then(look) : look(taken);
}

/** Messages of the inbox that wait on, as results tell of them: nobody has judged them yet. */
export function queuedIn(run: Run): readonly Message[] {
  const { posted, state } = run;
  if (posted.length === 0) return NOTHING;
  const ctx = new RunContext(run, run.scope, NOTHING);
  return Object.freeze(
    messagesIn(left(posted, state)).map(({ item }) => deepFreeze(unjudged(item.message, ctx))),
  );
}

/** Up to here everything is taken over: the store need not keep it. */
function forgotten({ inboxCursor, waits }: SessionState): number {
  return waits.length === 0 ? inboxCursor : waits[0]! - 1;
}

/** What nobody has taken over. Items behind one that waits are in the inbox still, taken or not. */
function left(taken: readonly Posted[], { inboxCursor, waits }: SessionState): readonly Posted[] {
  if (!Array.isArray(taken)) throw storeAnswered('take', taken, 'a list of items');
  if (taken.length === 0) return taken;
  // By index: a hole in a list is no item either.
  for (let i = 0; i < taken.length; i++)
    if (!Number.isInteger(taken[i]?.n) || !isRecord(taken[i].item))
      throw storeAnswered('take', taken[i], 'an item with its number');
  return taken.filter(({ n }) => n > inboxCursor || waits.includes(n));
}

function itemsOf(taken: readonly Posted[]): readonly InboxItem[] {
  return taken.map(({ item }) => item);
}

type PostedMessage = Posted & { readonly item: Queued };

function isPostedMessage(one: Posted): one is PostedMessage {
  return one.item.type === 'steer' || one.item.type === 'follow_up';
}

/** Whoever posts without `steer()` and `followUp()` may post anything: what is no message is left out. */
function messagesIn(items: readonly Posted[]): PostedMessage[] {
  return items.filter((one): one is PostedMessage => isPostedMessage(one) && lackIn(one) === undefined);
}

function lackIn({ item }: PostedMessage): string | undefined {
  return lackOf(item.message, 'user', 'assistant', 'tool');
}

/** Visibly, and once: what is not taken is found again. */
function tellUnfit(run: Run, found: readonly Posted[]): void {
  const seen = run.posted.at(-1)?.n ?? 0;
  for (const one of found) {
    const lack = one.n > seen && isPostedMessage(one) ? lackIn(one) : undefined;
    if (lack !== undefined) tellRefusal(run, { reason: `Expected ${lack}.`, by: 'kernel' });
  }
}

function sort(run: Run, taken: readonly Posted[], wanted: Wanted): Due | undefined {
  const { state } = run;
  const found = left(taken, state);
  if (found.length > 0) tellUnfit(run, found);
  run.posted = found;
  if (found.length === 0) return undefined;
  for (const { item } of found) {
    if (item.type === 'cancel' && wanted !== 'none, before it began')
      run.scope.abort(new Aborted(item.reason ?? 'The run was cancelled.'));
  }
  const queued = messagesIn(found);
  const steering = queued.filter(({ item }) => item.type === 'steer');
  const all = steering.length > 0 || wanted === 'steer' ? steering : queued;
  const ready = wanted === 'steer' || wanted === 'all' ? all : [];
  const cursor = Math.max(state.inboxCursor, found.at(-1)!.n);
  if (cursor === state.inboxCursor && ready.length === 0) return undefined;
  const waits = queued.filter((one) => !ready.includes(one)).map(({ n }) => n);
  return {
    messages: ready.map(({ item }) => item.message),
    answers: firstAnswers(itemsOf(found), run.open.requests, run.clock.now()),
    entries: [{ type: 'inbox', cursor, ...(waits.length > 0 && { waits }) }],
  };
}
