/** Breaks `fork-copies`: copies the whole journal, wherever the fork was wanted. */
import { memoryStore, type Store } from '../../../index.js';
import { broken } from './delegate.js';

export function wholeForkStore(): Store {
  const inner = memoryStore();
  return broken(inner, {
    fork: (id, seq, newId) => inner.fork(id, seq > 0 ? Math.max(seq, inner.head(id)) : seq, newId),
  });
}
