/** Breaks `list-tenant`: shows every tenant the sessions of all. */
import { memoryStore, type Store } from '../../../index.js';
import { broken } from './delegate.js';

export function tenantBlindStore(): Store {
  const inner = memoryStore();
  return broken(inner, { list: ({ tenant: _, ...rest } = {}) => inner.list(rest) });
}

/** Breaks it in another way: it takes an empty tenant in a query for none. */
export function emptyQueryStore(): Store {
  const inner = memoryStore();
  return broken(inner, {
    list: ({ tenant, ...rest } = {}) => inner.list(tenant ? { ...rest, tenant } : rest),
  });
}

/** Breaks it in another way: it keeps no empty tenants, so such a session is everybody's. */
export function emptyTenantStore(): Store {
  const inner = memoryStore();
  return broken(inner, {
    list(options = {}) {
      const { sessions, ...page } = inner.list(options);
      const kept = sessions.filter(({ tenant }) => tenant !== '' || options.tenant === undefined);
      return { ...page, sessions: kept.map(({ tenant, ...rest }) => (tenant ? { ...rest, tenant } : rest)) };
    },
  });
}
