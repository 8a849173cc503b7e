/** The tables of the SQLite store. */
import { AlliumError } from '../../index.js';
import type { SqliteDatabase } from './driver.js';

/**
 * One row per append: the number of the session in the upper half of `id`, the number of its first entry in the
 * lower. So an append touches one page, at the end of its session, and two appends at the same place are the same
 * row, of which the database accepts only one. What `list` needs about the last append is looked up there, not kept
 * up to date. Snapshots were added later: processes of earlier releases neither write nor read them, and the trigger
 * deletes them. Earlier releases had an index of tenants, which no query can use and every new session paid for; one
 * that still runs makes it again, which does no harm.
 */
const TABLES = `
  CREATE TABLE IF NOT EXISTS allium_meta (version INTEGER NOT NULL);
  CREATE TABLE IF NOT EXISTS allium_sessions (
    key INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL UNIQUE,
    created_at NUMERIC,
    started INTEGER NOT NULL DEFAULT 0,
    tenant TEXT,
    posted INTEGER NOT NULL DEFAULT 0
  );
  DROP INDEX IF EXISTS allium_sessions_tenant;
  CREATE TABLE IF NOT EXISTS allium_appends (
    id INTEGER PRIMARY KEY,
    count INTEGER NOT NULL,
    at NUMERIC NOT NULL,
    entries TEXT NOT NULL
  );
  CREATE TABLE IF NOT EXISTS allium_inbox (id INTEGER PRIMARY KEY, item TEXT NOT NULL);
  CREATE TABLE IF NOT EXISTS allium_snapshots (key INTEGER PRIMARY KEY, seq INTEGER NOT NULL, state TEXT NOT NULL);
  CREATE TRIGGER IF NOT EXISTS allium_snapshots_gone AFTER DELETE ON allium_sessions
    BEGIN DELETE FROM allium_snapshots WHERE key = old.key; END;
  INSERT INTO allium_meta SELECT 1 WHERE NOT EXISTS (SELECT 1 FROM allium_meta);
`;
const VERSION = 1;
/** The lower half of an id. */
export const LOWER = 0xffffffff;

/** Makes the tables where they are missing; call it inside a transaction. */
export function makeTables(database: SqliteDatabase): void {
  database.exec(TABLES);
  const { version } = database.prepare('SELECT version FROM allium_meta').get() as { version: number };
  if (version !== VERSION) throw unknownSchema(version);
}

function unknownSchema(version: unknown): AlliumError {
  return new AlliumError(
    'SESSION_CORRUPT',
    `The database has version ${version} of the tables of this store; this release reads version ${VERSION}. It was written by a newer release: update this one.`,
    { data: { version, readable: VERSION } },
  );
}
