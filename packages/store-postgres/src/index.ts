/** Sessions in PostgreSQL, for agents on several machines. */
import {
  checkFork,
  checkKeys,
  checkStorable,
  type Entry,
  endMoment,
  firstRun,
  type InboxItem,
  idsBelow,
  invalidOption,
  isBelow,
  type ListOptions,
  Looks,
  listCursor,
  listQuery,
  type NewEntry,
  parseEntries,
  type SessionInfo,
  type Snapshot,
  type Store,
  sessionConflict,
  type Tail,
  takenBy,
} from 'allium/stores/kit';
import { Batches } from './batches.js';
import {
  openPool,
  type PostgresClient,
  type PostgresPool,
  queryNamed,
  repeated,
  transaction,
} from './client.js';
import { checkVersion, setUp } from './schema.js';
import { appendAll, lookInto, tailOf } from './statements.js';

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
  /**
   * Let the server keep the plans of statements, per connection. Turn it off behind a proxy that hands a connection to
   * several clients and does not track their statements, such as PgBouncer before 1.21. @default true, but false with `pool`
   */
  readonly prepare?: boolean;
  /** Make the schema and its tables if they are missing. Turn it off where the user may not. @default true */
  readonly setup?: boolean;
}

/**
 * A store in PostgreSQL (13 or later). An append is one round trip, and appends of many sessions at once share it.
 *
 * @example
 * ```ts
 * const agent = new Agent({ model, store: postgresStore({ connectionString: process.env.DATABASE_URL }) });
 * ```
 */
export function postgresStore(options: PostgresStoreOptions): Store {
  checkKeys('postgresStore()', options, [
    'connectionString',
    'pool',
    'maxConnections',
    'schema',
    'prepare',
    'setup',
  ]);
  const { connectionString, pool, maxConnections = 10, schema = 'allium', setup = true } = options;
  const { prepare = pool === undefined } = options;
  if (typeof prepare !== 'boolean') throw invalidOption('prepare', 'true or false', prepare);
  if (!Number.isInteger(maxConnections) || maxConnections < 1)
    throw invalidOption('maxConnections', 'an integer ≥ 1', maxConnections);
  if (!/^[a-z_][a-z0-9_]{0,62}$/.test(schema))
    throw invalidOption('schema', 'a name of lower-case letters, digits and underscores', schema);
  // At most a third for appends and a third for looking into inboxes: reads and lists need some, too.
  const parallel = Math.max(1, Math.floor(maxConnections / 3));
  const how = { schema: `"${schema}"`, setup, prepare, parallel };
  if (pool !== undefined) return new PostgresStore(pool, { ...how, owned: false });
  if (typeof connectionString !== 'string' || connectionString === '') {
    throw invalidOption('connectionString', 'postgres://user:password@host:port/database', connectionString);
  }
  return new PostgresStore(openPool(connectionString, maxConnections), { ...how, owned: true });
}

interface Settings {
  /** Quoted. */
  readonly schema: string;
  readonly setup: boolean;
  readonly prepare: boolean;
  /** The store closes the pool. */
  readonly owned: boolean;
  /** Statements of one kind under way at once. */
  readonly parallel: number;
}

class PostgresStore implements Store {
  readonly #pool: PostgresPool;
  readonly #settings: Settings;
  readonly #schema: string;
  readonly #appends: Batches<Append, InboxRow[] | undefined>;
  readonly #looks: Batches<string, InboxRow[]>;
  readonly #found = new Looks<InboxRow>();
  #ready: Promise<void> | undefined;

  constructor(pool: PostgresPool, settings: Settings) {
    const { parallel } = settings;
    this.#pool = pool;
    this.#settings = settings;
    this.#schema = settings.schema;
    this.#appends = new Batches({
      send: (batch) => this.#insert(batch),
      key: ({ sessionId }) => sessionId,
      parallel,
    });
    this.#looks = new Batches({
      send: (batch) => this.#look(batch),
      key: (sessionId) => sessionId,
      parallel,
    });
  }

  async append(
    sessionId: string,
    expectedSeq: number,
    entries: readonly NewEntry[],
    snapshot?: Snapshot,
  ): Promise<number> {
    checkStorable('sessionId', sessionId);
    const head = entries.length === 0 ? await this.head(sessionId) : undefined;
    if (head === expectedSeq) return head;
    if (head === undefined) {
      const run = firstRun(entries);
      if (run?.tenant !== undefined) checkStorable('tenant', run.tenant);
      const asking = this.#appends.ask({ sessionId, expectedSeq, entries, run, snapshot });
      if (await this.#found.appended(sessionId, asking)) return expectedSeq + entries.length;
    }
    throw sessionConflict(sessionId, expectedSeq, head ?? (await this.head(sessionId)));
  }

  /**
   * For each, what its inbox has now, or nothing if the session was not at its `expectedSeq`. All rows are locked, looked at
   * and moved on by one statement.
   */
  async #insert(batch: readonly Append[]): Promise<(InboxRow[] | undefined)[]> {
    const taken = batch.map(({ entries }) => takenBy(entries));
    const { rows } = await this.#named('allium_append', appendAll(this.#schema), [
      batch.map(({ sessionId }) => sessionId),
      batch.map(({ expectedSeq }) => expectedSeq),
      batch.map(({ entries }) => entries.length),
      batch.map(({ entries }) => JSON.stringify(entries)),
      batch.map(({ entries }) => entries[0]!.at),
      batch.map(({ entries }) => entries.at(-1)!.at),
      batch.map(({ run }) => run !== undefined),
      batch.map(({ run }) => run?.tenant ?? null),
      taken.map((items) => items?.cursor ?? null),
      // A list of lists would have to be a rectangle.
      taken.map((items) => items && `{${items.waits.join()}}`),
      batch.map(({ snapshot }) => snapshot?.seq ?? null),
      batch.map(({ snapshot }) => snapshot?.state ?? null),
    ]);
    const found: (InboxRow[] | undefined)[] = batch.map(() => undefined);
    for (const row of rows as readonly AppendedRow[]) {
      found[row.nr - 1] ??= [];
      if (row.n !== null) found[row.nr - 1]!.push(row as InboxRow);
    }
    return found;
  }

  async read(sessionId: string, fromSeq: number): Promise<readonly Entry[]> {
    checkStorable('sessionId', sessionId);
    await this.#prepared();
    return this.#entries(this.#pool, sessionId, fromSeq);
  }

  async tail(sessionId: string): Promise<Tail> {
    checkStorable('sessionId', sessionId);
    const asking = this.#named('allium_tail', tailOf(this.#schema), [sessionId]);
    const { rows } = await this.#found.asked(sessionId, asking, (answer) => itemsIn(answer.rows));
    const found = rows as readonly TailRow[];
    const snapshot = found.find(({ kind }) => kind === 'snapshot');
    const entries = found
      .filter(({ kind }) => kind === 'append')
      .flatMap(({ seq, text }) => parseEntries(text, seq, sessionId))
      .filter(({ seq }) => snapshot === undefined || seq > snapshot.seq);
    return snapshot === undefined
      ? { entries }
      : { snapshot: { seq: snapshot.seq, state: snapshot.text }, entries };
  }

  async head(sessionId: string): Promise<number> {
    checkStorable('sessionId', sessionId);
    const text = `SELECT seq FROM ${this.#schema}.sessions WHERE id = $1`;
    const { rows } = await this.#named('allium_head', text, [sessionId]);
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
      // The first half lets the index start there: with an OR alone, every page before it would be read again.
      where.push(`updated_at <= ${at} AND (updated_at < ${at} OR id > ${value(after.sessionId)})`);
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
      // Made by somebody else in the meantime.
      if (rows.length === 0) throw sessionConflict(newId, 0, (await locked(newId))?.seq ?? 0);
      const { key } = rows[0] as { key: string };
      const copied = JSON.stringify(entries.map(({ seq: _, ...entry }) => entry));
      await client.query(`INSERT INTO ${s}.appends (session, seq, entries) VALUES ($1, 1, $2)`, [
        key,
        copied,
      ]);
      // The inbox continues counting where that of the source is, since the copied journal says how far it was taken.
      // Items that were posted before move up, by way of negative numbers, so that two rows never collide.
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
    endMoment();
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
    endMoment();
  }

  async take(
    sessionId: string,
    after: number,
  ): Promise<readonly { readonly n: number; readonly item: InboxItem }[]> {
    checkStorable('sessionId', sessionId);
    const items = await this.#found.look(sessionId, () => this.#looks.ask(sessionId));
    if (items.length === 0) return [];
    const { n, session } = items[0]!;
    if (n <= after)
      await this.#query(
        `DELETE FROM ${this.#schema}.inbox WHERE session = $1 AND n <= $2::double precision`,
        [session, after],
      );
    return items
      .filter((item) => item.n > after)
      .map((row) => ({ n: row.n, item: JSON.parse(row.item) as InboxItem }));
  }

  /** What is in the inboxes of these sessions. */
  async #look(sessionIds: readonly string[]): Promise<InboxRow[][]> {
    const { rows } = await this.#named('allium_look', lookInto(this.#schema), [sessionIds]);
    return sessionIds.map((id) =>
      (rows as (InboxRow & { readonly id: string })[]).filter((row) => row.id === id),
    );
  }

  async close(): Promise<void> {
    if (this.#settings.owned) await this.#pool.end();
  }

  async #entries(client: PostgresClient, sessionId: string, fromSeq: number): Promise<Entry[]> {
    const s = this.#schema;
    // The first wanted entry may be in the middle of an append.
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

  /** A statement that every turn uses, and whose text never changes. */
  async #named(name: string, text: string, values: unknown[]): ReturnType<PostgresClient['query']> {
    if (!this.#settings.prepare) return this.#query(text, values);
    await this.#prepared();
    return repeated(() => queryNamed(this.#pool, { name, text, values }));
  }

  /** Once per handle, on first use. If the server can't be reached yet, the next use tries again. */
  #prepared(): Promise<void> {
    this.#ready ??= (async () => {
      if (this.#settings.setup) await transaction(this.#pool, (client) => setUp(client, this.#schema));
      await checkVersion(this.#pool, this.#schema);
    })().catch((error: unknown) => {
      this.#ready = undefined;
      throw error;
    });
    return this.#ready;
  }
}

interface Append {
  readonly sessionId: string;
  readonly expectedSeq: number;
  readonly entries: readonly NewEntry[];
  readonly run: ReturnType<typeof firstRun>;
  readonly snapshot: Snapshot | undefined;
}

interface InboxRow {
  readonly n: number;
  readonly item: string;
  readonly session: string;
}

/** That an append was made, and an item of the inbox if it has one. */
type AppendedRow = { readonly nr: number; readonly session: string } & (
  | { readonly n: number; readonly item: string }
  | { readonly n: null }
);

interface TailRow {
  readonly kind: 'snapshot' | 'append' | 'item';
  readonly seq: number;
  readonly text: string;
  readonly session: string;
}

function itemsIn(rows: readonly object[]): InboxRow[] {
  return (rows as readonly TailRow[])
    .filter(({ kind }) => kind === 'item')
    .map(({ seq, text, session }) => ({ n: seq, item: text, session }));
}

interface SessionRow {
  readonly id: string;
  readonly tenant: string | null;
  readonly seq: number;
  readonly created_at: number;
  readonly updated_at: number;
}
