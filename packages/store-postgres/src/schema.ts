/** The tables, and how they are made. */
import { AlliumError } from 'allium/stores/kit';
import type { PostgresClient } from './client.js';

const SCHEMA_VERSION = 1;

/**
 * One row per append. Entries are `text`, not `jsonb`: they come back exactly as they were, and `jsonb` refuses the
 * NUL characters and lone surrogates that tool results sometimes have. Ids compare as bytes, the same on every
 * server.
 *
 * Whatever is added here must let processes of earlier releases work on the same tables: new tables, or columns with
 * a default, and no new version. A new version is for a change that they must not overlook.
 */
export const tables = (schema: string): string => `
  CREATE SCHEMA IF NOT EXISTS ${schema};
  CREATE TABLE IF NOT EXISTS ${schema}.meta (version integer NOT NULL);
  CREATE TABLE IF NOT EXISTS ${schema}.sessions (
    key bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    id text COLLATE "C" NOT NULL UNIQUE,
    seq integer NOT NULL DEFAULT 0,
    created_at double precision,
    updated_at double precision,
    started boolean NOT NULL DEFAULT false,
    tenant text COLLATE "C",
    posted integer NOT NULL DEFAULT 0
  );
  CREATE INDEX IF NOT EXISTS sessions_by_time ON ${schema}.sessions (updated_at DESC, id) WHERE seq > 0;
  CREATE INDEX IF NOT EXISTS sessions_by_tenant ON ${schema}.sessions (tenant, updated_at DESC, id) WHERE seq > 0;
  CREATE TABLE IF NOT EXISTS ${schema}.appends (
    session bigint NOT NULL REFERENCES ${schema}.sessions ON DELETE CASCADE,
    seq integer NOT NULL,
    entries text NOT NULL,
    PRIMARY KEY (session, seq)
  );
  CREATE TABLE IF NOT EXISTS ${schema}.inbox (
    session bigint NOT NULL REFERENCES ${schema}.sessions ON DELETE CASCADE,
    n integer NOT NULL,
    item text NOT NULL,
    PRIMARY KEY (session, n)
  );
  CREATE TABLE IF NOT EXISTS ${schema}.snapshots (
    session bigint PRIMARY KEY REFERENCES ${schema}.sessions ON DELETE CASCADE,
    seq integer NOT NULL,
    state text NOT NULL
  );
  INSERT INTO ${schema}.meta SELECT ${SCHEMA_VERSION} WHERE NOT EXISTS (SELECT 1 FROM ${schema}.meta);
`;

/** Makes what is missing, in the caller's transaction. */
export async function setUp(client: PostgresClient, schema: string): Promise<void> {
  // Two processes that start at once would both find nothing and try to make it.
  await client.query('SELECT pg_advisory_xact_lock(hashtext($1))', [`allium store ${schema}`]);
  await client.query(tables(schema));
}

export async function checkVersion(client: PostgresClient, schema: string): Promise<void> {
  const { rows } = await client.query(
    `SELECT version, to_regclass('${schema}.snapshots') IS NOT NULL AS whole FROM ${schema}.meta`,
  );
  const { version, whole } = (rows[0] ?? {}) as { readonly version?: number; readonly whole?: boolean };
  if (version === SCHEMA_VERSION && whole) return;
  if (version === SCHEMA_VERSION)
    throw new AlliumError(
      'STORE_FAILED',
      `The schema ${schema} has the tables of an earlier release and lacks \`snapshots\`. Open the store once with \`setup: true\`, as a user who may create tables. Processes of that release keep working.`,
      { data: { schema, missing: 'snapshots' } },
    );
  throw new AlliumError(
    'SESSION_CORRUPT',
    `The schema ${schema} has version ${version} of the tables of this store; this release reads version ${SCHEMA_VERSION}. It was made by a newer release: update this one.`,
    { data: { schema, version, readable: SCHEMA_VERSION } },
  );
}
