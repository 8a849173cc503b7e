/** Sessions in an SQLite database: one file, nothing to run, the store to begin with. */

import {
  type Entry,
  type InboxItem,
  type ListOptions,
  type NewEntry,
  type SessionInfo,
  type Snapshot,
  sessionConflict,
  type Tail,
} from '../../index.js';
import { checkKeys, invalidOption } from '../../kit/index.js';
import {
  checkFork,
  checkStorable,
  endMoment,
  firstRun,
  idsBelow,
  isBelow,
  listCursor,
  listQuery,
  moment,
  parseEntries,
  type SyncStore,
  takenBy,
} from '../kit/index.js';
import { openFile, type SqliteDatabase, type SqliteStatement } from './driver.js';
import { LOWER, makeTables } from './tables.js';

export type { SqliteDatabase, SqliteStatement, SqliteValue } from './driver.js';

export interface SqliteStoreOptions {
  /** The file of the database, or `:memory:`. Made if it does not exist, with its directory. */
  readonly path?: string;
  /** An open database instead of `path`. It stays yours: the store makes its tables and changes no settings. */
  readonly database?: SqliteDatabase;
  /**
   * When to wait for the disk. Whatever is chosen, what `append` confirmed outlives the process; this is about the
   * machine losing power. `always`: nothing confirmed is ever lost. `checkpoint`: the last appends may be, never
   * in part.
   * @default 'checkpoint'
   */
  readonly fsync?: 'always' | 'checkpoint';
  /** Keeps other processes out, which makes appends half again as fast. Nobody else can answer or steer then. @default false */
  readonly exclusive?: boolean;
  /** How long to wait (milliseconds) while another process writes. @default 5000 */
  readonly busyTimeoutMs?: number;
}

/**
 * A store in an SQLite database, in WAL mode.
 *
 * Uses `node:sqlite` where Node has it (22.13 and later) and the package `libsql` otherwise.
 *
 * @example
 * ```ts
 * const agent = new Agent({ model, store: sqliteStore({ path: '.allium/sessions.db' }) });
 * ```
 */
export function sqliteStore(options: SqliteStoreOptions): SyncStore {
  checkKeys('sqliteStore()', options, ['path', 'database', 'fsync', 'exclusive', 'busyTimeoutMs']);
  const { path: file, database, fsync = 'checkpoint', exclusive = false, busyTimeoutMs = 5000 } = options;
  if (fsync !== 'always' && fsync !== 'checkpoint')
    throw invalidOption('fsync', "'always' or 'checkpoint'", fsync);
  if (!Number.isInteger(busyTimeoutMs) || busyTimeoutMs < 0)
    throw invalidOption('busyTimeoutMs', 'an integer ≥ 0', busyTimeoutMs);
  if (database !== undefined) return new SqliteStore(database, false);
  if (typeof file !== 'string' || file === '')
    throw invalidOption('path', 'the path of a file, or `:memory:`', file);
  return openFile(file, 'The SQLite store', (opened) => {
    opened.exec(`PRAGMA busy_timeout = ${busyTimeoutMs}`);
    if (exclusive) opened.exec('PRAGMA locking_mode = EXCLUSIVE');
    opened.exec(`PRAGMA journal_mode = WAL; PRAGMA synchronous = ${fsync === 'always' ? 'FULL' : 'NORMAL'}`);
    return new SqliteStore(opened, true, busyTimeoutMs);
  });
}

/** What this handle assumes about a session. If it has become wrong, the insert finds out. */
interface Known {
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
const NOTHING: readonly never[] = Object.freeze([]);

class SqliteStore implements SyncStore {
  readonly #database: SqliteDatabase;
  readonly #owned: boolean;
  readonly #busyTimeoutMs: number;
  readonly #statements = new Map<string, SqliteStatement>();
  readonly #known = new Map<string, Known>();
  readonly #insert: SqliteStatement;
  readonly #insertIfEmpty: SqliteStatement;
  readonly #insertFirst: SqliteStatement;
  readonly #maybePosted: SqliteStatement;

  constructor(database: SqliteDatabase, owned: boolean, busyTimeoutMs = 0) {
    this.#database = database;
    this.#owned = owned;
    this.#busyTimeoutMs = busyTimeoutMs;
    // Deleted data is overwritten with zeros.
    database.exec('PRAGMA secure_delete = ON');
    this.#transaction(() => makeTables(database));
    this.#scrub();
    // Inserts nothing if the place was taken meanwhile, or if the append before it was deleted with its session: then
    // the count is NULL, which the column refuses.
    const insert = (more: string): SqliteStatement =>
      database.prepare(`
        INSERT OR IGNORE INTO allium_appends VALUES (
          (?1 << 32) | ?2, (SELECT ?3 FROM allium_appends WHERE id = (?1 << 32) | ?6${more}), ?4, ?5)`);
    this.#insert = insert('');
    // Also inserts nothing if the inbox has items. So if it inserts, the inbox is known to be empty.
    this.#insertIfEmpty = insert(
      ' AND NOT EXISTS (SELECT 1 FROM allium_inbox WHERE id > ?1 << 32 AND id < (?1 + 1) << 32)',
    );
    this.#insertFirst = database.prepare('INSERT INTO allium_appends VALUES ((?1 << 32) | ?2, ?3, ?4, ?5)');
    // Finds nothing if nothing was posted, which is nearly always the case and costs the least. Keys are never
    // reused, so an existing one belongs to the same session.
    this.#maybePosted = database.prepare(`
      SELECT 1 WHERE EXISTS (SELECT 1 FROM allium_inbox WHERE id > ?1 << 32 AND id < (?1 + 1) << 32)
        OR NOT EXISTS (SELECT 1 FROM allium_sessions WHERE key = ?1)`);
  }

  append(sessionId: string, expectedSeq: number, entries: readonly NewEntry[], snapshot?: Snapshot): number {
    const head = this.#append(sessionId, expectedSeq, entries);
    if (snapshot && snapshot.seq <= head) this.#keep(sessionId, snapshot);
    return head;
  }

  #append(sessionId: string, expectedSeq: number, entries: readonly NewEntry[]): number {
    const known = this.#known.get(sessionId);
    if (
      known?.head !== expectedSeq ||
      entries.length === 0 ||
      (!known.started && firstRun(entries) !== undefined)
    ) {
      return this.#appendSlowly(sessionId, expectedSeq, entries);
    }
    const { changes } = this.#insertRow(known, entries);
    if (Number(changes) !== 1) {
      // Another handle appended, posted, or deleted the session and made it again: start over.
      this.#known.delete(sessionId);
      return this.#appendSlowly(sessionId, expectedSeq, entries);
    }
    known.last = expectedSeq + 1;
    known.head += entries.length;
    if (known.quiet) known.emptyAt = moment();
    else this.#forgetTaken(known.key, entries);
    return known.head;
  }

  /** Removes the inbox items that these entries take, from the disk as well. */
  #forgetTaken(key: number, entries: readonly NewEntry[]): void {
    const taken = takenBy(entries);
    if (!taken) return;
    const { cursor, waits } = taken;
    const rows = this.#all<{ n: number }>(
      `SELECT id & ${LOWER} AS n FROM allium_inbox WHERE id > ?1 << 32 AND id <= (?1 << 32) | ?2`,
      key,
      Math.min(cursor, LOWER),
    ).filter(({ n }) => !waits.includes(n));
    for (const { n } of rows) this.#run('DELETE FROM allium_inbox WHERE id = (?1 << 32) | ?2', key, n);
    if (rows.length > 0) this.#scrub();
  }

  /**
   * Deleted data is overwritten in the database, but is still in the log until that is emptied. That can't be done
   * while others read from the log: then it is tried again with the next removal, and when the store is opened or
   * closed.
   */
  #scrub(): void {
    if (!this.#owned) return;
    this.#database.exec('PRAGMA busy_timeout = 0');
    try {
      this.#database.exec('PRAGMA wal_checkpoint(TRUNCATE)');
    } catch {
      // Somebody else is doing it.
    } finally {
      this.#database.exec(`PRAGMA busy_timeout = ${this.#busyTimeoutMs}`);
    }
  }

  /** The first append of this handle, one that starts the session's first run, or one that found things changed. */
  #appendSlowly(sessionId: string, expectedSeq: number, entries: readonly NewEntry[]): number {
    checkStorable('sessionId', sessionId);
    const head = this.#transaction(() => {
      const run = firstRun(entries);
      if (run?.tenant !== undefined) checkStorable('tenant', run.tenant);
      const first = { at: entries[0]?.at ?? null, started: run !== undefined, tenant: run?.tenant };
      const made = expectedSeq === 0 && entries.length > 0 ? this.#make(sessionId, first) : undefined;
      const session = made ?? this.#session(sessionId);
      if ((session?.head ?? 0) !== expectedSeq)
        throw sessionConflict(sessionId, expectedSeq, session?.head ?? 0);
      if (entries.length === 0) return expectedSeq;
      const current = session!;
      const { key } = current;
      const started = current.started || first.started;
      if (!made && (expectedSeq === 0 || !current.started))
        this.#run(
          `UPDATE allium_sessions SET created_at = coalesce(created_at, ?2), started = ?3,
             tenant = coalesce(tenant, ?4) WHERE key = ?1`,
          key,
          first.at,
          started ? 1 : 0,
          current.started ? null : (first.tenant ?? null),
        );
      this.#insertRow(current, entries);
      const head = expectedSeq + entries.length;
      this.#remember(sessionId, { ...current, head, last: expectedSeq + 1, started });
      return head;
    });
    const known = this.#known.get(sessionId);
    if (known) this.#forgetTaken(known.key, entries);
    return head;
  }

  read(sessionId: string, fromSeq: number): readonly Entry[] {
    const session = this.#session(sessionId);
    return session === undefined ? [] : this.#entries(sessionId, session.key, fromSeq);
  }

  /** Not if others have deleted the session since. */
  #keep(sessionId: string, { seq, state }: Snapshot): void {
    const key = this.#known.get(sessionId)?.key;
    if (key !== undefined)
      this.#run(
        'INSERT OR REPLACE INTO allium_snapshots SELECT key, ?2, ?3 FROM allium_sessions WHERE key = ?1',
        key,
        seq,
        state,
      );
  }

  tail(sessionId: string): Tail {
    const session = this.#session(sessionId);
    if (session === undefined) return { entries: NOTHING };
    const { key, head } = session;
    const [snapshot] = this.#all<Snapshot>(
      'SELECT seq, state FROM allium_snapshots WHERE key = ?1 AND seq <= ?2',
      key,
      head,
    );
    if (snapshot === undefined) return { entries: this.#entries(sessionId, key, 1) };
    return { snapshot, entries: this.#entries(sessionId, key, snapshot.seq + 1) };
  }

  head(sessionId: string): number {
    return this.#session(sessionId)?.head ?? 0;
  }

  list(options: ListOptions = {}): { readonly sessions: readonly SessionInfo[]; readonly next?: string } {
    const { tenant = null, since = null, limit, after } = listQuery(options);
    const rows = this.#all<{
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

  fork(sessionId: string, seq: number, newId: string): void {
    checkStorable('sessionId', newId);
    this.#transaction(() => {
      const source = this.#session(sessionId);
      const target = this.#session(newId);
      checkFork(sessionId, seq, source?.head ?? 0, newId, target?.head ?? 0);
      const entries = this.#entries(sessionId, source!.key, 1).slice(0, seq);
      const current = target ?? this.#create(newId);
      const { key } = current;
      const run = firstRun(entries);
      this.#run(
        'UPDATE allium_sessions SET created_at = ?, started = ?, tenant = ? WHERE key = ?',
        entries[0]!.at,
        run ? 1 : 0,
        run?.tenant ?? null,
        key,
      );
      this.#insertRow(
        current,
        entries.map(({ seq: _, ...entry }) => entry),
      );

      // The inbox continues counting where that of the source is, since the copied journal says how far it was taken.
      // Items that were posted before move up, by way of negative numbers, so that two rows never collide.
      const { posted } = this.#all<{ posted: number }>(
        'SELECT posted FROM allium_sessions WHERE key = ?',
        source!.key,
      )[0]!;
      this.#run('UPDATE allium_sessions SET posted = posted + ? WHERE key = ?', posted, key);
      this.#run(
        'UPDATE allium_inbox SET id = -(id + ?1) WHERE id > ?2 << 32 AND id < (?2 + 1) << 32',
        posted,
        key,
      );
      this.#run('UPDATE allium_inbox SET id = -id WHERE id < 0');
    });
  }

  delete(sessionId: string): void {
    this.#transaction(() => {
      const { from, to } = idsBelow(sessionId);
      const named = 'SELECT key, id FROM allium_sessions WHERE id = ?1 OR (id >= ?2 AND id < ?3)';
      for (const { key, id } of this.#all<{ key: number; id: string }>(named, sessionId, from, to))
        if (id === sessionId || isBelow(id, sessionId)) this.#remove(key, id);
    });
    this.#scrub();
    endMoment();
  }

  #remove(key: number, sessionId: string): void {
    this.#known.delete(sessionId);
    for (const table of ['allium_appends', 'allium_inbox'])
      this.#run(`DELETE FROM ${table} WHERE id > ?1 << 32 AND id < (?1 + 1) << 32`, key);
    this.#run('DELETE FROM allium_sessions WHERE key = ?', key);
  }

  post(sessionId: string, item: InboxItem): void {
    checkStorable('sessionId', sessionId);
    const json = JSON.stringify(item);
    this.#transaction(() => {
      const { key } = this.#session(sessionId) ?? this.#create(sessionId);
      this.#run('UPDATE allium_sessions SET posted = posted + 1 WHERE key = ?', key);
      this.#run(
        'INSERT INTO allium_inbox SELECT (key << 32) | posted, ?2 FROM allium_sessions WHERE key = ?1',
        key,
        json,
      );
    });
    endMoment();
  }

  take(sessionId: string, after: number): readonly { readonly n: number; readonly item: InboxItem }[] {
    const known = this.#known.get(sessionId);
    if (known?.emptyAt === moment()) return NOTHING;
    if (known !== undefined && !this.#maybePosted.get(known.key)) {
      known.quiet = true;
      return NOTHING;
    }
    const rows = this.#all<{ n: number; item: string; key: number }>(
      `SELECT i.id & ${LOWER} AS n, i.item, s.key FROM allium_sessions s
       JOIN allium_inbox i ON i.id > s.key << 32 AND i.id < (s.key + 1) << 32
       WHERE s.id = ? ORDER BY i.id`,
      sessionId,
    );
    if (rows.length === 0) return NOTHING;
    const { n, key } = rows[0]!;
    if (n <= after) {
      this.#run(
        'DELETE FROM allium_inbox WHERE id > ?1 << 32 AND id <= (?1 << 32) | ?2',
        key,
        Math.min(after, LOWER),
      );
      this.#scrub();
    }
    return rows
      .filter((row) => row.n > after)
      .map((row) => ({ n: row.n, item: JSON.parse(row.item) as InboxItem }));
  }

  close(): void {
    this.#known.clear();
    if (this.#owned) this.#database.close();
  }

  #session(sessionId: string): Known | undefined {
    const row = this.#all<{ key: number; started: number; last: number | null; count: number | null }>(
      `SELECT s.key, s.started, a.id & ${LOWER} AS last, a.count FROM allium_sessions s
       LEFT JOIN allium_appends a ON a.id = (SELECT MAX(id) FROM allium_appends WHERE id > s.key << 32 AND id < (s.key + 1) << 32)
       WHERE s.id = ?`,
      sessionId,
    )[0];
    if (row === undefined) return undefined;
    const { key, last, count } = row;
    const head = last === null ? 0 : last + count! - 1;
    return { key, head, last: last ?? 0, started: row.started === 1, quiet: false, emptyAt: -1 };
  }

  /** A session that does not exist yet, or nothing. */
  #make(
    sessionId: string,
    { at, started, tenant }: { at: number | null; started: boolean; tenant?: string | undefined },
  ): Known | undefined {
    const { changes } = this.#prepare(
      'INSERT OR IGNORE INTO allium_sessions (id, created_at, started, tenant) VALUES (?, ?, ?, ?)',
    ).run(sessionId, at, started ? 1 : 0, tenant ?? null);
    if (Number(changes) !== 1) return undefined;
    const [row] = this.#all<{ key: number }>('SELECT last_insert_rowid() AS key');
    return { key: row!.key, head: 0, last: 0, started, quiet: false, emptyAt: -1 };
  }

  /** A session that has only an inbox, or nothing in it yet. */
  #create(sessionId: string): Known {
    return this.#make(sessionId, { at: null, started: false })!;
  }

  #insertRow(
    { key, head, last, quiet }: Known,
    entries: readonly NewEntry[],
  ): { readonly changes: number | bigint } {
    const [at, json] = [entries[entries.length - 1]!.at, JSON.stringify(entries)];
    if (head === 0) return this.#insertFirst.run(key, 1, entries.length, at, json);
    const insert = quiet ? this.#insertIfEmpty : this.#insert;
    return insert.run(key, head + 1, entries.length, at, json, last);
  }

  #entries(sessionId: string, key: number, fromSeq: number): Entry[] {
    // The first wanted entry may be in the middle of an append.
    const rows = this.#all<{ seq: number; entries: string }>(
      `SELECT id & ${LOWER} AS seq, entries FROM allium_appends
       WHERE id < (?1 + 1) << 32 AND id >= coalesce(
         (SELECT MAX(id) FROM allium_appends WHERE id > ?1 << 32 AND id <= (?1 << 32) | ?2), (?1 << 32) + 1)
       ORDER BY id`,
      key,
      Math.max(1, Math.min(fromSeq, LOWER)),
    );
    return rows
      .flatMap(({ seq, entries }) => parseEntries(entries, seq, sessionId))
      .filter(({ seq }) => seq >= fromSeq);
  }

  #remember(sessionId: string, known: Known): void {
    this.#known.set(sessionId, known);
    if (this.#known.size > MAX_KNOWN) this.#known.delete(this.#known.keys().next().value!);
  }

  #transaction<T>(work: () => T): T {
    this.#database.exec('BEGIN IMMEDIATE');
    try {
      const result = work();
      this.#database.exec('COMMIT');
      return result;
    } catch (error) {
      this.#database.exec('ROLLBACK');
      throw error;
    }
  }

  #run(sql: string, ...values: (string | number | null)[]): void {
    this.#prepare(sql).run(...values);
  }

  #all<Row>(sql: string, ...values: (string | number | null)[]): Row[] {
    return this.#prepare(sql).all(...values) as Row[];
  }

  #prepare(sql: string): SqliteStatement {
    let statement = this.#statements.get(sql);
    if (statement === undefined) {
      statement = this.#database.prepare(sql);
      this.#statements.set(sql, statement);
    }
    return statement;
  }
}
