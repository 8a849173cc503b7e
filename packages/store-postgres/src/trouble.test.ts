// What becomes of runs when the server is full, has no connection left, or stands still.

import { Agent, type Store, tool } from 'allium';
import { text as say, scriptedModel, toolCalls } from 'allium/testing';
import pg from 'pg';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { z } from 'zod';
import { startPostgres } from '../../../scripts/postgres.mjs';
import { type PostgresStoreOptions, postgresStore } from './index.js';

let connectionString = '';
let stop: (() => Promise<void>) | undefined;
let admin: pg.Client;

beforeAll(async () => {
  ({ connectionString, stop } = await startPostgres());
  admin = new pg.Client({ connectionString });
  await admin.connect();
  await open().list();
});

afterAll(async () => {
  await admin.end();
  await Promise.all(stores.map((store) => store.close?.()));
  await stop?.();
});

const stores: Store[] = [];
function open(options: PostgresStoreOptions = {}): Store {
  const store = postgresStore({ connectionString, ...options });
  stores.push(store);
  return store;
}

/** Books once, with an effect that must not be repeated. */
function booking(store: Store, before: () => Promise<unknown> | undefined, storeTimeoutMs = 30_000) {
  const calls: string[] = [];
  const book = tool({
    name: 'book',
    description: 'Books.',
    input: z.any(),
    async execute(_args, { toolCall }) {
      calls.push(toolCall.id);
      await before();
      return 'booked';
    },
  });
  // It says the same however often it is asked.
  const model = scriptedModel(
    [
      ({ messages }) =>
        messages.at(-1)?.role === 'tool' ? say('Booked.') : toolCalls({ name: 'book', id: 'c' }),
    ],
    { repeat: true },
  );
  return { agent: new Agent({ model, tools: [book], store, storeTimeoutMs }), calls };
}

describe('a server whose disk is full', () => {
  /** As a server answers that cannot write: for sessions that begin so. */
  const fill = (session: string) =>
    admin.query(`
      CREATE FUNCTION full_disk() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
        IF NEW.id LIKE '${session}%' THEN
          RAISE EXCEPTION 'could not extend file "base/5/16384": No space left on device' USING ERRCODE = '53100';
        END IF;
        RETURN NEW;
      END $$;
      CREATE TRIGGER full_disk BEFORE INSERT OR UPDATE ON allium.sessions FOR EACH ROW EXECUTE FUNCTION full_disk()`);
  const clear = () => admin.query('DROP FUNCTION IF EXISTS full_disk CASCADE');

  it('fails the run with a code and the reason; the session goes on when there is room', async () => {
    const store = open();
    const { agent, calls } = booking(store, () => (calls.length === 1 ? fill('full') : undefined));
    const error = await agent
      .session('full')
      .run('Book.')
      .catch((thrown: unknown) => thrown);
    await clear();
    expect(error).toMatchObject({
      code: 'STORE_FAILED',
      message: expect.stringContaining('No space left on device'),
    });
    // Its result was not written, so whether it was booked is in doubt: it isn't booked again.
    expect(await agent.session('full').resume()).toMatchObject({ status: 'done', text: 'Booked.' });
    expect(calls).toEqual(['c']);
  });

  it('does not fail the sessions whose appends share a statement with one that fails', async () => {
    const store = open({ maxConnections: 1 });
    await fill('bad');
    const ids = ['good 1', 'bad', 'good 2', 'good 3'];
    const agent = () => new Agent({ model: scriptedModel([say('Hi.')]), store });
    const ends = await Promise.allSettled(ids.map((id) => agent().session(id).run('Hello.')));
    await clear();
    expect(ends.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled', 'fulfilled']);
  });
});

describe('connections', () => {
  it('can be as few as one, however many sessions there are', async () => {
    const store = open({ maxConnections: 1 });
    const ends = await Promise.all(
      Array.from({ length: 40 }, (_, i) => {
        const { agent } = booking(store, () => undefined);
        return agent.session(`few ${i}`).run('Book.');
      }),
    );
    expect(ends.every(({ text }) => text === 'Booked.')).toBe(true);
  });

  it('that the server refuses fail the run with a code and the reason', async () => {
    await admin.query(`CREATE ROLE crowded LOGIN PASSWORD 'x' CONNECTION LIMIT 0;
      GRANT ALL ON SCHEMA allium TO crowded; GRANT ALL ON ALL TABLES IN SCHEMA allium TO crowded`);
    const url = new URL(connectionString);
    url.username = 'crowded';
    url.password = 'x';
    const store = open({ connectionString: url.href, setup: false });
    const run = () =>
      new Agent({ model: scriptedModel([say('Hi.')]), store }).session('crowded').run('Hello.');
    await expect(run()).rejects.toMatchObject({
      code: 'STORE_FAILED',
      message: expect.stringContaining('too many connections'),
    });
    await admin.query('ALTER ROLE crowded CONNECTION LIMIT 10');
    expect(await run()).toMatchObject({ text: 'Hi.' });
  });
});

it('holds a run no longer than storeTimeoutMs while the server stands still, and goes on with it afterwards', async () => {
  const store = open({ maxConnections: 2 });
  const halted: number[] = [];
  const halt = async (): Promise<void> => {
    if (halted.length > 0) return;
    const { rows } = await admin.query(
      'SELECT pid FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND datname IS NOT NULL',
    );
    for (const { pid } of rows) process.kill(pid, 'SIGSTOP');
    halted.push(...rows.map(({ pid }) => pid));
  };
  const { agent, calls } = booking(store, halt, 400);
  const error = await agent
    .session('halted')
    .run('Book.')
    .catch((thrown: unknown) => thrown);
  for (const pid of halted) process.kill(pid, 'SIGCONT');
  expect(halted.length).toBeGreaterThan(0);
  expect(error).toMatchObject({ code: 'STORE_TIMEOUT' });
  expect(await agent.session('halted').resume()).toMatchObject({ status: 'done', text: 'Booked.' });
  expect(calls).toEqual(['c']);
});
