/** Reads the journal of a session into its state: from its newest snapshot on, and the messages before that when asked. */

import { isRecord, isThenable, storeAnswered } from '../lib/errors.js';
import type { Message } from '../messages/messages.js';
import type { Awaitable, Entry, NewEntry, Store, Tail } from '../protocol/store.js';
import { upgradeEntries } from './entry-upgrade.js';
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
  if (!state.history.isPartial) return;
  return during(state, store.read(state.sessionId, 1), (read) => {
    if (!Array.isArray(read)) throw storeAnswered('read', read, 'a list of entries');
    // Another read brought them meanwhile.
    if (!state.history.isPartial) return;
    const entries = upgradeEntries(state.sessionId, read);
    // Deleted since it was opened, and perhaps made anew.
    if (!isSame(state.last!, entries[state.seq - 1])) {
      state.forget();
      return catchUpWhole(store, state);
    }
    const whole = new SessionState(state.sessionId);
    for (let i = 0; i < state.seq; i++) applyEntry(whole, entries[i]!);
    state.history = whole.history;
    for (const id of whole.callIds) state.callIds.add(id);
  });
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
