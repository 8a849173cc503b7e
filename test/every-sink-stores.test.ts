/** What stores have on their disks when a guardrail removed something. */
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { postgresStore } from '@allium/store-postgres';
import { redisStore } from '@allium/store-redis';
import type { Store } from 'allium';
import { fileStore } from 'allium/stores/file';
import { sqliteStore } from 'allium/stores/sqlite';
import { Redis } from 'ioredis';
import pg from 'pg';
import { describe, expect, it } from 'vitest';
import { startRedis } from '../packages/store-redis/test/redis-server.js';
import { startPostgres } from '../scripts/postgres.mjs';
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

// What every guard's journal holds is looked at above, as it is handed to the store: here one that searches and one that judges.
const onDisk = ['pii', 'guardrail, judge']
  .flatMap((guard) => REMOVING.flatMap((action) => settings(guard, action, ['resumed'])))
  .filter((setting) => !GUARDS[setting.guard]!.except?.(setting).includes('journal'));

describe(`what stores hold of ${onDisk.length} runs, inbox included`, () => {
  it.each(Object.keys(DISKS))('%s', async (kind) => {
    const dir = fs.mkdtempSync(path.join(os.tmpdir(), 'allium-every-sink-'));
    const { open, dump, stop } = await DISKS[kind]!(dir);
    const store = open();
    try {
      const runs = onDisk.map((setting, i) => ({ ...setting, store, sessionId: `s${i}` }));
      // Side by side, as servers take their time.
      while (runs.length > 0) await Promise.all(runs.splice(0, 16).map(play));
      const held = await dump();
      expect(held).toContain('And now?');
      expect(MARK.exec(held)?.[0]).toBeUndefined();
      await play({ guard: 'pii', action: 'warn', mode: 'run', place: 'output', store, sessionId: 'warned' });
      expect(await dump()).toMatch(MARK);
    } finally {
      await store.close?.();
      await stop?.();
      fs.rmSync(dir, { recursive: true, force: true });
    }
  });
});
