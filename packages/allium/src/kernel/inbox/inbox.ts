/** Takes in what other code or other processes posted to a session. */

import { RunContext } from '../context/context.js';
import { unjudged } from '../guards/content-guards.js';
import type { SessionState } from '../journal/session-state.js';
import { isRecord, isThenable, storeAnswered } from '../lib/errors.js';
import { lackOf } from '../messages/message-input.js';
import { deepFreeze, type Message, NOTHING } from '../messages/messages.js';
import type { QueueModes } from '../protocol/run-options.js';
import { Aborted } from '../protocol/signals.js';
import type { Awaitable, EntryBody, Posted, Queued, Store } from '../protocol/store.js';
import { type Answer, firstAnswers } from './answers.js';
import type { InboxRun } from './inbox-run.js';
import { tellRefusal } from './incoming.js';

/** Messages that are due, answers by request id, and the entries to write together with them. */
export interface Due {
  readonly messages: readonly PostedMessage[];
  readonly answers: ReadonlyMap<string, Answer>;
  readonly entries: readonly [InboxEntry];
}

export type InboxEntry = EntryBody & { readonly type: 'inbox' };

/** Which messages are due: steering before every turn, follow-ups too (`all`) when nothing else is left to do. */
export type Wanted = 'steer' | 'all' | 'none';

/** A waiting message in the inbox of a session, as posted. No guard has judged it yet. */
export interface QueuedMessage {
  /** For `session.removeQueued(id)`. */
  readonly id: string;
  readonly kind: Queued['type'];
  readonly message: Message;
}

/**
 * Takes items out of the inbox; nothing is lost before the entries are written. A cancel aborts the run, unless it was posted
 * before the run started (`begins`). If the store fails here, the run fails as if it couldn't write.
 */
export function drain(run: InboxRun, wanted: Wanted, begins = false): Awaitable<Due | undefined> {
  try {
    const items = run.store.take(run.sessionId, forgotten(run.state));
    if (!isThenable(items)) return sort(run, items, wanted, begins);
    return Promise.resolve(items)
      .then((taken) => sort(run, taken, wanted, begins))
      .catch((error) => run.lose(error));
  } catch (error) {
    return run.lose(error);
  }
}

/** What is in the inbox, without taking anything. */
export async function posted(store: Store, state: SessionState): Promise<readonly Posted[]> {
  return left(await store.take(state.sessionId, forgotten(state)), state);
}

/** The entry that takes out the revocations and the answers to these questions, and leaves everything else. */
export function tookAnswers(
  found: readonly Posted[],
  questions: { has(requestId: string): boolean },
): EntryBody {
  const others = found.filter(
    ({ item }) => item.type !== 'revoke' && !('requestId' in item && questions.has(item.requestId)),
  );
  return inboxEntry(found.at(-1)!.n, others, revokedIn(found));
}

/** Ids of the allowances that somebody revoked. */
export function revokedIn(found: readonly Posted[]): readonly string[] {
  return found.flatMap(({ item }) => (item.type === 'revoke' ? item.id : NOTHING));
}

function inboxEntry(cursor: number, waiting: readonly Posted[], revoked: readonly string[]): InboxEntry {
  const waits = waiting.map(({ n }) => n);
  return {
    type: 'inbox',
    cursor,
    ...(waits.length > 0 && { waits }),
    ...(revoked.length > 0 && { revoked }),
  };
}

/** The waiting messages, in the order they were posted. */
export async function queued(store: Store, state: SessionState): Promise<readonly QueuedMessage[]> {
  const found = await posted(store, state);
  return messagesIn(found).map(({ n, item: { type: kind, message } }) => ({ id: String(n), kind, message }));
}

/** Messages that stay in the inbox, for the result. They aren't judged yet, so guards remove what `find` finds. */
export function queuedIn(run: InboxRun): readonly Message[] {
  const { posted, state } = run;
  if (posted.length === 0) return NOTHING;
  const ctx = new RunContext(run, run.scope, NOTHING);
  return Object.freeze(
    messagesIn(left(posted, state)).map(({ item }) => deepFreeze(unjudged(item.message, ctx))),
  );
}

/** What a run that somebody cancelled is aborted with. */
export function cancelled(reason: string | undefined): Aborted {
  return new Aborted(reason ?? 'The run was cancelled.');
}

/** Everything up to this number has been taken, so the store may forget it. */
function forgotten({ inboxCursor, waits }: SessionState): number {
  return waits.length === 0 ? inboxCursor : waits[0]! - 1;
}

/** The items that no run has taken. A store also returns taken items if an earlier one still waits. */
function left(taken: readonly Posted[], { inboxCursor, waits }: SessionState): readonly Posted[] {
  if (!Array.isArray(taken)) throw storeAnswered('take', taken, 'a list of items');
  if (taken.length === 0) return taken;
  // By index, to find holes in the list too.
  for (let i = 0; i < taken.length; i++)
    if (!Number.isInteger(taken[i]?.n) || !isRecord(taken[i].item))
      throw storeAnswered('take', taken[i], 'an item with its number');
  const found = taken.filter(({ n }) => n > inboxCursor || waits.includes(n));
  const removed = found.flatMap(({ item }) => (item.type === 'unqueue' ? item.n : []));
  return removed.length === 0
    ? found
    : found.filter((one) => !isPostedMessage(one) || !removed.includes(one.n));
}

export type PostedMessage = Posted & { readonly item: Queued };

function isPostedMessage(one: Posted): one is PostedMessage {
  return one.item.type === 'steer' || one.item.type === 'follow_up';
}

/** Other code may post anything without `steer()` and `followUp()`. Invalid messages are left out. */
function messagesIn(items: readonly Posted[]): PostedMessage[] {
  return items.filter((one): one is PostedMessage => isPostedMessage(one) && lackIn(one) === undefined);
}

function lackIn({ item }: PostedMessage): string | undefined {
  return lackOf(item.message, 'user', 'assistant', 'tool');
}

/** Reports invalid messages, once each: those that aren't taken appear in every read. */
function reportUnfit(run: InboxRun, found: readonly Posted[]): void {
  const seen = run.posted.at(-1)?.n ?? 0;
  for (const one of found) {
    const lack = one.n > seen && isPostedMessage(one) ? lackIn(one) : undefined;
    if (lack !== undefined) tellRefusal(run, { reason: `Expected ${lack}.`, by: 'kernel' });
  }
}

function sort(run: InboxRun, taken: readonly Posted[], wanted: Wanted, begins: boolean): Due | undefined {
  const { state } = run;
  const found = left(taken, state);
  if (found.length > 0) reportUnfit(run, found);
  run.posted = found;
  if (found.length === 0) return undefined;
  for (const { item } of found) {
    if (item.type === 'cancel' && !begins) run.scope.abort(cancelled(item.reason));
  }
  const waiting = messagesIn(found);
  const ready = wanted === 'none' ? NOTHING : dueOf(waiting, wanted, run.queue);
  const cursor = Math.max(state.inboxCursor, found.at(-1)!.n);
  const answers = firstAnswers(found, run.open.requests, run.clock.now());
  const revoked = revokedIn(found);
  const staysClaimed = ({ item }: Posted): boolean =>
    item.type === 'claim' && run.open.requests.has(item.requestId) && !answers.has(item.requestId);
  const stays = found.filter((one) =>
    (waiting as Posted[]).includes(one) ? !(ready as Posted[]).includes(one) : staysClaimed(one),
  );
  // Those before the cursor that don't wait any more are dropped, too: a cancel is meant for one run only.
  if (cursor === state.inboxCursor && stays.length === found.length) return undefined;
  return { messages: ready, answers, entries: [inboxEntry(cursor, stays, revoked)] };
}

/** Steering comes first; follow-ups are due if there is none. */
function dueOf(
  waiting: readonly PostedMessage[],
  wanted: Wanted,
  { steering = 'all', followUps = 'all' }: QueueModes,
): readonly PostedMessage[] {
  const steers = waiting.filter(({ item }) => item.type === 'steer');
  if (steers.length > 0 || wanted === 'steer') return steering === 'one' ? steers.slice(0, 1) : steers;
  return followUps === 'one' ? waiting.slice(0, 1) : waiting;
}
