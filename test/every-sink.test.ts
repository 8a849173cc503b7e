/**
 * What a guardrail removes is in no sink, wherever it came in and however the run goes; with `warn` it is in all of them.
 */
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { postgresStore } from '@allium/store-postgres';
import { redisStore } from '@allium/store-redis';
import type { GuardAction, Store } from 'allium';
import { fileStore } from 'allium/stores/file';
import { sqliteStore } from 'allium/stores/sqlite';
import { Redis } from 'ioredis';
import pg from 'pg';
import { describe, expect, it } from 'vitest';
import { startRedis } from '../packages/store-redis/test/redis-server.js';
import { startPostgres } from '../scripts/postgres.mjs';
import {
  GUARDS,
  guardsOf,
  MARK,
  MODES,
  type Mode,
  PLACES,
  POINT_OF,
  play,
  type Setting,
} from './every-sink-setup.js';

const REMOVING = ['redact', 'block', 'stop', 'feedback'] as const;

/** What there is for a guard with this action. */
function settings(guard: string, action: GuardAction, modes: readonly Mode[] = MODES): Setting[] {
  const { actions } = GUARDS[guard]!;
  if (actions && !actions.includes(action)) return [];
  const { on } = guardsOf(guard, action);
  const places = PLACES.filter((place) => on.includes(POINT_OF[place]));
  return modes.flatMap((mode) => places.map((place) => ({ guard, action, mode, place })));
}

const names = Object.keys(GUARDS);
const removing = names.flatMap((guard) => REMOVING.map((action) => settings(guard, action)));
const warning = names.map((guard) => settings(guard, 'warn'));
const groups = [...removing, ...warning].filter((some) => some.length > 0);

describe(`${groups.flat().length} combinations of guard, action, place and way of running`, () => {
  it.each(groups.filter(([first]) => first!.action !== 'warn').map((some) => [titleOf(some), some] as const))(
    '%s: nothing is left in any sink',
    async (_, some) => {
      const leaks: string[] = [];
      for (const setting of some) {
        const { except } = GUARDS[setting.guard]!;
        const marked = (await play(setting)).marked().filter((sink) => !except?.(setting).includes(sink));
        if (marked.length > 0) leaks.push(`${setting.place}, ${setting.mode}: ${marked.join(', ')}`);
      }
      expect(leaks).toEqual([]);
    },
  );

  it.each(groups.filter(([first]) => first!.action === 'warn').map((some) => [titleOf(some), some] as const))(
    '%s: it is where it is without a guard',
    async (_, some) => {
      const missing: string[] = [];
      for (const setting of some) {
        const wanted = (await withoutGuard(setting)).filter((sink) => !keptBack(setting).includes(sink));
        const marked = (await play(setting)).marked();
        const gone = wanted.filter((sink) => !marked.includes(sink));
        if (gone.length > 0) missing.push(`${setting.place}, ${setting.mode}: ${gone.join(', ')}`);
      }
      expect(missing).toEqual([]);
    },
  );

  it('every sink gets the secret where nothing guards it, or the test would see no leak', async () => {
    const reached = new Set<string>();
    for (const setting of settings('contentFilter', 'warn'))
      for (const sink of await withoutGuard(setting)) reached.add(sink);
    expect([...reached].sort()).toEqual([
      'arguments',
      'audit',
      'cache',
      'cassette',
      'errors',
      'events',
      'history',
      'journal',
      'log',
      'observers',
      'requests',
      'requests of the sub-agent',
      'result',
    ]);
  });
});

function titleOf(some: readonly Setting[]): string {
  return `${some[0]!.guard}, ${some[0]!.action} (${some.length})`;
}

const unguarded = new Map<string, Promise<readonly string[]>>();

/** The sinks that have it then: the same for every secret. */
function withoutGuard({ mode, place }: Setting): Promise<readonly string[]> {
  const key = `${mode}, ${place}`;
  const known = unguarded.get(key);
  if (known) return known;
  const made = play({ guard: 'contentFilter', action: 'none', mode, place }).then((sinks) => sinks.marked());
  unguarded.set(key, made);
  return made;
}

/**
 * What is told at once cannot wait for a judge, and cassettes hold nothing of calls under way that guards would have to
 * judge: both is kept back under any guard.
 */
function keptBack({ guard, place }: Setting): readonly string[] {
  const judged = guard === 'guardrail, judge';
  if (place === 'update' || place === 'sub-agent result')
    return judged ? ['cassette', 'observers', 'events', 'result'] : ['cassette'];
  if (!judged) return [];
  if (place === 'tool error') return ['log'];
  return place === 'model error'
    ? ['observers', 'journal', 'log', 'events', 'errors', 'cassette', 'result']
    : [];
}

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
