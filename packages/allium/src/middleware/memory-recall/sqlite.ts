/** A memory in an SQLite database, with its full-text search. */

import { createHash } from 'node:crypto';
import { AlliumError } from '../../index.js';
import { checkMethods, checkOptions, invalidOption } from '../../kit/index.js';
import { openFile, type SqliteDatabase, type SqliteStatement } from '../../stores/sqlite/driver.js';
import { type Memory, type MemoryItem, type MemoryScope, ownerOf, queryTerms } from './memory.js';

export interface SqliteMemoryOptions {
  /** The file of the database, or `:memory:`. Made if it does not exist, with its directory. */
  readonly path?: string;
  /** An open database instead of `path`, which may be that of the store. It stays yours. */
  readonly database?: SqliteDatabase;
}

export interface SqliteMemory extends Memory {
  /** Closes the database, unless it was given open. */
  close(): void;
}

/** The owner is in the index, too, so that a search only touches the tenant's items. But the column decides. */
const SCHEMA = `
  CREATE TABLE IF NOT EXISTS allium_memory_meta (version INTEGER NOT NULL);
  CREATE TABLE IF NOT EXISTS allium_memory (
    key INTEGER PRIMARY KEY,
    owner TEXT NOT NULL,
    id TEXT NOT NULL,
    session TEXT,
    at NUMERIC NOT NULL,
    text TEXT NOT NULL,
    UNIQUE (owner, id)
  );
  CREATE VIRTUAL TABLE IF NOT EXISTS allium_memory_text USING fts5(text, owner, tokenize = 'unicode61 remove_diacritics 2');
  INSERT INTO allium_memory_meta SELECT 1 WHERE NOT EXISTS (SELECT 1 FROM allium_memory_meta);
`;
const SCHEMA_VERSION = 1;

/**
 * A memory that outlives the process and finds by words, the best match first (BM25).
 *
 * Uses `node:sqlite` where Node has it (22.13 and later) and the package `libsql` otherwise, like the SQLite store.
 */
export function sqliteMemory(options: SqliteMemoryOptions): SqliteMemory {
  checkOptions('sqliteMemory', options, ['path', 'database']);
  const { path: file, database } = options;
  if (database !== undefined) {
    checkMethods('database', database, ['exec', 'prepare']);
    return new FullTextMemory(database, false);
  }
  if (typeof file !== 'string' || file === '')
    throw invalidOption('path', 'the path of a file, or `:memory:`', file);
  return openFile(file, 'sqliteMemory()', (opened) => {
    opened.exec('PRAGMA busy_timeout = 5000; PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL');
    return new FullTextMemory(opened, true);
  });
}

interface Row {
  readonly id: string;
  readonly text: string;
  readonly at: number;
  readonly session: string | null;
}

class FullTextMemory implements SqliteMemory {
  readonly #database: SqliteDatabase;
  readonly #owned: boolean;
  readonly #find: SqliteStatement;
  readonly #put: SqliteStatement;
  readonly #unindex: SqliteStatement;
  readonly #index: SqliteStatement;

  constructor(database: SqliteDatabase, owned: boolean) {
    this.#database = database;
    this.#owned = owned;
    this.#atomically(() => database.exec(SCHEMA));
    const { version } = database.prepare('SELECT version FROM allium_memory_meta').get() as {
      version: number;
    };
    if (version !== SCHEMA_VERSION)
      throw new AlliumError(
        'SESSION_CORRUPT',
        `The database has version ${version} of the tables of this memory; this release reads version ${SCHEMA_VERSION}. Update allium.`,
      );
    this.#find = database.prepare(`
      SELECT m.id, m.text, m.at, m.session FROM allium_memory_text JOIN allium_memory m ON m.key = allium_memory_text.rowid
      WHERE allium_memory_text MATCH ?1 AND m.owner = ?2
        AND (?3 IS NULL OR m.session = ?3) AND (?4 IS NULL OR m.session IS NOT ?4)
      ORDER BY bm25(allium_memory_text, 1.0, 0.0), m.at DESC, m.key DESC LIMIT ?5`);
    this.#put = database.prepare(`
      INSERT INTO allium_memory (owner, id, session, at, text) VALUES (?, ?, ?, ?, ?)
      ON CONFLICT (owner, id) DO UPDATE SET session = excluded.session, at = excluded.at, text = excluded.text
      RETURNING key`);
    this.#unindex = database.prepare('DELETE FROM allium_memory_text WHERE rowid = ?');
    this.#index = database.prepare('INSERT INTO allium_memory_text (rowid, text, owner) VALUES (?, ?, ?)');
  }

  recall(
    query: string,
    k: number,
    scope: MemoryScope,
    { exceptSession }: { readonly exceptSession?: string },
  ): readonly MemoryItem[] {
    // Terms have only letters and digits, so nothing in a query can be taken for an operator.
    const terms = queryTerms(query).map((term) => `"${term}"`);
    if (terms.length === 0) return [];
    const owner = ownerOf(scope);
    const match = `owner : "${tokenOf(owner)}" AND text : (${terms.join(' OR ')})`;
    const rows = this.#find.all(match, owner, scope.sessionId ?? null, exceptSession ?? null, k) as Row[];
    return rows.map(({ id, text, at, session }) => ({
      id,
      text,
      at,
      ...(session !== null && { sessionId: session }),
    }));
  }

  save(items: readonly MemoryItem[], scope: MemoryScope): void {
    const owner = ownerOf(scope);
    this.#atomically(() => {
      for (const { id, text, at, sessionId } of items) {
        const { key } = this.#put.get(owner, id, sessionId ?? null, at, text) as { key: number };
        this.#unindex.run(key);
        this.#index.run(key, text, tokenOf(owner));
      }
    });
  }

  close(): void {
    if (this.#owned) this.#database.close();
  }

  /** A savepoint and not a transaction: the owner of the database may be in the middle of one. */
  #atomically(work: () => void): void {
    this.#database.exec('SAVEPOINT allium_memory');
    try {
      work();
      this.#database.exec('RELEASE allium_memory');
    } catch (error) {
      this.#database.exec('ROLLBACK TO allium_memory; RELEASE allium_memory');
      throw error;
    }
  }
}

/** A tenant may be called anything; in the index it is one word. */
function tokenOf(owner: string): string {
  return createHash('sha256').update(owner).digest('hex');
}
