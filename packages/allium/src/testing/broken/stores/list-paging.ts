/** Breaks `list-paging`: its cursor counts from the newest session, and newer ones come in while somebody pages. */
import { memoryStore, type Store } from '../../../index.js';
import { listCursor } from '../../../stores/kit/index.js';
import { broken } from './delegate.js';

export function offsetPagingStore(): Store {
  const inner = memoryStore();
  return broken(inner, {
    list({ cursor = '0', limit = 100, ...rest } = {}) {
      const { sessions } = inner.list({ ...rest, limit: 100_000 });
      const end = Number(cursor) + limit;
      return {
        sessions: sessions.slice(Number(cursor), end),
        ...(end < sessions.length && { next: String(end) }),
      };
    },
  });
}

/** Breaks it in another way: a list without a limit has none, and is as long as there are sessions. */
export function unlimitedStore(): Store {
  const inner = memoryStore();
  return broken(inner, { list: ({ limit = 100_000, ...rest } = {}) => inner.list({ ...rest, limit }) });
}

/** Breaks it in another way: after the last page there is always another one, which is empty. */
export function endlessStore(): Store {
  const inner = memoryStore();
  return broken(inner, {
    list(options = {}) {
      const { sessions, next } = inner.list(options);
      const last = sessions.at(-1);
      return { sessions, next: next ?? (last ? listCursor(last) : (options.cursor ?? '0:')) };
    },
  });
}
