/** What implementations of the store port share. */
import { AlliumError, invalidOption, messageOf, sessionConflict, shown } from '../lib/errors.js';
import { checkKeys } from '../lib/shapes.js';
import type {
  Entry,
  InboxItem,
  ListOptions,
  NewEntry,
  Posted,
  SessionInfo,
  SessionPage,
  Store,
} from '../protocol/store.js';

/** A store that answers without promises, as those do that need not wait for a server. */
export interface SyncStore extends Store {
  append(sessionId: string, expectedSeq: number, entries: readonly NewEntry[]): number;
  read(sessionId: string, fromSeq: number): readonly Entry[];
  head(sessionId: string): number;
  list(options?: ListOptions): SessionPage;
  fork(sessionId: string, seq: number, newId: string): void;
  delete(sessionId: string): void;
  post(sessionId: string, item: InboxItem): void;
  take(sessionId: string, after: number): readonly Posted[];
  close(): void;
}

/**
 * Throws for text that columns, file names and keys cannot hold: they refuse NUL and replace lone surrogates, and two
 * ids or tenants that become one would give a session to somebody else.
 */
export function checkStorable(option: 'sessionId' | 'tenant', value: string): void {
  if (typeof value === 'string' && !value.includes('\0') && !LONE_SURROGATE.test(value)) return;
  throw invalidOption(option, 'well-formed text without NUL characters', value);
}

const LONE_SURROGATE = /\p{Surrogate}/u;

/** The session whose run started this one as a sub-agent: `delete` of it deletes both. Undefined of any other session. */
export function parentOf(sessionId: string): string | undefined {
  return /^(.*)\/r_[^/]*\.\d+\.\d+(?:\+\d+)?(?:~\d+)?$/s.exec(sessionId)?.[1];
}

/** Is it the session of a sub-agent of the other one, or of a sub-agent of that? */
export function isBelow(sessionId: string, ancestor: string): boolean {
  for (let at = parentOf(sessionId); at !== undefined; at = parentOf(at)) if (at === ancestor) return true;
  return false;
}

/** From and up to where the ids of such sessions are, in the order of their code units. */
export function idsBelow(sessionId: string): { readonly from: string; readonly to: string } {
  // '`' comes next after '_'.
  return { from: `${sessionId}/r_`, to: `${sessionId}/r\`` };
}

/** The entries of one append as they were stored, the first of them number `seq`. */
export function parseEntries(json: string, seq: number, sessionId: string): Entry[] {
  let entries: unknown;
  try {
    entries = JSON.parse(json);
  } catch (cause) {
    throw damaged(sessionId, seq, cause);
  }
  if (!Array.isArray(entries)) throw damaged(sessionId, seq, undefined);
  return entries.map((entry, i) => ({ ...entry, seq: seq + i }) as Entry);
}

function damaged(sessionId: string, seq: number, cause: unknown): AlliumError {
  return new AlliumError(
    'SESSION_CORRUPT',
    `Entry ${seq} of session ${shown(sessionId)} cannot be read. It was changed by something else, or damaged: restore it from a backup, or delete the session.`,
    { cause, data: { sessionId, seq } },
  );
}

/** What `list` needs to know of entries: a session has the tenant of its first `run_start`, with or without one. */
export function firstRun(entries: readonly NewEntry[]): { readonly tenant: string | undefined } | undefined {
  for (const entry of entries) if (entry.type === 'run_start') return { tenant: entry.tenant };
  return undefined;
}

/** Raises the error of a fork that cannot be made, given how many entries the two sessions have. */
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

/** The cursor that goes on after a session. It names a place in the order, so nothing shifts while somebody pages. */
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

/** One page of `infos`, for stores that have them all at hand. */
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

const A_FILE = 'there is a file where a folder is needed. Name another path, or move that file away.';

/** By what Node and SQLite call it: what is wrong with a path, and what to do about it. */
const PATH_PROBLEMS: Readonly<Record<string, string>> = {
  EISDIR: 'it is a folder. Name a file in it.',
  ENOTDIR: A_FILE,
  EEXIST: A_FILE,
  ENOENT: 'its folder is not there. Make it, or name another path.',
  EACCES: 'this process may not use it. Give it the right to read and write there, or name another path.',
  EROFS: 'the file system can only be read. Name a path that can be written to.',
  ENOSPC: 'the disk is full. Make room, or name a path on another disk.',
  EMFILE: 'too many files are open. Raise the limit of the process (ulimit -n).',
  ELOOP: 'it is a link that leads in a circle, or one that is not followed. Name the file itself.',
  ENAMETOOLONG: 'it is longer than the file system allows. Name a shorter path.',
  SQLITE_CANTOPEN: 'SQLite cannot open it. Give the process the right to read and write it and its folder.',
  SQLITE_NOTADB: 'it is not an SQLite database. Name another file, or move this one away.',
  SQLITE_CORRUPT: 'the database in it is damaged. Restore a backup, or name another file.',
  SQLITE_READONLY: 'it can only be read. Give the process the right to write it and its folder.',
  SQLITE_FULL: 'the disk is full. Make room, or name a path on another disk.',
  SQLITE_IOERR: 'the disk failed while it was read or written. Check the disk.',
  SQLITE_BUSY: 'another process holds it. End that process, or do without `exclusive`.',
};
/** The same by the numbers that `node:sqlite` gives. */
const SQLITE_NUMBERS: Readonly<Record<number, string>> = {
  5: 'SQLITE_BUSY',
  8: 'SQLITE_READONLY',
  10: 'SQLITE_IOERR',
  11: 'SQLITE_CORRUPT',
  13: 'SQLITE_FULL',
  14: 'SQLITE_CANTOPEN',
  26: 'SQLITE_NOTADB',
};

/**
 * The error for a file or folder that cannot be used: which one, why, and what to do. An error that has a code of ours stays
 * as it is.
 */
export function pathFailed(what: string, path: string, cause: unknown): unknown {
  const { code, errcode } = (cause ?? {}) as { readonly code?: unknown; readonly errcode?: unknown };
  if (cause instanceof AlliumError) return cause;
  const named = typeof errcode === 'number' ? SQLITE_NUMBERS[errcode & 0xff] : String(code ?? '');
  const problem =
    PATH_PROBLEMS[named === 'EPERM' ? 'EACCES' : (named ?? '').replace(/^(SQLITE_[A-Z]+)_.*/, '$1')];
  return new AlliumError('STORE_FAILED', `${what} cannot use ${path}: ${problem ?? messageOf(cause)}`, {
    cause,
    data: { path },
  });
}

/**
 * Which items of the inbox these entries take over, if any: those up to `cursor` but for `waits`. What is left of them is in
 * the entries, so a store forgets them together with the append.
 */
export function takenBy(
  entries: readonly NewEntry[],
): { readonly cursor: number; readonly waits: readonly number[] } | undefined {
  const last = entries.findLast(({ type }) => type === 'inbox');
  return last?.type === 'inbox' ? { cursor: last.cursor, waits: last.waits ?? [] } : undefined;
}
