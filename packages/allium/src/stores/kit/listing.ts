/** Pages of sessions, as `list` of a store returns them. */

import type { ListOptions, SessionInfo, SessionPage } from '../../index.js';
import { checkKeys, invalidOption } from '../../kit/index.js';

/** The options of `list` with their defaults; `after` is the last session of the page before. */
export interface ListQuery {
  readonly tenant: string | undefined;
  readonly since: number | undefined;
  readonly limit: number;
  readonly after: { readonly updatedAt: number; readonly sessionId: string } | undefined;
}

export function listQuery(options: ListOptions): ListQuery {
  checkKeys('`list`', options, ['tenant', 'since', 'limit', 'cursor']);
  const { tenant, since, limit = 100, cursor } = options;
  if (!Number.isInteger(limit) || limit < 1) throw invalidOption('limit', 'an integer ≥ 1', limit);
  if (cursor === undefined) return { tenant, since, limit, after: undefined };
  const parts = /^(-?\d+(?:\.\d+)?):(.*)$/s.exec(cursor);
  if (parts === null) throw invalidOption('cursor', 'the `next` of an earlier page', cursor);
  return { tenant, since, limit, after: { updatedAt: Number(parts[1]), sessionId: parts[2]! } };
}

/** The cursor after a session. It names a position in the order, so pages don't shift. */
export function listCursor(last: SessionInfo): string {
  return `${last.updatedAt}:${last.sessionId}`;
}

/** Newest first; sessions of the same time by id, in the order of their UTF-16 code units. */
function compareSessions(
  a: { updatedAt: number; sessionId: string },
  b: { updatedAt: number; sessionId: string },
): number {
  if (a.updatedAt !== b.updatedAt) return b.updatedAt - a.updatedAt;
  return a.sessionId < b.sessionId ? -1 : a.sessionId > b.sessionId ? 1 : 0;
}

/** One page of `infos`, for stores that have all of them in memory. */
export function listPage(infos: readonly SessionInfo[], options: ListOptions): SessionPage {
  const { tenant, since, limit, after } = listQuery(options);
  const wanted = infos
    .filter((info) => tenant === undefined || info.tenant === tenant)
    .filter((info) => since === undefined || info.updatedAt >= since)
    .filter((info) => after === undefined || compareSessions(info, after) > 0)
    .sort(compareSessions);
  const sessions = wanted.slice(0, limit);
  return wanted.length > limit ? { sessions, next: listCursor(sessions[limit - 1]!) } : { sessions };
}
