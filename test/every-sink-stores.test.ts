/** What stores have on their disks when a guardrail removed something. */
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { postgresStore } from '@allium/store-postgres';
import { redisStore } from '@allium/store-redis';
import { Agent, type Store } from 'allium';
import { fileStore } from 'allium/stores/file';
import { sqliteStore } from 'allium/stores/sqlite';
import { scriptedModel } from 'allium/testing';
import { Redis } from 'ioredis';
import pg from 'pg';
import { afterAll, describe, expect, it } from 'vitest';
import { startRedis } from '../packages/store-redis/test/redis-server.js';
import { startPostgres } from '../scripts/postgres.mjs';
import { print } from './every-sink-checks.js';
import { GUARDS, MARK, REMOVING, settings } from './every-sink-guards.js';
import { play } from './every-sink-setup.js';

interface Disk {
  readonly open: () => Store;
  /** Everything it holds, as it holds it. */
  readonly dump: () => Promise<string> | string;
  readonly stop?: () => Promise<void>;
}

/** Every file below a folder, as it is. */
const bytesIn = (dir: string): string =>
  fs
    .readdirSync(dir, { recursive: true, encoding: 'utf8' })
    .map((name) => path.join(dir, name))
    .filter((file) => fs.statSync(file).isFile())
    .map((file) => fs.readFileSync(file, 'latin1'))
    .join('\n');

async function rowsOf(connectionString: string): Promise<string> {
  const client = new pg.Client({ connectionString });
  await client.connect();
  const { rows: tables } = await client.query(
    "select table_schema || '.' || table_name as name from information_schema.tables where table_schema not in ('pg_catalog', 'information_schema')",
  );
  const all: unknown[] = [];
  for (const { name } of tables)
    all.push((await client.query<{ t: string }>(`select t::text from ${name} t`)).rows);
  await client.end();
  return JSON.stringify(all);
}

async function valuesOf(url: string): Promise<string> {
  const client = new Redis(url);
  const all: unknown[] = [];
  for (const key of await client.keys('*')) {
    const type = await client.type(key);
    if (type === 'list') all.push(await client.lrange(key, 0, -1));
    else if (type === 'hash') all.push(await client.hgetall(key));
    else if (type === 'string') all.push(await client.get(key));
    else if (type === 'zset') all.push(await client.zrange(key, '0', '-1'));
    else if (type === 'set') all.push(await client.smembers(key));
    else throw new Error(`No way to read ${key}, a ${type}.`);
  }
  await client.quit();
  return JSON.stringify(all);
}

const DISKS: Readonly<Record<string, (dir: string) => Disk | Promise<Disk>>> = {
  fileStore: (dir) => ({ open: () => fileStore({ dir }), dump: () => bytesIn(dir) }),
  sqliteStore: (dir) => ({
    open: () => sqliteStore({ path: path.join(dir, 'db') }),
    dump: () => bytesIn(dir),
  }),
  postgresStore: async () => {
    const { connectionString, stop } = await startPostgres();
    return { open: () => postgresStore({ connectionString }), dump: () => rowsOf(connectionString), stop };
  },
  redisStore: async () => {
    const { url, stop } = await startRedis();
    return { open: () => redisStore({ url }), dump: () => valuesOf(url), stop };
  },
};

/**
 * Some of every guard and action, as real servers take their time: the same in each run, picked by a seed. What every
 * combination hands to its store is looked at in every-sink.test.ts.
 */
const EACH = 3;
let seed = 22;
const below = (n: number): number => {
  seed = (seed * 1_103_515_245 + 12_345) % 2 ** 31;
  return Math.floor((seed / 2 ** 31) * n);
};
const onDisk = Object.keys(GUARDS).flatMap((guard) =>
  REMOVING.flatMap((action) => {
    const all = settings(guard, action).filter(
      (setting) => !GUARDS[guard]!.except?.(setting).includes('journal'),
    );
    return Array.from({ length: Math.min(EACH, all.length) }, () => all.splice(below(all.length), 1)[0]!);
  }),
);
// Whatever was picked: what waited in the inbox before a guard saw it.
const waited = ['pii', 'guardrail, judge'].flatMap((guard) =>
  settings(guard, 'block').filter(({ place }) => place === 'queued' || place === 'steered'),
);
const played = [...onDisk, ...waited];

let stores = 0;
afterAll(() => print(`nothing left on the disks of ${stores} stores after ${played.length} runs in each`));

describe(`what stores hold of ${played.length} runs, inbox included`, () => {
  it('include runs of every guard', () => {
    const guards = new Set(onDisk.map(({ guard }) => guard));
    expect(Object.keys(GUARDS).filter((guard) => !guards.has(guard))).toEqual(['pii, tokenized']);
  });

  it.each(Object.keys(DISKS))('%s', async (kind) => {
    const dir = fs.mkdtempSync(path.join(os.tmpdir(), 'allium-every-sink-'));
    const { open, dump, stop } = await DISKS[kind]!(dir);
    const store = open();
    try {
      const runs = played.map((setting, i) => ({
        ...setting,
        store,
        look: 'disk' as const,
        sessionId: `s${i}`,
      }));
      // Side by side, as servers take their time.
      while (runs.length > 0) await Promise.all(runs.splice(0, 40).map(play));
      const held = await dump();
      expect(held).toContain('And now?');
      expect(MARK.exec(held)?.[0]).toBeUndefined();
      stores++;

      const agent = new Agent({ model: scriptedModel([]), store });
      await agent.session('waiting').followUp('The zebra waits.');
      expect(await dump()).toContain('zebra waits');
      await play({ guard: 'pii', action: 'warn', mode: 'run', place: 'output', store, sessionId: 'warned' });
      expect(await dump()).toContain('zebra.quagga@example.org');
    } finally {
      await store.close?.();
      await stop?.();
      fs.rmSync(dir, { recursive: true, force: true });
    }
  });
});
