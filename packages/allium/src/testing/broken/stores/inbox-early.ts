/** Breaks `inbox-early`: drops what is posted to a session that has no entry yet. */
import { memoryStore } from '../../../kernel/journal/memory-store.js';
import type { Store } from '../../../kernel/protocol/store.js';
import { broken } from './delegate.js';

export function strictInboxStore(): Store {
  const inner = memoryStore();
  return broken(inner, {
    post(id, item) {
      if (inner.head(id) > 0) inner.post(id, item);
    },
  });
}
