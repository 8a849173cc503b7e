/** Breaks `fork-copies`: copies the whole journal, wherever the fork was wanted. */
import type { Store } from '../../../kernel/store.js';
import { broken, sound } from './delegate.js';

export function wholeForkStore(): Store {
  const inner = sound();
  return broken(inner, { fork: (id, seq, newId) => inner.fork(id, seq > 0 ? Math.max(seq, inner.head(id)) : seq, newId) });
}
