/** Sessions in Redis, for agents on several machines that have one already. */
import { createHash } from 'node:crypto';
import { checkFields, type Fields, kinds } from 'allium/kit';
import {
  AlliumError,
  checkFork,
  checkStorable,
  type Entry,
  endMoment,
  firstRun,
  type InboxItem,
  invalidOption,
  type ListOptions,
  Looks,
  listCursor,
  listQuery,
  type NewEntry,
  parentOf,
  parseEntries,
  type SessionInfo,
  type Snapshot,
  type Store,
  sessionConflict,
  type Tail,
  takenBy,
} from 'allium/stores/kit';
import { Redis } from 'ioredis';
import { APPEND, DELETE, FORGET, FORGOTTEN, HEAD, LIST, POST, READ, TAIL, TAKE } from './scripts.js';

/** The part of a client that the store uses: that of `ioredis`, single or cluster, has it. */
export interface RedisClient {
  eval(script: string, keys: number, ...keysAndValues: string[]): Promise<unknown>;
  evalsha(hash: string, keys: number, ...keysAndValues: string[]): Promise<unknown>;
  quit(): Promise<unknown>;
}

export interface RedisStoreOptions {
  /** `redis://user:password@host:port/database`, or `rediss://` with TLS. */
  readonly url?: string;
  /** An open client instead of `url`. It stays yours: `close()` leaves it open. */
  readonly client?: RedisClient;
  /** The beginning of all keys, as `{prefix}:…`. @default 'allium' */
  readonly prefix?: string;
}

const OPTIONS = {
  url: { ...kinds.nonEmptyText, expected: 'redis://user:password@host:port/database' },
  client: kinds.methods<RedisClient>('eval', 'evalsha'),
  prefix: kinds.kind<string>(
    'text without braces',
    (value) => typeof value === 'string' && value !== '' && !/[{}]/.test(value),
  ),
} satisfies Fields;

/**
 * A store in Redis (6 or later) or Valkey. It is as durable as the settings of the server: see the README.
 *
 * @example
 * ```ts
 * const agent = new Agent({ model, store: redisStore({ url: process.env.REDIS_URL }) });
 * ```
 */
export function redisStore(options: RedisStoreOptions): Store {
  checkFields('redisStore()', OPTIONS, options);
  const { url, client, prefix = 'allium' } = options;
  if (client !== undefined) return new RedisStore(client, { owned: false, prefix });
  if (url === undefined) throw invalidOption('url', OPTIONS.url.expected, url);
  return connect(url, prefix);
}

function connect(url: string, prefix: string): RedisStore {
  // By default, ioredis sends a command again if its answer got lost: an item posted once would be there twice, and a
  // successful append would be reported as a conflict. So the caller gets the error at once, while the client
  // connects again. (`autoResendUnfulfilledCommands: false` sounds right but leaves such commands unanswered
  // forever.)
  const redis = new Redis(url, {
    maxRetriesPerRequest: 0,
    reconnectOnError: isReplica,
    // The network may drop a connection without telling. By default, an agent waits for a store as long as this.
    socketTimeout: 30_000,
  });
  const { host, port, path } = redis.options;
  const trouble = { address: path ?? `${host}:${port}`, last: undefined as string | undefined };
  // A command that fails only says that it wasn't sent. Without a listener, each attempt to connect would be printed.
  redis.on('error', ({ message }: Error) => {
    trouble.last = message;
  });
  return new RedisStore(redis as RedisClient, { owned: true, prefix, trouble });
}

/** The address of the server, and why the last attempt to reach it failed. */
interface Trouble {
  readonly address: string;
  readonly last: string | undefined;
}

function unreachable({ address, last }: Trouble, cause: unknown): AlliumError {
  return new AlliumError(
    'STORE_FAILED',
    `Redis at ${address} cannot be reached${last ? `: ${last}` : ''}. Check that it runs and that \`url\` is its address.`,
    { cause, data: { address } },
  );
}

/** After a failover, the address leads to another server. This one was the primary and refuses to write. */
function isReplica({ message }: Error): boolean {
  return message.includes('READONLY');
}

class RedisStore implements Store {
  readonly #client: RedisClient;
  readonly #owned: boolean;
  readonly #trouble: Trouble | undefined;
  readonly #base: string;
  readonly #found = new Looks<Posted>();

  constructor(
    client: RedisClient,
    {
      owned,
      prefix,
      trouble,
    }: { readonly owned: boolean; readonly prefix: string; readonly trouble?: Trouble },
  ) {
    this.#client = client;
    this.#owned = owned;
    this.#trouble = trouble;
    this.#base = `{${prefix}}:`;
  }

  async append(
    sessionId: string,
    expectedSeq: number,
    entries: readonly NewEntry[],
    snapshot?: Snapshot,
  ): Promise<number> {
    checkStorable('sessionId', sessionId);
    let head: number | undefined;
    if (entries.length === 0) head = await this.head(sessionId);
    else {
      const taken = takenBy(entries);
      const asking = this.#append(sessionId, expectedSeq, entries, { snapshot });
      // Items that these entries take over go in a second step, so there is no look to be had.
      const look = asking.then((found) => (found.head === expectedSeq && !taken ? found.items : undefined));
      await this.#found.appended(sessionId, look);
      ({ head } = await asking);
      if (taken && head === expectedSeq)
        await this.#run(FORGET, [sessionId, String(taken.cursor), ...taken.waits.map(String)]);
    }
    if (head !== expectedSeq) throw sessionConflict(sessionId, expectedSeq, head);
    return expectedSeq + entries.length;
  }

  /** Returns the head before the append, which was made only if that is `expectedSeq`, and what is in the inbox then. */
  async #append(
    sessionId: string,
    expectedSeq: number,
    entries: readonly NewEntry[],
    { forkOf, snapshot }: { readonly forkOf?: string; readonly snapshot?: Snapshot | undefined },
  ): Promise<{ readonly head: number; readonly items: readonly Posted[] }> {
    const run = firstRun(entries);
    if (run?.tenant !== undefined) checkStorable('tenant', run.tenant);
    const [head, first, items] = (await this.#run(APPEND, [
      sessionId,
      String(expectedSeq),
      String(entries[0]!.at),
      String(entries.at(-1)!.at),
      run === undefined ? '0' : '1',
      optional(run?.tenant),
      optional(forkOf),
      optional(parentOf(sessionId)),
      snapshot === undefined ? '' : String(snapshot.seq),
      snapshot?.state ?? '',
      ...entries.map((entry) => JSON.stringify(entry)),
    ])) as [number, number, string[]];
    return { head, items: itemsIn(first, items) };
  }

  async read(sessionId: string, fromSeq: number): Promise<readonly Entry[]> {
    checkStorable('sessionId', sessionId);
    const from = Math.max(1, fromSeq);
    const entries = (await this.#run(READ, [sessionId, String(from)])) as string[];
    return entries.flatMap((json, i) => parseEntries(`[${json}]`, from + i, sessionId));
  }

  async tail(sessionId: string): Promise<Tail> {
    checkStorable('sessionId', sessionId);
    const asking = this.#run(TAIL, [sessionId]) as Promise<[number, string, string[], number, string[]]>;
    const answer = await this.#found.asked(sessionId, asking, ([, , , first, items]) =>
      itemsIn(first, items),
    );
    const [seq, state, rest] = answer;
    const entries = rest.flatMap((json, i) => parseEntries(`[${json}]`, seq + 1 + i, sessionId));
    return seq === 0 ? { entries } : { snapshot: { seq, state }, entries };
  }

  async head(sessionId: string): Promise<number> {
    checkStorable('sessionId', sessionId);
    return (await this.#run(HEAD, [sessionId])) as number;
  }

  async list(
    options: ListOptions = {},
  ): Promise<{ readonly sessions: readonly SessionInfo[]; readonly next?: string }> {
    const { tenant, since, limit, after } = listQuery(options);
    if (tenant !== undefined) checkStorable('tenant', tenant);
    const found = (await this.#run(LIST, [
      optional(tenant),
      since === undefined ? '-inf' : String(since),
      after === undefined ? '' : String(after.updatedAt),
      String(limit + 1),
    ])) as [id: string, seq: number, created: string, updated: string, tenant: string | null][];
    const rows = found.map(([sessionId, seq, created, updated, owner]) => ({
      sessionId,
      ...(owner !== null && { tenant: owner }),
      seq,
      createdAt: Number(created),
      updatedAt: Number(updated),
    }));
    // The server orders sessions of the same time by their bytes, descending.
    const later = rows.filter(
      (row) =>
        after === undefined ||
        row.updatedAt !== after.updatedAt ||
        Buffer.compare(Buffer.from(row.sessionId), Buffer.from(after.sessionId)) < 0,
    );
    const sessions = later.slice(0, limit);
    return later.length > limit ? { sessions, next: listCursor(sessions[limit - 1]!) } : { sessions };
  }

  async fork(sessionId: string, seq: number, newId: string): Promise<void> {
    checkStorable('sessionId', newId);
    const entries = await this.read(sessionId, 1);
    checkFork(sessionId, seq, entries.length, newId, await this.head(newId));
    const copied = entries.slice(0, seq).map(({ seq: _, ...entry }) => entry);
    const { head } = await this.#append(newId, 0, copied, { forkOf: sessionId });
    if (head !== 0) throw sessionConflict(newId, 0, head);
  }

  async delete(sessionId: string): Promise<void> {
    checkStorable('sessionId', sessionId);
    await this.#run(DELETE, [sessionId]);
    endMoment();
  }

  async post(sessionId: string, item: InboxItem): Promise<void> {
    checkStorable('sessionId', sessionId);
    await this.#run(POST, [sessionId, JSON.stringify(item)]);
    endMoment();
  }

  async take(sessionId: string, after: number): Promise<readonly Posted[]> {
    checkStorable('sessionId', sessionId);
    const ask = async (): Promise<readonly Posted[]> => {
      const [first, items] = (await this.#run(TAKE, [sessionId, String(after)])) as [number, string[]];
      return itemsIn(first, items);
    };
    const found = await this.#found.look(sessionId, ask);
    // Only the server can forget.
    return found.some(({ n }) => n <= after) ? ask() : found;
  }

  async close(): Promise<void> {
    if (this.#owned) await this.#client.quit();
  }

  /**
   * By its hash, which the server knows after the first time. A restarted server doesn't, and gets the script again.
   */
  async #run(script: string, values: string[]): Promise<unknown> {
    let hash = HASHES.get(script);
    if (hash === undefined) {
      hash = createHash('sha1').update(script).digest('hex');
      HASHES.set(script, hash);
    }
    try {
      return await this.#client.evalsha(hash, 1, this.#base, ...values);
    } catch (error) {
      if (!(error instanceof Error)) throw error;
      if (error.name === 'MaxRetriesPerRequestError' && this.#trouble)
        throw unreachable(this.#trouble, error);
      if (!error.message.startsWith('NOSCRIPT')) throw error;
      return this.#client.eval(script, 1, this.#base, ...values);
    }
  }
}

const HASHES = new Map<string, string>();

interface Posted {
  readonly n: number;
  readonly item: InboxItem;
}

function itemsIn(first: number, items: readonly string[]): Posted[] {
  return items.flatMap((json, i) =>
    json === FORGOTTEN ? [] : { n: first + i, item: JSON.parse(json) as InboxItem },
  );
}

/** A value that may be absent, as an argument: '' or '=value'. */
function optional(value: string | undefined): string {
  return value === undefined ? '' : `=${value}`;
}
