/** Breaks `gapless-seq`: numbers entries from 0. */
import { memoryStore, type Store } from '../../../index.js';
import { broken } from './delegate.js';

export function zeroBasedStore(): Store {
  const inner = memoryStore();
  return broken(inner, {
    read: (id, from) => inner.read(id, from).map((entry) => ({ ...entry, seq: entry.seq - 1 })),
  });
}

/** Breaks it in another way: a session exists as soon as somebody appends to it, even nothing. */
export function eagerStore(): Store {
  const inner = memoryStore();
  const empty = new Set<string>();
  return broken(inner, {
    append(id, seq, entries) {
      const head = inner.append(id, seq, entries);
      if (head === 0) empty.add(id);
      else empty.delete(id);
      return head;
    },
    list(options) {
      const { sessions, next } = inner.list(options);
      const more = [...empty].map((sessionId) => ({ sessionId, seq: 0, createdAt: 0, updatedAt: 0 }));
      return { sessions: [...sessions, ...more], ...(next !== undefined && { next }) };
    },
  });
}
