/** Breaks `independent-sessions`: deletes every session whose id begins with the one given. */
import { memoryStore, type Store } from '../../../index.js';
import { broken } from './delegate.js';

export function prefixDeletingStore(): Store {
  const inner = memoryStore();
  const ids = new Set<string>();
  return broken(inner, {
    append(id, expectedSeq, entries) {
      ids.add(id);
      return inner.append(id, expectedSeq, entries);
    },
    delete(id) {
      for (const other of ids) if (other.startsWith(id)) inner.delete(other);
      inner.delete(id);
    },
  });
}
