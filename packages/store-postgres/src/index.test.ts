import { type EventEmitter, once } from 'node:events';
import fs from 'node:fs';
import path from 'node:path';
import {
  Agent,
  type InboxItem,
  type Middleware,
  type Model,
  type NewEntry,
  type Store,
  textOf,
  tool,
  userMessage,
} from 'allium';
import { budget } from 'allium/middleware/budget';
import { rateLimit } from 'allium/middleware/rate-limit';
import { text as say, scriptedModel, testStore, toolCalls } from 'allium/testing';
import pg from 'pg';
import { RateLimiterPostgres } from 'rate-limiter-flexible';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { z } from 'zod';
import { startPostgres } from '../../../scripts/postgres.mjs';
import { expectAnswersFromElsewhere } from '../../../test/answered-elsewhere.js';
import { sessionHistoryChecks } from '../../../test/session-history-checks.js';
import { type PostgresStoreOptions, postgresStore } from './index.js';
import { tables } from './schema.js';

// A real server of the newest version.
let connectionString = '';
let stop: (() => Promise<void>) | undefined;

beforeAll(async () => {
  ({ connectionString, stop } = await startPostgres());
});

afterAll(() => stop?.());

const open = (options: PostgresStoreOptions = {}): Store => postgresStore({ connectionString, ...options });

it('wakes a run that waits for its handler when another process answers, and lets the first answer count', async () => {
  await expectAnswersFromElsewhere(() => open(), `answered-${Date.now()}`);
});

testStore({ name: 'postgresStore', open: () => open(), reopen: () => open(), it, describe });
sessionHistoryChecks('Postgres', open, open);

const text = (id: string): NewEntry => ({
  v: 1,
  at: 7,
  type: 'message',
  runId: 'r',
  message: { id, role: 'user', content: [] },
});
let count = 0;
const newId = () => `session-${Date.now()}-${count++}`;

// A session as the first release left it in its tables, and in words. Kept as it is once that release is out; written
// with ALLIUM_WRITE_FIXTURES=1.
const fixture = path.join(import.meta.dirname, 'fixtures/v1.sql');
const journal = JSON.parse(
  fs.readFileSync(
    path.join(import.meta.dirname, '../../allium/src/stores/kit/fixtures/v1/journal.json'),
    'utf8',
  ),
) as { sessionId: string; appends: NewEntry[][]; inbox: InboxItem[]; taken: number };

async function writeFixture(schema: string): Promise<void> {
  const store = open({ schema });
  let seq = 0;
  for (const entries of journal.appends) seq = await store.append(journal.sessionId, seq, entries);
  for (const item of journal.inbox) await store.post(journal.sessionId, item);
  await store.take(journal.sessionId, journal.taken);
  await store.close?.();
  const client = new pg.Client({ connectionString });
  await client.connect();
  const lines = [`SET search_path TO ${schema};`];
  for (const table of ['sessions', 'appends', 'inbox']) {
    for (const row of (await client.query(`SELECT * FROM ${schema}.${table}`)).rows) {
      const values = Object.values(row).map((value) =>
        value === null ? 'NULL' : client.escapeLiteral(String(value)),
      );
      const overriding = table === 'sessions' ? ' OVERRIDING SYSTEM VALUE' : '';
      lines.push(
        `INSERT INTO ${table} (${Object.keys(row).join(', ')})${overriding} VALUES (${values.join(', ')});`,
      );
    }
  }
  await client.end();
  fs.writeFileSync(fixture, `${tables(schema)}${lines.join('\n')}\n`.replaceAll(schema, 'fixture_schema'));
}

/** `end()` of a pool does not wait for its sockets, and the server may go first: this one waits. */
function poolOf(config: pg.PoolConfig): pg.Pool {
  const pool = new pg.Pool(config);
  const closed: Promise<unknown>[] = [];
  pool.on('connect', (client) => void closed.push(once(client as unknown as EventEmitter, 'end')));
  const end = pool.end.bind(pool) as () => Promise<void>;
  pool.end = (async () => {
    await end();
    await Promise.all(closed);
  }) as typeof pool.end;
  return pool;
}

/** A pool that notes what it is asked, and a store on it. */
function notingStore() {
  const pool = poolOf({ connectionString });
  const sent: string[] = [];
  const name = (statement: unknown): string => (statement as { readonly name?: string }).name ?? 'other';
  const noting = {
    query(text: string, values?: unknown[]) {
      sent.push(name(text));
      return pool.query(text, values);
    },
    connect: () => pool.connect(),
    end: () => pool.end(),
  } as unknown as NonNullable<PostgresStoreOptions['pool']>;
  return { sent, pool, store: postgresStore({ pool: noting, prepare: true }) };
}

const ADD = (execute: () => Promise<string> | string) =>
  tool({ name: 'add', description: 'Adds.', input: z.object({}), execute });
const threeTurns = () =>
  scriptedModel([...Array.from({ length: 3 }, () => toolCalls({ name: 'add', args: {} })), say('done')]);

describe('postgresStore, asked in a run', () => {
  it('makes one statement per turn if nothing in it waits, which also looks into the inbox', async () => {
    const { sent, pool, store } = notingStore();
    await store.head('the tables are made');
    sent.length = 0;
    const agent = new Agent({ model: threeTurns(), tools: [ADD(() => 'added')], store });
    expect((await agent.session(newId()).run('go')).status).toBe('done');
    // The session is opened, the input written, then three turns, the answer and the end.
    expect(sent).toEqual(['allium_tail', ...Array.from({ length: 6 }, () => 'allium_append')]);
    await pool.end();
  });

  it('looks into the inbox with the result of a tool that waited', async () => {
    const { sent, pool, store } = notingStore();
    await store.head('the tables are made');
    sent.length = 0;
    const waits = () => new Promise<string>((resolve) => setImmediate(() => setImmediate(resolve, 'added')));
    const agent = new Agent({ model: threeTurns(), tools: [ADD(waits)], store });
    expect((await agent.session(newId()).run('go')).status).toBe('done');
    expect(sent).toEqual(['allium_tail', ...Array.from({ length: 9 }, () => 'allium_append')]);
    await pool.end();
  });

  it('hears in the next turn what a tool or another process posted during a turn', async () => {
    const elsewhere = open();
    const { pool, store } = notingStore();
    const id = newId();
    const model = threeTurns();
    let calls = 0;
    const steer = async () => {
      const message = userMessage(`steering ${++calls}`);
      await (calls === 2 ? elsewhere : store).post(id, { type: 'steer', message });
      return 'added';
    };
    const agent = new Agent({ model, tools: [ADD(steer)], store });
    await agent.session(id).run('go');
    const heard = model.requests.map(({ messages }) => textOf(messages.at(-1)!));
    expect(heard).toEqual(['go', 'steering 1', 'steering 2', 'steering 3']);
    await elsewhere.close?.();
    await pool.end();
  });
});

describe('postgresStore', () => {
  it('reads and continues a session that the first release wrote', async () => {
    const schema = `fixture_${Date.now()}`;
    if (process.env.ALLIUM_WRITE_FIXTURES) await writeFixture(`${schema}_new`);
    const client = new pg.Client({ connectionString });
    await client.connect();
    await client.query(fs.readFileSync(fixture, 'utf8').replaceAll('fixture_schema', schema));
    await client.end();
    const { sessionId, appends, inbox, taken } = journal;
    const store = open({ schema });
    expect(await store.read(sessionId, 1)).toEqual(
      appends.flat().map((entry, i) => ({ ...entry, seq: i + 1 })),
    );
    const { sessions } = await store.list({ tenant: 'acme' });
    expect(sessions).toEqual([
      { sessionId, tenant: 'acme', seq: 15, createdAt: 1760000000000, updatedAt: 1760000000005 },
    ]);
    expect(await store.take(sessionId, 0)).toEqual([{ n: taken + 1, item: inbox[taken] }]);
    expect(await store.append(sessionId, 15, [text('more')])).toBe(16);
    await store.close?.();
  });

  it('works beside a process of the first release, on the same session and on its tables', async () => {
    const schema = `beside_${Date.now()}`;
    const client = new pg.Client({ connectionString });
    await client.connect();
    const sql = (name: string) =>
      fs
        .readFileSync(path.join(import.meta.dirname, 'fixtures', name), 'utf8')
        .replaceAll('fixture_schema', schema);
    // Only its tables: the rows in there have numbers that the server doesn't know it has given out.
    await client.query(sql('v1.sql').split('SET search_path')[0]!);
    /** What that release does to append, by the statement it has. */
    const appendOld = async (id: string, seq: number, entries: readonly NewEntry[]): Promise<boolean> => {
      const values = [id, seq, entries.length, JSON.stringify(entries), 7, 7, false, null, null, null];
      return (
        (
          await client.query(
            sql('v1-append.sql'),
            values.map((value) => [value]),
          )
        ).rows.length === 1
      );
    };
    const strict = open({ schema, setup: false });
    await expect(strict.head('s')).rejects.toMatchObject({
      code: 'STORE_FAILED',
      data: { missing: 'snapshots' },
    });
    const store = open({ schema });
    expect(await store.append('s', 0, [text('a')])).toBe(1);
    expect(await appendOld('s', 1, [text('b')])).toBe(true);
    expect(await store.append('s', 2, [text('c')], { seq: 2, state: 'of two' })).toBe(3);
    expect(await appendOld('s', 3, [text('d')])).toBe(true);
    expect(await appendOld('s', 3, [text('late')])).toBe(false);
    await expect(store.append('s', 3, [text('late')])).rejects.toMatchObject({ code: 'SESSION_CONFLICT' });
    const { snapshot, entries } = await store.tail!('s');
    expect([snapshot?.seq, entries.map(({ seq }) => seq)]).toEqual([2, [3, 4]]);
    expect(await strict.head('s')).toBe(4);
    // That release looks at the version when it starts, and deletes by the session's row.
    expect((await client.query(`SELECT version FROM ${schema}.meta`)).rows).toEqual([{ version: 1 }]);
    await client.query(`DELETE FROM ${schema}.sessions WHERE id = ANY($1)`, [['s']]);
    expect((await client.query(`SELECT * FROM ${schema}.snapshots`)).rows).toEqual([]);
    expect(await store.tail!('s')).toEqual({ entries: [] });
    await client.end();
    await Promise.all([store.close?.(), strict.close?.()]);
  });

  it('sets up a new schema from several handles at once', async () => {
    const schema = `schema_${Date.now()}`;
    const stores = Array.from({ length: 8 }, () => open({ schema, maxConnections: 1 }));
    const heads = await Promise.all(stores.map((store) => store.head('s')));
    expect(heads).toEqual(heads.map(() => 0));
    await Promise.all(stores.map((store) => store.close?.()));
  });

  it('lets eight writers append to one session without a gap, a loss or a mixture', async () => {
    const id = newId();
    const stores = Array.from({ length: 8 }, () => open({ maxConnections: 1 }));
    let conflicts = 0;
    await Promise.all(
      stores.map(async (store, writer) => {
        for (let done = 0; done < 25; ) {
          try {
            await store.append(
              id,
              await store.head(id),
              ['a', 'b'].map((part) => text(`${writer}.${done}${part}`)),
            );
            done++;
          } catch (error) {
            expect(error).toMatchObject({ code: 'SESSION_CONFLICT' });
            conflicts++;
          }
        }
      }),
    );
    const entries = await stores[0]!.read(id, 1);
    const ids = entries.map((entry) => (entry.type === 'message' ? entry.message.id : entry.type));
    expect(ids).toHaveLength(8 * 25 * 2);
    expect(ids).toEqual(
      ids.filter((_, i) => i % 2 === 0).flatMap((first) => [first, `${first.slice(0, -1)}b`]),
    );
    for (let writer = 0; writer < 8; writer++) {
      const own = ids.filter((each) => each.startsWith(`${writer}.`));
      expect(own).toEqual(
        Array.from({ length: 25 }, (_, i) => [`${writer}.${i}a`, `${writer}.${i}b`]).flat(),
      );
    }
    expect(conflicts, 'conflicts: without any, nothing was tried here').toBeGreaterThan(0);
    await Promise.all(stores.map((store) => store.close?.()));
  });

  it('lets eight writers do so under a stricter isolation level, in which the server refuses instead of waiting', async () => {
    const id = newId();
    const pool = poolOf({ connectionString, options: '-c default_transaction_isolation=serializable' });
    const store = open({ pool });
    const attempts = await Promise.allSettled(
      Array.from({ length: 10 }, (_, i) => store.append(id, 0, [text(`${i}`)])),
    );
    expect(attempts.filter(({ status }) => status === 'fulfilled')).toHaveLength(1);
    for (const attempt of attempts)
      if (attempt.status === 'rejected') expect(attempt.reason).toMatchObject({ code: 'SESSION_CONFLICT' });
    await pool.end();
  });

  it('writes all of a batch or nothing when its connection is cut', async () => {
    const id = newId();
    const store = open({
      connectionString: `${connectionString}?application_name=victim`,
      maxConnections: 1,
    });
    const killer = new pg.Client({ connectionString });
    await killer.connect();
    let [confirmed, cuts, done] = [0, 0, false];
    const appending = (async () => {
      while (!done) {
        try {
          const head = await store.head(id);
          expect(head % 3).toBe(0);
          // What was not confirmed may be there all the same, but only whole and only once.
          expect(head === confirmed || head === confirmed + 3).toBe(true);
          confirmed = head;
          confirmed = await store.append(id, head, [text('a'), text('b'), text('c')]);
        } catch (error) {
          if ((error as { name?: string }).name === 'AssertionError') throw error;
          cuts++;
        }
      }
    })();
    while (cuts < 10) {
      await killer.query(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'victim' AND state = 'active'",
      );
    }
    done = true;
    await appending;
    expect(confirmed).toBeGreaterThan(0);
    await killer.end();
    await store.close?.();
  });

  it.each([true, false])(
    'lets many sessions share a statement, and writes or refuses each by itself (prepare: %s)',
    async (prepare) => {
      const store = open({ maxConnections: 3, prepare });
      const ids = Array.from({ length: 60 }, newId);
      await Promise.all(ids.map((id) => store.append(id, 0, [text('1')])));
      await store.post(ids[3]!, { type: 'cancel', reason: 'enough' });
      // Every tenth is wrong about its session, and one asks for what no number of the server's can be.
      const wrong = (i: number) => (i === 5 ? 2 ** 40 : i % 10 === 0 ? 7 : 1);
      const inbox: NewEntry = { v: 1, at: 8, type: 'inbox', cursor: 1 };
      const said = await Promise.allSettled(
        ids.map((id, i) => store.append(id, wrong(i), i === 3 ? [text('2'), inbox] : [text('2')])),
      );
      for (const [i, { status, ...outcome }] of said.entries()) {
        const fits = wrong(i) === 1;
        expect([i, status]).toEqual([i, fits ? 'fulfilled' : 'rejected']);
        if (!fits && i !== 5) expect(outcome).toMatchObject({ reason: { code: 'SESSION_CONFLICT' } });
        expect((await store.read(ids[i]!, 1)).map(({ type }) => type)).toEqual(
          !fits ? ['message'] : i === 3 ? ['message', 'message', 'inbox'] : ['message', 'message'],
        );
      }
      expect(await store.take(ids[3]!, 0)).toEqual([]);
      await store.close?.();
    },
  );

  it('looks into many inboxes at once without mixing them up', async () => {
    const store = open({ maxConnections: 3 });
    const ids = Array.from({ length: 30 }, newId);
    await Promise.all(
      ids.flatMap((id, i) => (i % 3 === 0 ? [] : [store.post(id, { type: 'cancel', reason: id })])),
    );
    const taken = await Promise.all(ids.map((id) => store.take(id, 0)));
    expect(taken).toEqual(
      ids.map((id, i) => (i % 3 === 0 ? [] : [{ n: 1, item: { type: 'cancel', reason: id } }])),
    );
    await store.close?.();
  });

  it('uses a pool that is given to it, and leaves it open', async () => {
    const pool = poolOf({ connectionString });
    const store = open({ pool });
    await store.append(newId(), 0, [text('a')]);
    await store.close?.();
    expect((await pool.query('SELECT 1 AS one')).rows).toEqual([{ one: 1 }]);
    await pool.end();
  });

  it('asks again for a server that was not there at first', async () => {
    let fails = true;
    const pool = poolOf({ connectionString });
    const flaky = {
      query: (sql: string, values?: unknown[]) => pool.query(sql, values),
      connect: async () => {
        if (fails) throw new Error('connection refused');
        return pool.connect();
      },
      end: () => pool.end(),
    };
    const store = open({ pool: flaky });
    await expect(store.head('s')).rejects.toThrow('connection refused');
    fails = false;
    expect(await store.head('s')).toBe(0);
    await pool.end();
  });

  it('refuses tables that a newer release has made', async () => {
    const schema = `newer_${Date.now()}`;
    const first = open({ schema });
    await first.head('s');
    const client = new pg.Client({ connectionString });
    await client.connect();
    await client.query(`UPDATE ${schema}.meta SET version = 2`);
    await client.end();
    const second = open({ schema });
    await expect(second.head('s')).rejects.toThrow(
      /has version 2 of the tables of this store; this release reads version 1/,
    );
    await Promise.all([first.close?.(), second.close?.()]);
  });

  it('refuses options, ids and tenants it cannot use', async () => {
    expect(() => postgresStore({})).toThrow(
      'Expected `connectionString` to be postgres://user:password@host:port/database, got undefined.',
    );
    expect(() => open({ schema: 'a"; DROP' })).toThrow(
      'Expected `schema` to be a name of lower-case letters, digits and underscores',
    );
    expect(() => open({ maxConnections: 0 })).toThrow(
      'Expected `maxConnections` to be an integer ≥ 1, got 0.',
    );
    expect(() => open({ conectionString: 'x' } as never)).toThrow('Did you mean `connectionString`?');
    const store = open();
    await expect(store.head('a\0b')).rejects.toThrow(
      'Expected `sessionId` to be well-formed text without NUL characters',
    );
    const run: NewEntry = { v: 1, at: 1, type: 'run_start', runId: 'r', plan: [], tenant: '\ud800' };
    await expect(store.append(newId(), 0, [run])).rejects.toThrow(
      'Expected `tenant` to be well-formed text without NUL characters',
    );
    await store.close?.();
  });
});

describe('middleware that share a PostgreSQL', () => {
  /** Two agents with connections of their own, as two processes would have, and how their runs end. */
  /** Uses all that it may, and not more: a budget that is crowded lets each call have less. */
  const modest: Model = {
    provider: 'test',
    id: 'modest',
    price: { input: 0, output: 1000 },
    async *stream({ settings: { maxOutputTokens = 0 } }) {
      yield { type: 'text', text: 'Hello.' };
      yield { type: 'finish', reason: 'stop', usage: { inputTokens: 0, outputTokens: maxOutputTokens } };
    },
  };

  async function endsOf(make: (pool: pg.Pool) => Middleware | Promise<Middleware>, runs: number) {
    const ends: Record<string, number> = {};
    const agents = [0, 1].map(async () => {
      const pool = poolOf({ connectionString });
      const agent = new Agent({
        model: modest,
        settings: { maxOutputTokens: 100 },
        middleware: [await make(pool)],
      });
      const run = async (): Promise<void> => {
        const end = await agent.run('Hi.').then(
          ({ stop }) => stop.reason,
          (error: { cause: { code: string } }) => error.cause.code,
        );
        ends[end] = (ends[end] ?? 0) + 1;
      };
      await Promise.all(Array.from({ length: runs }, run));
      await pool.end();
    });
    await Promise.all(agents);
    return ends;
  }

  it('hold a budget together, with the statement of its README', async () => {
    const client = new pg.Client({ connectionString });
    await client.connect();
    await client.query('create table budgets (key text primary key, amount double precision not null)');
    const add = `insert into budgets values ($1, $2)
      on conflict (key) do update set amount = budgets.amount + excluded.amount returning amount`;
    const ends = await endsOf((pool) => {
      const increment = async (key: string, by: number): Promise<number> =>
        (await pool.query<{ amount: number }>(add, [key, by])).rows[0]!.amount;
      return budget({ usd: 1, per: 'tenant', store: { increment } });
    }, 12);
    const { final = 0, max_cost: refused = 0 } = ends;
    expect([final + refused, final >= 10]).toEqual([24, true]);
    const { rows } = await client.query<{ amount: number }>('select amount from budgets');
    expect(rows).toHaveLength(1);
    expect(rows[0]!.amount).toBeLessThanOrEqual(1 + 1e-9);
    expect(rows[0]!.amount).toBeGreaterThan(0.9);
    await client.end();
  });

  it('hold a rate limit together, with a limiter of rate-limiter-flexible', async () => {
    const limiterOn = (storeClient: pg.Pool): Promise<RateLimiterPostgres> =>
      new Promise((resolve, reject) => {
        const options = { storeClient, storeType: 'pool', tableName: 'limits', points: 10, duration: 3600 };
        const limiter = new RateLimiterPostgres(options, (error) =>
          error ? reject(error) : resolve(limiter),
        );
      });
    const pool = poolOf({ connectionString });
    await limiterOn(pool);
    await pool.end();
    const ends = await endsOf(
      async (own) => rateLimit({ limiter: await limiterOn(own), mode: 'reject' }),
      12,
    );
    expect(ends).toEqual({ final: 10, RATE_LIMITED: 14 });
  });
});

describe('a table that somebody has locked', () => {
  it.each([
    ['for longer than everything in the run is given', 1500],
    ['for longer than the run waits', 4000],
  ])('%s: an abort leaves a valid journal that can be continued', async (_, lockMs) => {
    const store = open();
    const id = newId();
    const locker = new pg.Client({ connectionString });
    await locker.connect();
    const hold = tool({
      name: 'hold',
      description: 'Waits.',
      input: z.any(),
      execute: (_args, ctx) =>
        new Promise((_resolve, reject) => {
          ctx.signal.addEventListener('abort', () => reject(new Error('aborted')));
        }),
    });
    const agent = new Agent({
      model: scriptedModel([toolCalls({ name: 'hold' }, { name: 'hold' }, { name: 'hold' }), 'done']),
      tools: [hold],
      store,
      teardownTimeoutMs: 100,
    });
    const session = agent.session(id);
    const stream = session.stream('go');
    let unlocked: Promise<unknown> | undefined;
    const ended = (async () => {
      for await (const event of stream)
        if (event.type === 'tool_execution_start') {
          // Reads stay quick, writes wait.
          await locker.query('BEGIN; LOCK TABLE allium.sessions IN SHARE MODE');
          unlocked = new Promise((resolve) => setTimeout(() => resolve(locker.query('COMMIT')), lockMs));
          await session.abort('enough');
          break;
        }
      return stream.result;
    })();
    await expect(ended).rejects.toMatchObject({ code: 'ABORTED' });
    await unlocked;
    // What waited for the lock is written now.
    const busy = `SELECT count(*)::int AS n FROM pg_stat_activity
      WHERE datname = current_database() AND pid <> pg_backend_pid() AND state <> 'idle'`;
    await expect.poll(async () => (await locker.query(busy)).rows).toEqual([{ n: 0 }]);
    const entries = await store.read(id, 1);
    const answered = entries.flatMap((entry) =>
      entry.type === 'tool_finished' ? [entry.message.toolCallId] : [],
    );
    expect(new Set(answered).size).toBe(answered.length);
    expect(entries.slice(0, -1).filter(({ type }) => type === 'run_end')).toEqual([]);
    expect(await agent.session(id).run('and now?')).toMatchObject({ text: 'done' });
    await locker.end();
    await store.close?.();
  });
});
