/** A database with its prepared statements and transactions. */

import type { SqliteDatabase, SqliteStatement } from './driver.js';

export class Connection {
  readonly #statements = new Map<string, SqliteStatement>();

  constructor(
    readonly database: SqliteDatabase,
    /** The store opened it, and may change its settings. */
    private readonly owned: boolean,
    private readonly busyTimeoutMs: number,
  ) {}

  transaction<T>(work: () => T): T {
    this.database.exec('BEGIN IMMEDIATE');
    try {
      const result = work();
      this.database.exec('COMMIT');
      return result;
    } catch (error) {
      try {
        this.database.exec('ROLLBACK');
      } catch {
        // SQLite has undone it already, as it does when the disk is full. What went wrong is the first error.
      }
      throw error;
    }
  }

  run(sql: string, ...values: (string | number | null)[]): void {
    this.prepare(sql).run(...values);
  }

  all<Row>(sql: string, ...values: (string | number | null)[]): Row[] {
    return this.prepare(sql).all(...values) as Row[];
  }

  /** The first row: in `libsql` that takes half as long as all of them. */
  first<Row>(sql: string, ...values: (string | number | null)[]): Row | undefined {
    return this.prepare(sql).get(...values) as Row | undefined;
  }

  prepare(sql: string): SqliteStatement {
    let statement = this.#statements.get(sql);
    if (statement === undefined) {
      statement = this.database.prepare(sql);
      this.#statements.set(sql, statement);
    }
    return statement;
  }
  /**
   * Deleted data is overwritten in the database, but is still in the log until that is emptied. That can't be done
   * while others read from the log: then it is tried again with the next removal, and when the store is opened or
   * closed.
   */
  scrub(): void {
    if (!this.owned) return;
    this.database.exec('PRAGMA busy_timeout = 0');
    try {
      this.database.exec('PRAGMA wal_checkpoint(TRUNCATE)');
    } catch {
      // Somebody else is doing it.
    } finally {
      this.database.exec(`PRAGMA busy_timeout = ${this.busyTimeoutMs}`);
    }
  }

  close(): void {
    if (this.owned) this.database.close();
  }
}
