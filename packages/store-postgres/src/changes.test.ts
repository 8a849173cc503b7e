// Readers in other processes hear of changes at once, and lose none if the connection breaks.

import { setTimeout as sleep } from 'node:timers/promises';
import { Agent, type Store, userMessage } from 'allium';
import { eventHub } from 'allium/http';
import { text as say, scriptedModel } from 'allium/testing';
import pg from 'pg';
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest';
import { startPostgres } from '../../../scripts/postgres.mjs';
import { Changes, type ChangesOptions } from './changes.js';
import { type PostgresStore, type PostgresStoreOptions, postgresStore } from './index.js';

let connectionString = '';
let stop: (() => Promise<void>) | undefined;
let admin: pg.Pool;

beforeAll(async () => {
  ({ connectionString, stop } = await startPostgres());
  admin = new pg.Pool({ connectionString });
  admin.on('error', () => {});
  await open().list();
  await admin.query('CREATE DATABASE elsewhere');
});

const opened: { close?(): unknown }[] = [];
afterEach(async () => {
  await Promise.all(opened.splice(0).map((one) => one.close?.()));
});
afterAll(async () => {
  await admin.end();
  await stop?.();
});

function open(options: PostgresStoreOptions = {}): PostgresStore {
  const store = postgresStore({ connectionString, notify: true, ...options });
  opened.push(store);
  return store;
}

function changes(options: Partial<ChangesOptions> = {}): Changes {
  const send = (text: string) => admin.query('SELECT pg_notify($1, $2)', ['test', text]);
  const made = new Changes({
    channel: 'test',
    address: connectionString,
    send,
    deafMs: 60_000,
    checkMs: 100,
    idleMs: 50,
    ...options,
  });
  opened.push(made);
  return made;
}

/** The connections that listen. */
const listeners = async (): Promise<readonly number[]> =>
  (await admin.query(`SELECT pid FROM pg_stat_activity WHERE query LIKE 'LISTEN%'`)).rows.map(
    ({ pid }) => pid,
  );
/** Waits until a listening connection has been proven to work. */
async function hears(made: Changes | PostgresStore): Promise<void> {
  await new Promise<void>((resolve) => {
    const unwatch = made.watch('any', () => {
      unwatch();
      resolve();
    });
  });
}

const agent = (store: Store) => new Agent({ model: scriptedModel([say('Hi.')], { repeat: true }), store });

describe('a store with `notify`', () => {
  it('wakes readers in other processes at once, in order, each event once', async () => {
    const there = open();
    const here = open();
    // They never look by themselves.
    const hub = eventHub({ store: here, watch: here.watch, pollMs: [3_600_000, 3_600_000] });
    const sessions = Array.from({ length: 20 }, (_, i) => `many ${i}`);
    const read = sessions.flatMap((id) =>
      [0, 1].map(async () => {
        const seen: string[] = [];
        const leave = new AbortController();
        for await (const { id: at, event } of hub.follow(id, { stay: true, signal: leave.signal })) {
          seen.push(`${at} ${event.type}`);
          if (seen.filter((one) => one.endsWith('agent_end')).length === 3) leave.abort();
        }
        return seen;
      }),
    );
    await Promise.all(
      sessions.map(async (id) => {
        for (let i = 0; i < 3; i++) await agent(there).session(id).run('Hello.');
      }),
    );
    const seen = await Promise.all(read);
    for (const [i, events] of seen.entries()) {
      expect(new Set(events).size).toBe(events.length);
      // As somebody reads it who comes later.
      const later: string[] = [];
      for await (const { id, event } of hub.follow(sessions[Math.floor(i / 2)]!))
        later.push(`${id} ${event.type}`);
      expect(events).toEqual(later);
    }
  });

  it('tells of posts, forks and deletions, too', async () => {
    const there = open();
    const here = open();
    await agent(there).session('source').run('Hello.');
    await hears(here);
    for (const [id, change] of [
      ['posted', () => there.post('posted', { type: 'steer', message: userMessage('Hm.') })],
      ['copy', () => there.fork('source', 1, 'copy')],
      ['source', () => there.delete('source')],
    ] as const) {
      const wake = vi.fn();
      here.watch(id, wake);
      await change();
      await vi.waitFor(() => expect(wake).toHaveBeenCalled());
    }
  });

  it('opens a connection only while somebody watches', async () => {
    const store = open();
    await agent(store).session('quiet').run('Hello.');
    expect(await listeners()).toEqual([]);
    const made = changes();
    const unwatch = made.watch('s', () => {});
    const another = made.watch('s', () => {});
    await vi.waitFor(async () => expect(await listeners()).toHaveLength(1));
    unwatch();
    await sleep(150);
    expect(await listeners()).toHaveLength(1);
    another();
    await vi.waitFor(async () => expect(await listeners()).toEqual([]));
  });

  it('appends without waiting for the notification', async () => {
    const pool = new pg.Pool({ connectionString });
    let held = (): void => {};
    const store = open({
      notify: connectionString,
      pool: {
        query: async (text: string, values?: unknown[]) => {
          if (String(text).includes('pg_notify')) await new Promise<void>((go) => (held = go));
          return pool.query(text, values);
        },
        connect: () => pool.connect(),
        end: () => pool.end(),
      },
    });
    expect(await agent(store).session('unheard').run('Hello.')).toMatchObject({ text: 'Hi.' });
    // What changed meanwhile goes with one more.
    held();
    await sleep(50);
    held();
    await store.close?.();
    await pool.end();
  });

  it.each([
    [
      { connectionString: undefined, pool: { query() {}, connect() {} } as never },
      /true with a `connectionString`/,
    ],
    [{ notify: '' }, /or the address of the server/],
    [{ notify: 7 as never }, /or the address of the server/],
  ])('refuses %j', (options, message) => {
    expect(() => open(options as PostgresStoreOptions)).toThrow(message);
  });

  it('is needed for `watch`', () => {
    expect(() => open({ notify: false }).watch('s', () => {})).toThrow(/`notify`/);
  });
});

describe('listening', () => {
  it('wakes once more when it has begun, because something may have changed before', async () => {
    const made = changes({ checkMs: 60_000 });
    const wake = vi.fn();
    made.watch('s', wake);
    await vi.waitFor(() => expect(wake).toHaveBeenCalledTimes(1));
  });

  it('begins again when its connection is lost, and says that something may have changed', async () => {
    const made = changes();
    await hears(made);
    const wake = vi.fn();
    made.watch('s', wake);
    const [pid] = await listeners();
    await admin.query('SELECT pg_terminate_backend($1)', [pid]);
    await vi.waitFor(async () => expect((await listeners()).filter((one) => one !== pid)).toHaveLength(1));
    await vi.waitFor(() => expect(wake).toHaveBeenCalled());
    wake.mockClear();
    changes().tell('s');
    await vi.waitFor(() => expect(wake).toHaveBeenCalled());
  });

  it('notices a connection through which nothing comes, such as that of a pooler, and wakes from time to time', async () => {
    const address = new URL(connectionString);
    // It can be reached, but notifications stay in their database.
    address.pathname = '/elsewhere';
    const made = changes({ address: address.href, deafMs: 20 });
    const wake = vi.fn();
    made.watch('s', wake);
    await vi.waitFor(() => expect(wake.mock.calls.length).toBeGreaterThan(20));
  });

  it('wakes from time to time while the server cannot be reached', async () => {
    const made = changes({ address: 'postgres://nobody@127.0.0.1:1/none', deafMs: 20 });
    const wake = vi.fn();
    made.watch('s', wake);
    await vi.waitFor(() => expect(wake.mock.calls.length).toBeGreaterThan(20));
  });

  it('tells of any number of sessions, with ids of any length and script', async () => {
    const made = changes({ checkMs: 60_000 });
    await hears(made);
    const ids = Array.from({ length: 1200 }, (_, i) => `${'é,?'.repeat(3000)}${i}`);
    const woken = new Set<string>();
    for (const id of ids) made.watch(id, () => woken.add(id));
    const there = changes();
    for (const id of ids) there.tell(id);
    await vi.waitFor(() => expect(woken.size).toBe(ids.length));
  });

  it('closes while it connects', async () => {
    const made = changes();
    made.watch('s', () => {});
    await made.close();
    await vi.waitFor(async () => expect(await listeners()).toEqual([]));
    made.watch('s', () => {});
    await sleep(150);
    expect(await listeners()).toEqual([]);
  });

  it('takes the same function twice, and one of them away', async () => {
    const made = changes({ checkMs: 60_000 });
    await hears(made);
    const wake = vi.fn();
    made.watch('s', wake);
    const unwatch = made.watch('s', wake);
    unwatch();
    unwatch();
    changes().tell('s');
    await vi.waitFor(() => expect(wake).toHaveBeenCalledTimes(1));
  });
});
