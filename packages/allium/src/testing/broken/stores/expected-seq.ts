/** Breaks `expected-seq`: notices a session that has moved on, but not one that is behind what was expected. */
import type { Store } from '../../../kernel/store.js';
import { broken, sound } from './delegate.js';

export function trustingStore(): Store {
  const inner = sound();
  return broken(inner, {
    append: (id, expectedSeq, entries) => inner.append(id, Math.min(expectedSeq, inner.head(id)), entries),
  });
}
