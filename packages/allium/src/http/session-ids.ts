/**
 * The id of a session in the store, and the one its clients use. Sessions of two tenants never collide, whatever ids
 * they choose.
 */
import { parentOf } from '../stores/kit/index.js';
import { HttpFailure } from './failures.js';
import type { Caller, ServeOptions } from './serve.js';

export interface SessionIds {
  /** Its id in the store. Throws if it can't be one. */
  inStore(sessionId: string, caller: Caller): string;
  /** The id that this caller uses; undefined if the session isn't the caller's. */
  forClient(storeId: string, caller: Caller): string | undefined;
}

export function sessionIds({ authorize, storeId, clientId }: ServeOptions): SessionIds {
  const { inStore, forClient } = storeId ? own(storeId, clientId) : authorize === 'none' ? PLAIN : BY_TENANT;
  return {
    inStore(sessionId, caller) {
      // Dots alone are steps in an address and never arrive.
      // biome-ignore lint/suspicious/noControlCharactersInRegex: those are what is refused.
      if (!/^(?!\.{1,2}$)[^\u0000-\u001f\u007f]{1,200}$/.test(sessionId) || HALF.test(sessionId))
        throw invalidId();
      const id = inStore(sessionId, caller);
      if (parentOf(id) !== undefined) throw invalidId();
      return id;
    },
    forClient: (id, caller) => (parentOf(id) === undefined ? forClient(id, caller) : undefined),
  };
}

/** Half of a character: it can't be written in an address. */
const HALF = /\p{Surrogate}/u;

function invalidId(): HttpFailure {
  return new HttpFailure(
    400,
    'INVALID_SESSION_ID',
    'A session id has 1 to 200 characters, no line breaks, other control characters or halves of characters, and is neither `.`, `..` nor that of a sub-agent.',
  );
}

const PLAIN: SessionIds = { inStore: (id) => id, forClient: (id) => id };

/** An id that leads somewhere else is no use to a client, so it isn't shown. */
function own(
  inStore: NonNullable<ServeOptions['storeId']>,
  clientId: NonNullable<ServeOptions['clientId']> = (id) => id,
): SessionIds {
  return {
    inStore,
    forClient(storeId, caller) {
      const id = clientId(storeId, caller);
      return id !== undefined && inStore(id, caller) === storeId ? id : undefined;
    },
  };
}

/** `tenant/id`. Without a tenant the id can't have a slash, or it could take the ids of tenants. */
const BY_TENANT: SessionIds = {
  inStore: (id, { tenant }) =>
    tenant === undefined ? id.replace(/[%/]/g, encodeURIComponent) : `${encodeURIComponent(tenant)}/${id}`,
  forClient(id, { tenant }) {
    if (tenant === undefined) return id.includes('/') ? undefined : id.replace(/%2[5F]/g, decodeURIComponent);
    const prefix = `${encodeURIComponent(tenant)}/`;
    return id.startsWith(prefix) ? id.slice(prefix.length) : undefined;
  },
};
