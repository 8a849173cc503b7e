/** Breaks `inbox-early`: drops what is posted to a session that has no entry yet. */
import type { Store } from '../../../kernel/store.js';
import { broken, sound } from './delegate.js';

export function strictInboxStore(): Store {
  const inner = sound();
  return broken(inner, {
    post(id, item) {
      if (inner.head(id) > 0) inner.post(id, item);
    },
  });
}
