/** Breaks `no-sharing`: it keeps and returns the very objects it was given, unfrozen. */
import { type Entry, memoryStore, type NewEntry, type Store } from '../../../index.js';
import { broken } from './delegate.js';

export function sharingStore(): Store {
  const inner = memoryStore();
  const given = new Map<string, NewEntry>();
  return broken(inner, {
    append(id, expectedSeq, entries) {
      const seq = inner.append(id, expectedSeq, structuredClone(entries));
      for (const [i, entry] of entries.entries()) given.set(`${id} ${expectedSeq + i + 1}`, entry);
      return seq;
    },
    read(id, from) {
      return inner
        .read(id, from)
        .map((entry): Entry => ({ ...(given.get(`${id} ${entry.seq}`) ?? entry), seq: entry.seq }));
    },
  });
}
