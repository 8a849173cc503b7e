/** Breaks `list-tenant`: shows every tenant the sessions of all. */
import { memoryStore } from '../../../kernel/memory-store.js';
import type { Store } from '../../../kernel/store.js';
import { broken } from './delegate.js';

export function tenantBlindStore(): Store {
  const inner = memoryStore();
  return broken(inner, { list: ({ tenant: _, ...rest } = {}) => inner.list(rest) });
}
