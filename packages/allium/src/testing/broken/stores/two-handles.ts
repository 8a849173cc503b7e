/** Breaks `two-handles`: a handle asks for the head once and then relies on its own count. */

import { memoryStore, type Store, sessionConflict } from '../../../index.js';
import type { SyncStore } from '../../../stores/kit/index.js';
import { broken } from './delegate.js';

const data = new WeakMap<Store, SyncStore>();

export function cachingStore(inner: SyncStore = memoryStore()): Store {
  const heads = new Map<string, number>();
  const head = (id: string): number => heads.get(id) ?? inner.head(id);
  const store = broken(inner, {
    head,
    append(id, expectedSeq, entries) {
      if (head(id) !== expectedSeq) throw sessionConflict(id, expectedSeq, head(id));
      const seq = inner.append(id, inner.head(id), entries);
      heads.set(id, seq);
      return seq;
    },
    fork(id, seq, newId) {
      inner.fork(id, seq, newId);
      heads.delete(newId);
    },
    delete(id) {
      inner.delete(id);
      heads.delete(id);
    },
  });
  data.set(store, inner);
  return store;
}

/** Another handle on the same data. */
export function cachingStoreAgain(store: Store): Store {
  return cachingStore(data.get(store));
}
