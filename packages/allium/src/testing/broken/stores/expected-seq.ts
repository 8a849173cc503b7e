/** Breaks `expected-seq`: notices a session that has moved on, but not one that is behind what was expected. */
import { memoryStore, type Store } from '../../../index.js';
import { broken } from './delegate.js';

export function trustingStore(): Store {
  const inner = memoryStore();
  return broken(inner, {
    append: (id, expectedSeq, entries) => inner.append(id, Math.min(expectedSeq, inner.head(id)), entries),
  });
}
