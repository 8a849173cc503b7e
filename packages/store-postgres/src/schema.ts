/** The tables, and how they come to be. */
import { AlliumError } from 'allium/stores/kit';
import type { PostgresClient } from './client.js';

export const SCHEMA_VERSION = 1;

/**
 * One row per append. Entries are `text`, not `jsonb`: they come back exactly as they went in, and `jsonb` refuses the
 * NUL characters and lone surrogates that tool results sometimes have. Ids compare as bytes, on every server alike.
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
  INSERT INTO ${schema}.meta SELECT ${SCHEMA_VERSION} WHERE NOT EXISTS (SELECT 1 FROM ${schema}.meta);
`;

/** Makes what is missing, in a transaction of the caller's. */
export async function setUp(client: PostgresClient, schema: string): Promise<void> {
  // Two processes that start at once would both find nothing and both try to make it.
  await client.query('SELECT pg_advisory_xact_lock(hashtext($1))', [`allium store ${schema}`]);
  await client.query(tables(schema));
}

export async function checkVersion(client: PostgresClient, schema: string): Promise<void> {
  const { rows } = await client.query(`SELECT version FROM ${schema}.meta`);
  const version = (rows[0] as { version?: number } | undefined)?.version;
  if (version === SCHEMA_VERSION) return;
  throw new AlliumError(
    'SESSION_CORRUPT',
    `The schema ${schema} has version ${version} of the tables of this store; this release reads version ${SCHEMA_VERSION}. It was made by a newer release: update this one.`,
    { data: { schema, version, readable: SCHEMA_VERSION } },
  );
}
