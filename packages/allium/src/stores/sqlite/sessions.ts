/** The sessions of a database: which there are, and what this handle knows about them. */

import type { ListOptions, SessionInfo } from '../../index.js';
import { idsBelow, isBelow, listCursor, listQuery, moment, Newest, type SyncStore } from '../kit/index.js';
import type { Connection } from './connection.js';
import { LOWER } from './tables.js';

/** What this handle assumes about a session. If it has become wrong, the insert finds out. */
export interface Known {
  readonly key: number;
  head: number;
  /** The number of the first entry of the last append. */
  last: number;
  /** Has a run started, which decides the tenant? */
  started: boolean;
  /** Its inbox was empty at the last look. */
  quiet: boolean;
  /** The moment of the last append that found the inbox empty. */
  emptyAt: number;
}

const MAX_KNOWN = 20_000;

export class Sessions {
  readonly #connection: Connection;
  #known = new Newest<string, Known>(MAX_KNOWN);
  /** The last session that was looked for and wasn't there, and the moment of that look. */
  #missing = { sessionId: '', at: -1 };

  constructor(connection: Connection) {
    this.#connection = connection;
  }

  known(sessionId: string): Known | undefined {
    return this.#known.get(sessionId);
  }

  remember(sessionId: string, known: Known): void {
    this.#known.set(sessionId, known);
  }

  forget(sessionId: string): void {
    this.#known.delete(sessionId);
  }

  forgetAll(): void {
    this.#known = new Newest(MAX_KNOWN);
  }

  /** Was it found not to exist in this moment? Then it has no inbox either. */
  isMissing(sessionId: string): boolean {
    return this.#missing.sessionId === sessionId && this.#missing.at === moment();
  }

  /** A session as it is stored now. */
  find(sessionId: string): Known | undefined {
    const row = this.#connection.first<{
      key: number;
      started: number;
      last: number | null;
      count: number | null;
    }>(
      `SELECT s.key, s.started, a.id & ${LOWER} AS last, a.count FROM allium_sessions s
       LEFT JOIN allium_appends a ON a.id = (SELECT MAX(id) FROM allium_appends WHERE id > s.key << 32 AND id < (s.key + 1) << 32)
       WHERE s.id = ?`,
      sessionId,
    );
    if (row === undefined) {
      this.#missing = { sessionId, at: moment() };
      return undefined;
    }
    const { key, last, count } = row;
    const head = last === null ? 0 : last + count! - 1;
    return { key, head, last: last ?? 0, started: row.started === 1, quiet: false, emptyAt: -1 };
  }

  /** A session that does not exist yet, or nothing. */
  make(
    sessionId: string,
    { at, started, tenant }: { at: number | null; started: boolean; tenant?: string | undefined },
  ): Known | undefined {
    const row = this.#connection.first<{ key: number }>(
      'INSERT OR IGNORE INTO allium_sessions (id, created_at, started, tenant) VALUES (?, ?, ?, ?) RETURNING key',
      sessionId,
      at,
      started ? 1 : 0,
      tenant ?? null,
    );
    // Its inbox is empty: posting an item would have made the session.
    return row && { key: row.key, head: 0, last: 0, started, quiet: true, emptyAt: moment() };
  }

  /** A session that has only an inbox, or nothing in it yet. */
  create(sessionId: string): Known {
    return this.make(sessionId, { at: null, started: false })!;
  }

  list(options: ListOptions = {}): ReturnType<SyncStore['list']> {
    const { tenant = null, since = null, limit, after } = listQuery(options);
    const rows = this.#connection.all<{
      id: string;
      tenant: string | null;
      created_at: number;
      seq: number;
      at: number;
    }>(
      `SELECT s.id, s.tenant, s.created_at, (a.id & ${LOWER}) + a.count - 1 AS seq, a.at FROM allium_sessions s
       JOIN allium_appends a ON a.id = (SELECT MAX(id) FROM allium_appends WHERE id > s.key << 32 AND id < (s.key + 1) << 32)
       WHERE (?1 IS NULL OR s.tenant = ?1) AND (?2 IS NULL OR a.at >= ?2)
         AND (?3 IS NULL OR a.at < ?3 OR (a.at = ?3 AND s.id > ?4))
       ORDER BY a.at DESC, s.id LIMIT ?5`,
      tenant,
      since,
      after?.updatedAt ?? null,
      after?.sessionId ?? null,
      limit + 1,
    );
    const sessions = rows.slice(0, limit).map(
      (row): SessionInfo => ({
        sessionId: row.id,
        ...(row.tenant !== null && { tenant: row.tenant }),
        seq: row.seq,
        createdAt: row.created_at,
        updatedAt: row.at,
      }),
    );
    return rows.length > limit ? { sessions, next: listCursor(sessions[limit - 1]!) } : { sessions };
  }

  /** Deletes it with the sessions of its sub-agents. */
  delete(sessionId: string): void {
    const { from, to } = idsBelow(sessionId);
    const named = 'SELECT key, id FROM allium_sessions WHERE id = ?1 OR (id >= ?2 AND id < ?3)';
    for (const { key, id } of this.#connection.all<{ key: number; id: string }>(named, sessionId, from, to))
      if (id === sessionId || isBelow(id, sessionId)) this.#remove(key, id);
  }

  #remove(key: number, sessionId: string): void {
    this.#known.delete(sessionId);
    for (const table of ['allium_appends', 'allium_inbox'])
      this.#connection.run(`DELETE FROM ${table} WHERE id > ?1 << 32 AND id < (?1 + 1) << 32`, key);
    this.#connection.run('DELETE FROM allium_sessions WHERE key = ?', key);
  }
}
