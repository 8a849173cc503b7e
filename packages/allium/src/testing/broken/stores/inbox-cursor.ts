/** Breaks `inbox-cursor`: what was taken is gone, even when the runner dies before it is in the journal. */
import { memoryStore } from '../../../kernel/journal/memory-store.js';
import type { Store } from '../../../kernel/protocol/store.js';
import { broken } from './delegate.js';

export function destructiveInboxStore(): Store {
  const inner = memoryStore();
  return broken(inner, {
    take(id, after) {
      const items = inner.take(id, after);
      inner.take(id, Number.POSITIVE_INFINITY);
      return items;
    },
  });
}
