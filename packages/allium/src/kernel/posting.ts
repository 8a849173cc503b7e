/** Posts to the inbox of a session, and wakes those in this process who wait for it. Other processes look now and then. */
import type { Awaitable, InboxItem, Store } from './store.js';

type Listeners = Map<string, Set<() => void>>;

/** By store and session: agents and Session objects that share a store hear of each other. */
const listening = new WeakMap<Store, Listeners>();

export async function post(store: Store, sessionId: string, item: InboxItem): Promise<void> {
  const wait: Awaitable<void> = store.post(sessionId, item);
  if (wait) await wait;
  for (const listener of [...(listening.get(store)?.get(sessionId) ?? [])]) listener();
}

/** Calls `fn` after every post until what it returns is called. */
export function onPost(store: Store, sessionId: string, fn: () => void): () => void {
  const sessions: Listeners = listening.get(store) ?? new Map();
  listening.set(store, sessions);
  const listeners = sessions.get(sessionId) ?? new Set();
  sessions.set(sessionId, listeners);
  listeners.add(fn);
  return () => {
    listeners.delete(fn);
    if (listeners.size === 0 && sessions.get(sessionId) === listeners) sessions.delete(sessionId);
  };
}
