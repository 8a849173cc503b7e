/** Sessions in PostgreSQL, for agents on several machines. */
import {
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
  type NewEntry,
  parseEntries,
  type Snapshot,
  type Store,
  sessionConflict,
  type Tail,
  takenBy,
} from 'allium/stores/kit';
import { Batches } from './batches.js';
import { Changes } from './changes.js';
import { type PostgresClient, type PostgresPool, queryNamed, repeated, transaction } from './client.js';
import { entriesFrom, forkIn } from './fork.js';
import { listing, type Page } from './list.js';
import { type PostgresStoreOptions, type Settings, settingsOf } from './options.js';
import { checkVersion, setUp } from './schema.js';
import { appendAll, lookInto, tailOf } from './statements.js';

export type { PostgresClient, PostgresConnection, PostgresPool } from './client.js';
export type { PostgresStoreOptions } from './options.js';

export interface PostgresStore extends Store {
  /**
   * For `watch` of `allium/http`: calls `wake` when the session changes in any process, until the returned function is called.
   * Only with `notify`. Opens a connection while anybody watches; if nothing comes through it, calls `wake` every second.
   */
  watch(sessionId: string, wake: () => void): () => void;
}

/**
 * A store in PostgreSQL (13 or later). An append is one round trip, and appends of many sessions at once share it.
 *
 * @example
 * ```ts
 * const agent = new Agent({ model, store: postgresStore({ connectionString: process.env.DATABASE_URL }) });
 * ```
 */
export function postgresStore(options: PostgresStoreOptions): PostgresStore {
  return new SharedStore(settingsOf(options));
}

class SharedStore implements PostgresStore {
  readonly #pool: PostgresPool;
  readonly #settings: Settings;
  readonly #schema: string;
  readonly #appends: Batches<Append, InboxRow[] | undefined>;
  readonly #looks: Batches<string, InboxRow[]>;
  readonly #found = new Looks<InboxRow>();
  readonly #changes: Changes | undefined;
  #ready: Promise<void> | undefined;

  constructor(settings: Settings) {
    const { pool, parallel, channel, address } = settings;
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
    if (address === undefined) return;
    const send = (text: string) => this.#query('SELECT pg_notify($1, $2)', [channel, text]);
    this.#changes = new Changes({ channel, address, send });
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
      if (await this.#found.appended(sessionId, asking)) {
        this.#changes?.tell(sessionId);
        return expectedSeq + entries.length;
      }
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
    return entriesFrom(this.#pool, this.#schema, sessionId, fromSeq);
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

  async list(options: ListOptions = {}): Promise<Page> {
    const { text, values, pageOf } = listing(this.#schema, options);
    return pageOf((await this.#query(text, values)).rows);
  }

  async fork(sessionId: string, seq: number, newId: string): Promise<void> {
    checkStorable('sessionId', sessionId);
    checkStorable('sessionId', newId);
    await this.#prepared();
    await transaction(this.#pool, (client) => forkIn(client, this.#schema, { sessionId, seq, newId }));
    this.#changes?.tell(newId);
  }

  async delete(sessionId: string): Promise<void> {
    checkStorable('sessionId', sessionId);
    const s = this.#schema;
    const { from, to } = idsBelow(sessionId);
    const { rows } = await this.#query(`SELECT id FROM ${s}.sessions WHERE id >= $1 AND id < $2`, [from, to]);
    const below = (rows as { id: string }[]).map(({ id }) => id).filter((id) => isBelow(id, sessionId));
    await this.#query(`DELETE FROM ${s}.sessions WHERE id = ANY($1)`, [[sessionId, ...below]]);
    endMoment();
    for (const id of [sessionId, ...below]) this.#changes?.tell(id);
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
    this.#changes?.tell(sessionId);
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

  // Bound, so that it can be passed on alone.
  readonly watch = (sessionId: string, wake: () => void): (() => void) => {
    if (this.#changes) return this.#changes.watch(sessionId, wake);
    throw invalidOption('notify', 'true, for a store whose sessions are watched', false);
  };

  async close(): Promise<void> {
    await this.#changes?.close();
    if (this.#settings.owned) await this.#pool.end();
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
