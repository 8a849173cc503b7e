/** Sessions in an SQLite database: one file, nothing to run, the store to begin with. */

import type { Entry, InboxItem, ListOptions, NewEntry, Snapshot, Tail } from '../../index.js';
import { checkFields, type Fields, invalidOption, kinds } from '../../kit/index.js';
import { checkFork, checkStorable, endMoment, firstRun, moment, type SyncStore } from '../kit/index.js';
import { Appends } from './appends.js';
import { Connection } from './connection.js';
import { openFile, type SqliteDatabase, type SqliteStatement } from './driver.js';
import { Sessions } from './sessions.js';
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

const OPTIONS = {
  path: { ...kinds.nonEmptyText, expected: 'the path of a file, or `:memory:`' },
  database: kinds.methods<SqliteDatabase>('exec', 'prepare'),
  fsync: kinds.oneOf('always', 'checkpoint'),
  exclusive: kinds.flag,
  // SQLite keeps it in 32 bits.
  busyTimeoutMs: kinds.integer(0, 2_147_483_647),
} satisfies Fields;

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
  checkFields('sqliteStore()', OPTIONS, options);
  const { path: file, database, fsync = 'checkpoint', exclusive = false, busyTimeoutMs = 5000 } = options;
  if (database !== undefined) return new SqliteStore(database, false);
  if (file === undefined) throw invalidOption('path', OPTIONS.path.expected, file);
  return openFile(file, 'The SQLite store', (opened) => {
    opened.exec(`PRAGMA busy_timeout = ${busyTimeoutMs}`);
    if (exclusive) opened.exec('PRAGMA locking_mode = EXCLUSIVE');
    opened.exec(`PRAGMA journal_mode = WAL; PRAGMA synchronous = ${fsync === 'always' ? 'FULL' : 'NORMAL'}`);
    return new SqliteStore(opened, true, busyTimeoutMs);
  });
}

const NOTHING: readonly never[] = Object.freeze([]);

class SqliteStore implements SyncStore {
  readonly #connection: Connection;
  readonly #sessions: Sessions;
  readonly #appends: Appends;
  readonly #maybePosted: SqliteStatement;

  constructor(database: SqliteDatabase, owned: boolean, busyTimeoutMs = 0) {
    const connection = new Connection(database, owned, busyTimeoutMs);
    this.#connection = connection;
    // Deleted data is overwritten with zeros.
    database.exec('PRAGMA secure_delete = ON');
    connection.transaction(() => makeTables(database));
    connection.scrub();
    this.#sessions = new Sessions(connection);
    this.#appends = new Appends(connection, this.#sessions);
    // Finds nothing if nothing was posted, which is nearly always the case and costs the least. Keys are never
    // reused, so an existing one belongs to the same session.
    this.#maybePosted = database.prepare(`
      SELECT 1 WHERE EXISTS (SELECT 1 FROM allium_inbox WHERE id > ?1 << 32 AND id < (?1 + 1) << 32)
        OR NOT EXISTS (SELECT 1 FROM allium_sessions WHERE key = ?1)`);
  }

  append(sessionId: string, expectedSeq: number, entries: readonly NewEntry[], snapshot?: Snapshot): number {
    const head = this.#appends.append(sessionId, expectedSeq, entries);
    if (snapshot && snapshot.seq <= head) this.#appends.keep(sessionId, snapshot);
    return head;
  }

  read(sessionId: string, fromSeq: number): readonly Entry[] {
    const session = this.#sessions.find(sessionId);
    return session === undefined ? [] : this.#appends.entries(sessionId, session.key, fromSeq);
  }

  tail(sessionId: string): Tail {
    return this.#appends.tail(sessionId);
  }

  head(sessionId: string): number {
    return this.#sessions.find(sessionId)?.head ?? 0;
  }

  list(options: ListOptions = {}): ReturnType<SyncStore['list']> {
    return this.#sessions.list(options);
  }

  fork(sessionId: string, seq: number, newId: string): void {
    checkStorable('sessionId', newId);
    this.#connection.transaction(() => {
      const source = this.#sessions.find(sessionId);
      const target = this.#sessions.find(newId);
      checkFork(sessionId, seq, source?.head ?? 0, newId, target?.head ?? 0);
      const entries = this.#appends.entries(sessionId, source!.key, 1).slice(0, seq);
      const current = target ?? this.#sessions.create(newId);
      const { key } = current;
      const run = firstRun(entries);
      this.#connection.run(
        'UPDATE allium_sessions SET created_at = ?, started = ?, tenant = ? WHERE key = ?',
        entries[0]!.at,
        run ? 1 : 0,
        run?.tenant ?? null,
        key,
      );
      this.#appends.insertRow(
        current,
        entries.map(({ seq: _, ...entry }) => entry),
      );

      // The inbox continues counting where that of the source is, since the copied journal says how far it was taken.
      // Items that were posted before move up, by way of negative numbers, so that two rows never collide.
      const { posted } = this.#connection.all<{ posted: number }>(
        'SELECT posted FROM allium_sessions WHERE key = ?',
        source!.key,
      )[0]!;
      this.#connection.run('UPDATE allium_sessions SET posted = posted + ? WHERE key = ?', posted, key);
      this.#connection.run(
        'UPDATE allium_inbox SET id = -(id + ?1) WHERE id > ?2 << 32 AND id < (?2 + 1) << 32',
        posted,
        key,
      );
      this.#connection.run('UPDATE allium_inbox SET id = -id WHERE id < 0');
    });
  }

  delete(sessionId: string): void {
    this.#connection.transaction(() => this.#sessions.delete(sessionId));
    this.#connection.scrub();
    endMoment();
  }

  post(sessionId: string, item: InboxItem): void {
    checkStorable('sessionId', sessionId);
    const json = JSON.stringify(item);
    this.#connection.transaction(() => {
      const { key } = this.#sessions.find(sessionId) ?? this.#sessions.create(sessionId);
      this.#connection.run('UPDATE allium_sessions SET posted = posted + 1 WHERE key = ?', key);
      this.#connection.run(
        'INSERT INTO allium_inbox SELECT (key << 32) | posted, ?2 FROM allium_sessions WHERE key = ?1',
        key,
        json,
      );
    });
    endMoment();
  }

  take(sessionId: string, after: number): readonly { readonly n: number; readonly item: InboxItem }[] {
    const known = this.#sessions.known(sessionId);
    if (known?.emptyAt === moment() || (!known && this.#sessions.isMissing(sessionId))) return NOTHING;
    if (known !== undefined && !this.#maybePosted.get(known.key)) {
      known.quiet = true;
      return NOTHING;
    }
    const rows = this.#connection.all<{ n: number; item: string; key: number }>(
      `SELECT i.id & ${LOWER} AS n, i.item, s.key FROM allium_sessions s
       JOIN allium_inbox i ON i.id > s.key << 32 AND i.id < (s.key + 1) << 32
       WHERE s.id = ? ORDER BY i.id`,
      sessionId,
    );
    if (rows.length === 0) return NOTHING;
    const { n, key } = rows[0]!;
    if (n <= after) {
      this.#connection.run(
        'DELETE FROM allium_inbox WHERE id > ?1 << 32 AND id <= (?1 << 32) | ?2',
        key,
        Math.min(after, LOWER),
      );
      this.#connection.scrub();
    }
    return rows
      .filter((row) => row.n > after)
      .map((row) => ({ n: row.n, item: JSON.parse(row.item) as InboxItem }));
  }

  close(): void {
    this.#sessions.forgetAll();
    this.#connection.close();
  }
}
