/** Breaks `inbox-order`: the numbers are right, the items stand the wrong way round. */
import { memoryStore, type Store } from '../../../index.js';
import { broken } from './delegate.js';

export function stackInboxStore(): Store {
  const inner = memoryStore();
  return broken(inner, {
    take(id, after) {
      const items = inner.take(id, after);
      return items.length < 3
        ? items
        : items.map(({ n }, i) => ({ n, item: items[items.length - 1 - i]!.item }));
    },
  });
}
