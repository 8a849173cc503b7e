/** Breaks `list-time`: pays no heed to `since`. */
import { memoryStore } from '../../../kernel/memory-store.js';
import type { Store } from '../../../kernel/store.js';
import { broken } from './delegate.js';

export function timelessStore(): Store {
  const inner = memoryStore();
  return broken(inner, { list: ({ since: _, ...rest } = {}) => inner.list(rest) });
}
