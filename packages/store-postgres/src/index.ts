/** Sessions in PostgreSQL, for agents on several machines. */
import {
  checkFork,
  checkKeys,
  checkStorable,
  type Entry,
  firstRun,
  type InboxItem,
  idsBelow,
  invalidOption,
  isBelow,
  type ListOptions,
  listCursor,
  listQuery,
  type NewEntry,
  parseEntries,
  type SessionInfo,
  type Store,
  sessionConflict,
  takenBy,
} from 'allium/stores/kit';
import { openPool, type PostgresClient, type PostgresPool, repeated, transaction } from './client.js';
import { checkVersion, setUp } from './schema.js';

export type { PostgresClient, PostgresConnection, PostgresPool } from './client.js';

export interface PostgresStoreOptions {
  /** `postgres://user:password@host:port/database` */
  readonly connectionString?: string;
  /** An open pool instead of `connectionString`. It stays yours: `close()` leaves it open. */
  readonly pool?: PostgresPool;
  /** The most connections to open. @default 10 */
  readonly maxConnections?: number;
  /** The schema of the tables. @default 'allium' */
  readonly schema?: string;
  /** Make the schema and its tables if they are missing. Turn it off where the user may not. @default true */
  readonly setup?: boolean;
}

/**
 * A store in PostgreSQL (13 or later). An append is one statement, and so one round trip.
 *
 * @example
 * ```ts
 * const agent = new Agent({ model, store: postgresStore({ connectionString: process.env.DATABASE_URL }) });
 * ```
 */
export function postgresStore(options: PostgresStoreOptions): Store {
  checkKeys('postgresStore()', options, ['connectionString', 'pool', 'maxConnections', 'schema', 'setup']);
  const { connectionString, pool, maxConnections = 10, schema = 'allium', setup = true } = options;
  if (!Number.isInteger(maxConnections) || maxConnections < 1)
    throw invalidOption('maxConnections', 'an integer ≥ 1', maxConnections);
  if (!/^[a-z_][a-z0-9_]{0,62}$/.test(schema))
    throw invalidOption('schema', 'a name of lower-case letters, digits and underscores', schema);
  if (pool !== undefined) return new PostgresStore(pool, false, `"${schema}"`, setup);
  if (typeof connectionString !== 'string' || connectionString === '') {
    throw invalidOption('connectionString', 'postgres://user:password@host:port/database', connectionString);
  }
  return new PostgresStore(openPool(connectionString, maxConnections), true, `"${schema}"`, setup);
}

class PostgresStore implements Store {
  readonly #pool: PostgresPool;
  readonly #owned: boolean;
  readonly #schema: string;
  readonly #setup: boolean;
  #ready: Promise<void> | undefined;

  constructor(pool: PostgresPool, owned: boolean, schema: string, setup: boolean) {
    this.#pool = pool;
    this.#owned = owned;
    this.#schema = schema;
    this.#setup = setup;
  }

  async append(sessionId: string, expectedSeq: number, entries: readonly NewEntry[]): Promise<number> {
    checkStorable('sessionId', sessionId);
    const head = entries.length === 0 ? await this.head(sessionId) : undefined;
    if (head === expectedSeq) return head;
    if (head === undefined && (await this.#insert(sessionId, expectedSeq, entries)))
      return expectedSeq + entries.length;
    throw sessionConflict(sessionId, expectedSeq, head ?? (await this.head(sessionId)));
  }

  /** True if the session was at `expectedSeq`: its row is locked, looked at and moved on by one statement. */
  async #insert(sessionId: string, expectedSeq: number, entries: readonly NewEntry[]): Promise<boolean> {
    const s = this.#schema;
    const run = firstRun(entries);
    if (run?.tenant !== undefined) checkStorable('tenant', run.tenant);
    const moved =
      expectedSeq === 0
        ? `INSERT INTO ${s}.sessions AS t (id, seq, created_at, updated_at, started, tenant) VALUES ($1, $2::integer + $3::integer, $5, $6, $7, $8)
           ON CONFLICT (id) DO UPDATE SET seq = $2::integer + $3::integer, created_at = $5, updated_at = $6, started = $7, tenant = $8
           WHERE t.seq = $2 RETURNING key`
        : `UPDATE ${s}.sessions SET seq = $2::integer + $3::integer, created_at = coalesce(created_at, $5), updated_at = $6,
             started = started OR $7, tenant = CASE WHEN started THEN tenant ELSE $8 END
           WHERE id = $1 AND seq = $2 RETURNING key`;
    const taken = takenBy(entries);
    // What the entries take over of the inbox goes with them.
    const gone = `, gone AS (DELETE FROM ${s}.inbox i USING moved WHERE i.session = moved.key
      AND i.n <= $9::double precision AND NOT i.n = ANY($10::integer[]))`;
    const { rowCount } = await this.#query(
      `WITH moved AS (${moved})${taken ? gone : ''} INSERT INTO ${s}.appends (session, seq, entries) SELECT key, $2::integer + 1, $4 FROM moved`,
      // The types are told by how the values are used, save for a tenant that is null.
      [
        sessionId,
        expectedSeq,
        entries.length,
        JSON.stringify(entries),
        entries[0]!.at,
        entries.at(-1)!.at,
        run !== undefined,
        run?.tenant ?? null,
        ...(taken ? [taken.cursor, taken.waits] : []),
      ],
    );
    return rowCount === 1;
  }

  async read(sessionId: string, fromSeq: number): Promise<readonly Entry[]> {
    checkStorable('sessionId', sessionId);
    await this.#prepared();
    return this.#entries(this.#pool, sessionId, fromSeq);
  }

  async head(sessionId: string): Promise<number> {
    checkStorable('sessionId', sessionId);
    const { rows } = await this.#query(`SELECT seq FROM ${this.#schema}.sessions WHERE id = $1`, [sessionId]);
    return (rows[0] as { seq: number } | undefined)?.seq ?? 0;
  }

  async list(
    options: ListOptions = {},
  ): Promise<{ readonly sessions: readonly SessionInfo[]; readonly next?: string }> {
    const { tenant, since, limit, after } = listQuery(options);
    const values: unknown[] = [];
    const value = (given: unknown): string => `$${values.push(given)}`;
    const where = ['seq > 0'];
    if (tenant !== undefined) checkStorable('tenant', tenant);
    if (tenant !== undefined) where.push(`tenant = ${value(tenant)}`);
    if (since !== undefined) where.push(`updated_at >= ${value(since)}`);
    if (after !== undefined) {
      const at = value(after.updatedAt);
      where.push(`(updated_at < ${at} OR (updated_at = ${at} AND id > ${value(after.sessionId)}))`);
    }
    const { rows } = await this.#query(
      `SELECT id, tenant, seq, created_at, updated_at FROM ${this.#schema}.sessions
       WHERE ${where.join(' AND ')} ORDER BY updated_at DESC, id LIMIT ${value(limit + 1)}`,
      values,
    );
    const sessions = (rows as SessionRow[]).slice(0, limit).map((row) => ({
      sessionId: row.id,
      ...(row.tenant !== null && { tenant: row.tenant }),
      seq: row.seq,
      createdAt: row.created_at,
      updatedAt: row.updated_at,
    }));
    return rows.length > limit ? { sessions, next: listCursor(sessions[limit - 1]!) } : { sessions };
  }

  async fork(sessionId: string, seq: number, newId: string): Promise<void> {
    checkStorable('sessionId', sessionId);
    checkStorable('sessionId', newId);
    await this.#prepared();
    const s = this.#schema;
    await transaction(this.#pool, async (client) => {
      const locked = async (id: string) =>
        (await client.query(`SELECT key, seq, posted FROM ${s}.sessions WHERE id = $1 FOR UPDATE`, [id]))
          .rows[0] as { key: string; seq: number; posted: number } | undefined;
      const source = await locked(sessionId);
      const occupied = (await locked(newId))?.seq ?? 0;
      checkFork(sessionId, seq, source?.seq ?? 0, newId, occupied);
      const entries = (await this.#entries(client, sessionId, 1)).slice(0, seq);
      const run = firstRun(entries);
      const { rows } = await client.query(
        `INSERT INTO ${s}.sessions AS t (id, seq, created_at, updated_at, started, tenant, posted) VALUES ($1, $2, $3, $4, $5, $6, $7)
         ON CONFLICT (id) DO UPDATE SET seq = $2, created_at = $3, updated_at = $4, started = $5, tenant = $6, posted = t.posted + $7
         WHERE t.seq = 0 RETURNING key`,
        [
          newId,
          seq,
          entries[0]!.at,
          entries.at(-1)!.at,
          run !== undefined,
          run?.tenant ?? null,
          source!.posted,
        ],
      );
      // Made by somebody else since it was looked for.
      if (rows.length === 0) throw sessionConflict(newId, 0, (await locked(newId))?.seq ?? 0);
      const { key } = rows[0] as { key: string };
      const copied = JSON.stringify(entries.map(({ seq: _, ...entry }) => entry));
      await client.query(`INSERT INTO ${s}.appends (session, seq, entries) VALUES ($1, 1, $2)`, [
        key,
        copied,
      ]);
      // The inbox goes on counting where that of the source stands, since the copied journal says how far it was
      // taken; what was posted before moves up. By way of negative numbers, for two rows never to meet.
      await client.query(`UPDATE ${s}.inbox SET n = -(n + $2) WHERE session = $1`, [key, source!.posted]);
      await client.query(`UPDATE ${s}.inbox SET n = -n WHERE session = $1`, [key]);
    });
  }

  async delete(sessionId: string): Promise<void> {
    checkStorable('sessionId', sessionId);
    const s = this.#schema;
    const { from, to } = idsBelow(sessionId);
    const { rows } = await this.#query(`SELECT id FROM ${s}.sessions WHERE id >= $1 AND id < $2`, [from, to]);
    const below = (rows as { id: string }[]).map(({ id }) => id).filter((id) => isBelow(id, sessionId));
    await this.#query(`DELETE FROM ${s}.sessions WHERE id = ANY($1)`, [[sessionId, ...below]]);
  }

  async post(sessionId: string, item: InboxItem): Promise<void> {
    checkStorable('sessionId', sessionId);
    const s = this.#schema;
    await this.#query(
      `WITH counted AS (
         INSERT INTO ${s}.sessions AS t (id, posted) VALUES ($1, 1) ON CONFLICT (id) DO UPDATE SET posted = t.posted + 1 RETURNING key, posted
       ) INSERT INTO ${s}.inbox (session, n, item) SELECT key, posted, $2 FROM counted`,
      [sessionId, JSON.stringify(item)],
    );
  }

  async take(
    sessionId: string,
    after: number,
  ): Promise<readonly { readonly n: number; readonly item: InboxItem }[]> {
    checkStorable('sessionId', sessionId);
    const s = this.#schema;
    const { rows } = await this.#query(
      `SELECT i.n, i.item, i.session FROM ${s}.inbox i JOIN ${s}.sessions t ON t.key = i.session WHERE t.id = $1 ORDER BY i.n`,
      [sessionId],
    );
    const items = rows as { n: number; item: string; session: string }[];
    if (items.length === 0) return [];
    const { n, session } = items[0]!;
    if (n <= after)
      await this.#query(`DELETE FROM ${s}.inbox WHERE session = $1 AND n <= $2::double precision`, [
        session,
        after,
      ]);
    return items
      .filter((item) => item.n > after)
      .map((row) => ({ n: row.n, item: JSON.parse(row.item) as InboxItem }));
  }

  async close(): Promise<void> {
    if (this.#owned) await this.#pool.end();
  }

  async #entries(client: PostgresClient, sessionId: string, fromSeq: number): Promise<Entry[]> {
    const s = this.#schema;
    // The first wanted entry may stand in the middle of an append.
    const { rows } = await client.query(
      `SELECT a.seq, a.entries FROM ${s}.sessions t JOIN ${s}.appends a ON a.session = t.key
       WHERE t.id = $1 AND a.seq >= coalesce((SELECT max(seq) FROM ${s}.appends WHERE session = t.key AND seq <= $2), 0)
       ORDER BY a.seq`,
      [sessionId, Math.max(1, fromSeq)],
    );
    return (rows as { seq: number; entries: string }[])
      .flatMap(({ seq, entries }) => parseEntries(entries, seq, sessionId))
      .filter(({ seq }) => seq >= fromSeq);
  }

  async #query(
    text: string,
    values: unknown[],
  ): Promise<{ readonly rows: readonly object[]; readonly rowCount: number | null }> {
    await this.#prepared();
    return repeated(() => this.#pool.query(text, values));
  }

  /** Once per handle, with the first use; a server that was not there yet is asked again by the next one. */
  #prepared(): Promise<void> {
    this.#ready ??= (async () => {
      if (this.#setup) await transaction(this.#pool, (client) => setUp(client, this.#schema));
      await checkVersion(this.#pool, this.#schema);
    })().catch((error: unknown) => {
      this.#ready = undefined;
      throw error;
    });
    return this.#ready;
  }
}

interface SessionRow {
  readonly id: string;
  readonly tenant: string | null;
  readonly seq: number;
  readonly created_at: number;
  readonly updated_at: number;
}
