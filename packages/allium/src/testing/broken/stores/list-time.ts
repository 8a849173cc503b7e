/** Breaks `list-time`: it ignores `since`. */
import { memoryStore, type Store } from '../../../index.js';
import { broken } from './delegate.js';

export function timelessStore(): Store {
  const inner = memoryStore();
  return broken(inner, { list: ({ since: _, ...rest } = {}) => inner.list(rest) });
}

/** Breaks it in another way: it has forgotten `since` by the second page. */
export function forgetfulPagingStore(): Store {
  const inner = memoryStore();
  return broken(inner, {
    list({ since, ...rest } = {}) {
      return inner.list(rest.cursor === undefined && since !== undefined ? { ...rest, since } : rest);
    },
  });
}
