/** Posts to the inbox of a session, and wakes those in this process who wait for it. Other processes look now and then. */
import { BoundedStore } from '../journal/bounded-store.js';
import type { Awaitable, InboxItem, Store } from '../protocol/store.js';

type Listeners = Map<string, Set<() => void>>;

/** By store and session: agents and Session objects that share a store hear of each other. */
const listening = new WeakMap<Store, Listeners>();

export async function post(store: Store, sessionId: string, item: InboxItem): Promise<void> {
  const wait: Awaitable<void> = store.post(sessionId, item);
  if (wait) await wait;
  for (const listener of [...(listening.get(ownOf(store))?.get(sessionId) ?? [])]) listener();
}

/** Calls `fn` after every post until what it returns is called. */
export function onPost(store: Store, sessionId: string, fn: () => void): () => void {
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

/** Every run and Session has its own limits on the waits for one store. */
function ownOf(store: Store): Store {
  return store instanceof BoundedStore ? store.raw : store;
}
