/** Breaks `list-time`: pays no heed to `since`. */
import type { Store } from '../../../kernel/store.js';
import { broken, sound } from './delegate.js';

export function timelessStore(): Store {
  const inner = sound();
  return broken(inner, { list: ({ since: _, ...rest } = {}) => inner.list(rest) });
}
