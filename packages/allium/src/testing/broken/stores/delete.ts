/** Breaks `delete`: the inbox stays, so a session made again under the same id gets the mail of the old one. */
import { type InboxItem, memoryStore, type Store } from '../../../index.js';
import { broken } from './delegate.js';

export function mailKeepingStore(): Store {
  const inner = memoryStore();
  return broken(inner, {
    delete(id) {
      const items: InboxItem[] = inner.take(id, 0).map(({ item }) => item);
      inner.delete(id);
      for (const item of items) inner.post(id, item);
    },
  });
}
