/** Helpers for implementations of the store port. */

import { AlliumError, invalidOption, sessionConflict, shown } from '../lib/errors.js';
import { checkKeys } from '../lib/shapes.js';
import type {
  Entry,
  InboxItem,
  ListOptions,
  NewEntry,
  Posted,
  SessionInfo,
  SessionPage,
  Snapshot,
  Store,
  Tail,
} from '../protocol/store.js';

/** A store that answers without promises, because it needs no server. */
export interface SyncStore extends Store {
  append(sessionId: string, expectedSeq: number, entries: readonly NewEntry[], snapshot?: Snapshot): number;
  read(sessionId: string, fromSeq: number): readonly Entry[];
  tail?(sessionId: string): Tail;
  head(sessionId: string): number;
  list(options?: ListOptions): SessionPage;
  fork(sessionId: string, seq: number, newId: string): void;
  delete(sessionId: string): void;
  post(sessionId: string, item: InboxItem): void;
  take(sessionId: string, after: number): readonly Posted[];
  close(): void;
}

/** The parent session of a sub-agent's session: deleting it deletes both. Undefined for other sessions. */
export function parentOf(sessionId: string): string | undefined {
  return /^(.*)\/r_[^/]*\.\d+\.\d+(?:\+\d+)?(?:~\d+)?$/s.exec(sessionId)?.[1];
}

/** The first `run_start` of the entries. Its tenant owns the session. */
export function firstRun(entries: readonly NewEntry[]): { readonly tenant: string | undefined } | undefined {
  for (const entry of entries) if (entry.type === 'run_start') return { tenant: entry.tenant };
  return undefined;
}

/** Throws if a fork isn't possible. `head` and `newHead`: how many entries the two sessions have. */
export function checkFork(
  sessionId: string,
  seq: number,
  head: number,
  newId: string,
  newHead: number,
): void {
  if (head === 0) {
    throw new AlliumError(
      'SESSION_UNKNOWN',
      `Session ${shown(sessionId)} does not exist, so it cannot be forked. Check the id.`,
      {
        data: { sessionId },
      },
    );
  }
  if (!Number.isInteger(seq) || seq < 1 || seq > head)
    throw invalidOption('seq', `an entry number from 1 to ${head}`, seq);
  if (newHead !== 0) throw sessionConflict(newId, 0, newHead);
}

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

/**
 * Which inbox items these entries take out, if any: those up to `cursor` except `waits`. A store deletes them together with
 * the append.
 */
export function takenBy(
  entries: readonly NewEntry[],
): { readonly cursor: number; readonly waits: readonly number[] } | undefined {
  const last = entries.findLast(({ type }) => type === 'inbox');
  return last?.type === 'inbox' ? { cursor: last.cursor, waits: last.waits ?? [] } : undefined;
}
