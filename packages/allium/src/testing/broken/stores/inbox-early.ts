/** Breaks `inbox-early`: drops what is posted to a session that has no entry yet. */
import { memoryStore, type Store } from '../../../index.js';
import { broken } from './delegate.js';

export function strictInboxStore(): Store {
  const inner = memoryStore();
  return broken(inner, {
    post(id, item) {
      if (inner.head(id) > 0) inner.post(id, item);
    },
  });
}
