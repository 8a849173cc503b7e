/** Breaks `list-tenant`: shows every tenant the sessions of all. */
import type { Store } from '../../../kernel/store.js';
import { broken, sound } from './delegate.js';

export function tenantBlindStore(): Store {
  const inner = sound();
  return broken(inner, { list: ({ tenant: _, ...rest } = {}) => inner.list(rest) });
}
