/** Breaks `inbox-cursor`: taken items are gone, even if the runner dies before they are in the journal. */
import { memoryStore, type Store } from '../../../index.js';
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
