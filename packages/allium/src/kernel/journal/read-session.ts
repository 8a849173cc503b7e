/** Reads the journal of a session into its state: from its newest snapshot on, and the messages before that when asked. */

import { isRecord, isThenable, sessionConflict, storeAnswered } from '../lib/errors.js';
import type { Message } from '../messages/messages.js';
import type { Awaitable, Entry, NewEntry, Store, Tail } from '../protocol/store.js';
import { upgradeEntries } from './entry-upgrade.js';
import type { History } from './history.js';
import { newRun } from './journaled-run.js';
import { corrupt, SessionState } from './session-state.js';
import { restore } from './snapshot.js';

/** Reads what is new in the journal into the state. The history may lack what came before a snapshot. */
export function catchUp(store: Store, state: SessionState): Awaitable<void> {
  const { last } = state;
  if (last === undefined && store.tail)
    return during(state, store.tail(state.sessionId), (tail) => takeTail(store, state, tail));
  return readAll(store, state);
}

/** The same, and reads the messages that are missing. */
export function catchUpWhole(store: Store, state: SessionState): Awaitable<void> {
  const wait = catchUp(store, state);
  return wait ? wait.then(() => readHistory(store, state)) : readHistory(store, state);
}

/** Reads the messages that the history lacks. */
export function readHistory(store: Store, state: SessionState): Awaitable<void> {
  return state.history.unread && readFrom(store, state, 1, () => madeAnew(store, state));
}

/** The same while a run is under way: the state must not be replaced then. */
export function readHistoryDuring(store: Store, state: SessionState): Awaitable<void> {
  return (
    state.history.unread &&
    readFrom(store, state, 1, () => {
      throw sessionConflict(state.sessionId, state.seq, 0);
    })
  );
}

/** Entries to read at once when looking for earlier messages: every read goes to the end of the journal. */
const FIRST_STEP = 512;
const LAST_STEP = 4096;

/** Reads earlier messages, in steps that grow, until there are enough or no more. */
export async function readBack(
  store: Store,
  state: SessionState,
  isEnough: (history: History) => Awaitable<boolean>,
): Promise<void> {
  for (let step = FIRST_STEP; state.history.unread; step *= 2) {
    if (await isEnough(state.history)) return;
    const from = step > LAST_STEP ? 1 : Math.max(1, state.history.unread.seq - step + 1);
    await readFrom(store, state, from, () => madeAnew(store, state));
  }
}

/** Reads the messages from entry `from` on that the history lacks. `gone`: the store has another session by now. */
function readFrom(
  store: Store,
  state: SessionState,
  from: number,
  gone: () => Awaitable<void>,
): Awaitable<void> {
  return during(state, store.read(state.sessionId, from), (read) => {
    if (!Array.isArray(read)) throw storeAnswered('read', read, 'a list of entries');
    const { unread } = state.history;
    // Another read brought them meanwhile.
    if (!unread || unread.seq < from) return;
    const entries = upgradeEntries(state.sessionId, read);
    if (!isSame(state.last!, entries[state.seq - from])) return gone();
    const part = partOf(state.sessionId, entries.slice(0, unread.seq - from + 1));
    if (!part) return from === 1 ? undefined : readFrom(store, state, 1, gone);
    const { history, callIds } = part.state;
    const length = unread.length - history.length;
    const before = length > 0 ? { ...unread, length, seq: part.from - 1 } : undefined;
    state.history = state.history.withEarlier(history.all(), before);
    for (const id of callIds) state.callIds.add(id);
  });
}

/** Was it deleted since it was opened, and perhaps made again? */
function madeAnew(store: Store, state: SessionState): Awaitable<void> {
  state.forget();
  return catchUpWhole(store, state);
}

/**
 * What these entries come to, for their messages: from the first message on, if they don't begin with the session.
 * Undefined if that can't be told, because there is no message, or the history was rewound to an earlier one.
 */
function partOf(
  sessionId: string,
  entries: readonly Entry[],
): { readonly state: SessionState; readonly from: number } | undefined {
  const state = new SessionState(sessionId);
  let first = 0;
  if (entries[0]?.seq !== 1) {
    first = entries.findIndex(({ type }) => type === 'message');
    const message = entries[first];
    if (message?.type !== 'message' || entries.some(({ type }) => type === 'rewind')) return undefined;
    state.seq = message.seq - 1;
    state.open = newRun({ type: 'run_start', runId: message.runId, plan: [] }, 0);
  }
  for (let i = first; i < entries.length; i++) applyEntry(state, entries[i]!);
  return { state, from: entries[first]?.seq ?? 1 };
}

/** All messages of the history. */
export async function allMessages(store: Store, state: SessionState): Promise<readonly Message[]> {
  await readHistory(store, state);
  return state.history.all();
}

/** Reads from the last known entry on: if it's another one by now, the session was deleted and perhaps made anew. */
function readAll(store: Store, state: SessionState): Awaitable<void> {
  const { seq, last } = state;
  return during(state, store.read(state.sessionId, Math.max(seq, 1)), (read) => {
    if (!Array.isArray(read)) throw storeAnswered('read', read, 'a list of entries');
    return takeAll(store, state, last, read);
  });
}

/** Uses what the store answered; while it is awaited, the state counts as being read. */
function during<T>(
  state: SessionState,
  answer: Awaitable<T>,
  use: (answer: T) => Awaitable<void>,
): Awaitable<void> {
  if (!isThenable(answer)) return use(answer);
  state.reading++;
  return answer.then(
    (read) => {
      state.reading--;
      return use(read);
    },
    (error) => {
      state.reading--;
      throw error;
    },
  );
}

function takeTail(store: Store, state: SessionState, tail: Tail): Awaitable<void> {
  if (!isRecord(tail) || !Array.isArray(tail.entries))
    throw storeAnswered('tail', tail, 'a snapshot, if there is one, and a list of entries');
  const { snapshot, entries } = tail;
  if (snapshot === undefined) return takeAll(store, state, undefined, entries);
  if (state.last !== undefined) return catchUp(store, state);
  const news = upgradeEntries(state.sessionId, entries);
  // A rewound history may end with a message before the snapshot.
  if (news.some(({ type }) => type === 'rewind') || !restore(state, snapshot)) return readAll(store, state);
  applyAll(state, news);
}

/** `known`: the last entry of the state when the read began. */
function takeAll(
  store: Store,
  state: SessionState,
  known: NewEntry | undefined,
  read: readonly Entry[],
): Awaitable<void> {
  // Another read took these in meanwhile.
  if (state.last !== known) return catchUp(store, state);
  if (read.length === 0 && !known) return;
  const entries = upgradeEntries(state.sessionId, read);
  const news = known ? entries.slice(1) : entries;
  if (known && !isSame(known, entries[0])) {
    state.forget();
    return catchUp(store, state);
  }
  if (state.history.isPartial && news.some(({ type }) => type === 'rewind')) {
    state.forget();
    return readAll(store, state);
  }
  applyAll(state, news);
}

function applyAll(state: SessionState, entries: readonly Entry[]): void {
  try {
    for (let i = 0; i < entries.length; i++) applyEntry(state, entries[i]!);
  } catch (error) {
    // Half a journal is useless. The next read fails the same way.
    state.forget();
    throw error;
  }
}

/** Run ids are unique. The few entries that belong to no run differ by their time. */
function isSame(
  known: NewEntry & { readonly runId?: string },
  entry: (Entry & { readonly runId?: string }) | undefined,
): boolean {
  return known.type === entry?.type && known.at === entry.at && known.runId === entry.runId;
}

/** Applies an entry that was read. */
export function applyEntry(state: SessionState, entry: Entry): void {
  if (entry.seq !== state.seq + 1)
    throw corrupt(
      state,
      `goes from entry ${state.seq} to ${entry.seq}: entries are missing or out of order.`,
    );
  state.seq = entry.seq;
  state.last = entry;
  state.apply(entry);
}
