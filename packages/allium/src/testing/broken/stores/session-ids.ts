/** Breaks `session-ids`: keeps sessions under names that do not tell upper from lower case. */
import { memoryStore, type Store } from '../../../index.js';
import { broken } from './delegate.js';

export function caseFoldingStore(): Store {
  const inner = memoryStore();
  const name = (id: string) => id.toLowerCase();
  return broken(inner, {
    append: (id, expectedSeq, entries) => inner.append(name(id), expectedSeq, entries),
    read: (id, from) => inner.read(name(id), from),
    head: (id) => inner.head(name(id)),
    fork: (id, seq, newId) => inner.fork(name(id), seq, name(newId)),
    delete: (id) => inner.delete(name(id)),
    post: (id, item) => inner.post(name(id), item),
    take: (id, after) => inner.take(name(id), after),
  });
}
