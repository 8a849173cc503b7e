/** The appends of sessions: writing them, and reading their entries. */

import { type Entry, type NewEntry, type Snapshot, sessionConflict, type Tail } from '../../index.js';
import { checkStorable, entriesText, firstRun, moment, parseEntries, takenBy } from '../kit/index.js';
import type { Connection } from './connection.js';
import type { SqliteStatement } from './driver.js';
import type { Known, Sessions } from './sessions.js';
import { LOWER } from './tables.js';

export class Appends {
  readonly #connection: Connection;
  readonly #sessions: Sessions;
  readonly #insert: SqliteStatement;
  readonly #insertIfEmpty: SqliteStatement;
  readonly #insertFirst: SqliteStatement;

  constructor(connection: Connection, sessions: Sessions) {
    this.#connection = connection;
    this.#sessions = sessions;
    const { database } = connection;
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
  }

  append(sessionId: string, expectedSeq: number, entries: readonly NewEntry[]): number {
    const known = this.#sessions.known(sessionId);
    if (
      known?.head !== expectedSeq ||
      entries.length === 0 ||
      (!known.started && firstRun(entries) !== undefined)
    ) {
      return this.#appendSlowly(sessionId, expectedSeq, entries);
    }
    const { changes } = this.insertRow(known, entries);
    if (Number(changes) !== 1) {
      // Another handle appended, posted, or deleted the session and made it again: start over.
      this.#sessions.forget(sessionId);
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
    const rows = this.#connection
      .all<{ n: number }>(
        `SELECT id & ${LOWER} AS n FROM allium_inbox WHERE id > ?1 << 32 AND id <= (?1 << 32) | ?2`,
        key,
        Math.min(cursor, LOWER),
      )
      .filter(({ n }) => !waits.includes(n));
    for (const { n } of rows)
      this.#connection.run('DELETE FROM allium_inbox WHERE id = (?1 << 32) | ?2', key, n);
    if (rows.length > 0) this.#connection.scrub();
  }

  /** The first append of this handle, one that starts the session's first run, or one that found things changed. */
  #appendSlowly(sessionId: string, expectedSeq: number, entries: readonly NewEntry[]): number {
    checkStorable('sessionId', sessionId);
    const head = this.#connection.transaction(() => {
      const run = firstRun(entries);
      if (run?.tenant !== undefined) checkStorable('tenant', run.tenant);
      const first = { at: entries[0]?.at ?? null, started: run !== undefined, tenant: run?.tenant };
      const made =
        expectedSeq === 0 && entries.length > 0 ? this.#sessions.make(sessionId, first) : undefined;
      const session = made ?? this.#sessions.find(sessionId);
      if ((session?.head ?? 0) !== expectedSeq)
        throw sessionConflict(sessionId, expectedSeq, session?.head ?? 0);
      if (entries.length === 0) return expectedSeq;
      const current = session!;
      const { key } = current;
      const started = current.started || first.started;
      if (!made && (expectedSeq === 0 || !current.started))
        this.#connection.run(
          `UPDATE allium_sessions SET created_at = coalesce(created_at, ?2), started = ?3,
             tenant = coalesce(tenant, ?4) WHERE key = ?1`,
          key,
          first.at,
          started ? 1 : 0,
          current.started ? null : (first.tenant ?? null),
        );
      this.insertRow(current, entries);
      const head = expectedSeq + entries.length;
      this.#sessions.remember(sessionId, { ...current, head, last: expectedSeq + 1, started });
      return head;
    });
    const known = this.#sessions.known(sessionId);
    if (known) this.#forgetTaken(known.key, entries);
    return head;
  }

  insertRow(
    { key, head, last, quiet }: Known,
    entries: readonly NewEntry[],
  ): { readonly changes: number | bigint } {
    const [at, json] = [entries[entries.length - 1]!.at, `{${entriesText(entries)}}`];
    if (head === 0) return this.#insertFirst.run(key, 1, entries.length, at, json);
    const insert = quiet ? this.#insertIfEmpty : this.#insert;
    return insert.run(key, head + 1, entries.length, at, json, last);
  }

  entries(sessionId: string, key: number, fromSeq: number): Entry[] {
    // The first wanted entry may be in the middle of an append.
    const rows = this.#connection.all<{ seq: number; entries: string }>(
      `SELECT id & ${LOWER} AS seq, entries FROM allium_appends
       WHERE id < (?1 + 1) << 32 AND id >= coalesce(
         (SELECT MAX(id) FROM allium_appends WHERE id > ?1 << 32 AND id <= (?1 << 32) | ?2), (?1 << 32) + 1)
       ORDER BY id`,
      key,
      Math.max(1, Math.min(fromSeq, LOWER)),
    );
    const found: Entry[] = [];
    for (const { seq, entries } of rows)
      for (const entry of parseEntries(entries, seq, sessionId)) if (entry.seq >= fromSeq) found.push(entry);
    return found;
  }

  /** Undefined if somebody has deleted the session since. */
  keep(sessionId: string, { seq, state }: Snapshot): void {
    const key = this.#sessions.known(sessionId)?.key;
    if (key !== undefined)
      this.#connection.run(
        'INSERT OR REPLACE INTO allium_snapshots SELECT key, ?2, ?3 FROM allium_sessions WHERE key = ?1',
        key,
        seq,
        state,
      );
  }

  tail(sessionId: string): Tail {
    const session = this.#sessions.find(sessionId);
    if (session === undefined) return { entries: [] };
    const { key, head } = session;
    const [snapshot] = this.#connection.all<Snapshot>(
      'SELECT seq, state FROM allium_snapshots WHERE key = ?1 AND seq <= ?2',
      key,
      head,
    );
    if (snapshot === undefined) return { entries: this.entries(sessionId, key, 1) };
    return { snapshot, entries: this.entries(sessionId, key, snapshot.seq + 1) };
  }
}
