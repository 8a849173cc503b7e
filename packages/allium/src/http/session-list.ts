/** Pages of a caller's sessions. What they say of other sessions, and of ids in the store, is nothing. */
import type { SessionInfo, SessionPage } from '../index.js';
import { invalidRequest } from './failures.js';
import { tenantOf } from './find-session.js';
import type { Call } from './route.js';

/** A session as its clients know it. */
interface ListedSession {
  readonly sessionId: string;
  readonly createdAt: number;
  readonly updatedAt: number;
}

/** How many sessions are looked at in one go where those of others are in between. */
const STRIDE = 100;

export async function listSessions(
  call: Call,
  limit: number,
): Promise<{ readonly sessions: readonly ListedSession[]; readonly next?: string }> {
  const { query } = call;
  const given = query.get('cursor');
  const { sessions, next } = await ownPage(
    call,
    limit,
    given === undefined ? given : storeCursor(call, given),
  );
  const listed = sessions.flatMap((one) => {
    const sessionId = ownId(call, one);
    return sessionId === undefined ? [] : [{ sessionId, createdAt: one.createdAt, updatedAt: one.updatedAt }];
  });
  return {
    sessions: listed,
    ...(next !== undefined && {
      next: clientCursor(next, sessions.at(-1)!.sessionId, listed.at(-1)!.sessionId),
    }),
  };
}

/** The id its clients use; undefined if it isn't the caller's. */
function ownId({ handling, caller }: Call, { sessionId, tenant }: SessionInfo): string | undefined {
  return tenant === caller.tenant ? handling.ids.forClient(sessionId, caller) : undefined;
}

/** A page of the store that has up to `limit` of the caller's sessions and, unless it is the last page, ends with one. */
async function ownPage(call: Call, limit: number, cursor: string | undefined): Promise<SessionPage> {
  const { store } = call.handling;
  let from = cursor;
  const read = (most: number): SessionPage | Promise<SessionPage> =>
    store.list({ limit: most, ...tenantOf(call.caller), ...(from !== undefined && { cursor: from }) });
  for (let most = limit; ; ) {
    const page = await read(most);
    const { sessions, next } = page;
    const own = sessions.flatMap((one, at) => (ownId(call, one) === undefined ? [] : [at]));
    const end = own[Math.min(limit, own.length) - 1];
    const isRest = next === undefined && own.length <= limit;
    if (isRest || end === sessions.length - 1) return page;
    if (end === undefined) {
      from = next;
      most = STRIDE;
    } else most = end + 1;
  }
}

/** The cursor of a store ends with the last session's id. Clients get their own id in its place. */
function clientCursor(cursor: string, storeId: string, sessionId: string): string {
  if (!cursor.endsWith(storeId)) return `.${cursor}`;
  const before = cursor.slice(0, cursor.length - storeId.length);
  return `${before.length}.${before}${sessionId}`;
}

function storeCursor({ handling, caller }: Call, cursor: string): string {
  const [, length, rest] = /^(\d{0,3})\.(.*)$/s.exec(cursor) ?? [];
  if (rest === undefined) throw invalidRequest('`cursor` has to be the `next` of an earlier page.');
  if (length === '') return rest;
  const before = rest.slice(0, Number(length));
  return before + handling.ids.inStore(rest.slice(before.length), caller);
}
