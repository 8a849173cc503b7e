/** Posts to the inbox of a session and watches it: listeners in this process hear at once, others poll. */

import { BoundedStore } from '../journal/bounded-store.js';
import type { Clock } from '../lib/clock.js';
import { storeFailed } from '../lib/errors.js';
import type { Awaitable, InboxItem, Store } from '../protocol/store.js';

type Listeners = Map<string, Set<() => unknown>>;

/** By store and session, so agents and Session objects that share a store hear each other. */
const listening = new WeakMap<Store, Listeners>();

export async function post(store: Store, sessionId: string, item: InboxItem): Promise<void> {
  await store.post(sessionId, item);
  for (const listener of [...(listening.get(ownOf(store))?.get(sessionId) ?? [])]) listener();
}

/** Asks the store from outside a run. If it fails, the error says that it was the store. */
export async function reached<T>(ask: () => Awaitable<T>): Promise<T> {
  try {
    return await ask();
  } catch (error) {
    throw storeFailed(error);
  }
}

/** How often to check for posts of other processes. */
const LOOK_MS = 250;

/**
 * Calls `look` now, after every post in this process, and every 250 ms; one call at a time, however slow the store is. The
 * returned function stops it.
 */
export function watchInbox(
  { store, sessionId, clock }: { readonly store: Store; readonly sessionId: string; readonly clock: Clock },
  look: () => Promise<void>,
): () => void {
  let isLooking = false;
  // Something may have been posted since the last look started.
  let again = false;
  let isOver = false;
  let cancel = (): void => {};
  const lookSoon = async (): Promise<void> => {
    again = true;
    if (isLooking) return;
    isLooking = true;
    while (again && !isOver) {
      again = false;
      await look();
    }
    isLooking = false;
  };
  const next = (): void => {
    cancel = clock.setTimer(() => {
      next();
      void lookSoon();
    }, LOOK_MS);
  };
  const unlisten = onPost(store, sessionId, lookSoon);
  next();
  void lookSoon();
  return () => {
    isOver = true;
    cancel();
    unlisten();
  };
}

/** Calls `fn` after every post, until the function it returns is called. */
function onPost(store: Store, sessionId: string, fn: () => unknown): () => void {
  const own = ownOf(store);
  const sessions: Listeners = listening.get(own) ?? new Map();
  listening.set(own, sessions);
  const listeners = sessions.get(sessionId) ?? new Set();
  sessions.set(sessionId, listeners);
  listeners.add(fn);
  return () => {
    listeners.delete(fn);
    if (listeners.size === 0 && sessions.get(sessionId) === listeners) sessions.delete(sessionId);
  };
}

/** The store itself: every run and Session wraps it with its own time limits. */
function ownOf(store: Store): Store {
  return store instanceof BoundedStore ? store.raw : store;
}
