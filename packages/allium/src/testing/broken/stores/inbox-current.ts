/** Breaks `inbox-current`: what was in the inbox at the last append is returned until the next one. */
import { memoryStore, type Store } from '../../../index.js';
import { broken } from './delegate.js';

export function rememberingInboxStore(): Store {
  const inner = memoryStore();
  const known = new Map<string, ReturnType<typeof inner.take>>();
  return broken(inner, {
    append(id, seq, entries) {
      const last = inner.append(id, seq, entries);
      const found = inner.take(id, 0);
      // Not sooner, or it would break other laws, too.
      if (seq > 2 && found.length > 0) known.set(id, found);
      return last;
    },
    take: (id, after) => known.get(id) ?? inner.take(id, after),
    delete(id) {
      inner.delete(id);
      known.delete(id);
    },
  });
}
