/** Breaks `expected-seq`: notices a session that has moved on, but not one that is behind what was expected. */
import { memoryStore } from '../../../kernel/journal/memory-store.js';
import type { Store } from '../../../kernel/protocol/store.js';
import { broken } from './delegate.js';

export function trustingStore(): Store {
  const inner = memoryStore();
  return broken(inner, {
    append: (id, expectedSeq, entries) => inner.append(id, Math.min(expectedSeq, inner.head(id)), entries),
  });
}
