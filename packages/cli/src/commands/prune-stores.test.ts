// `allium sessions prune` on real servers.

import { mkdirSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { postgresStore } from '@allium/store-postgres';
import { redisStore } from '@allium/store-redis';
import type { Store } from 'allium';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startPostgres } from '../../../../scripts/postgres.mjs';
import { startRedis } from '../../../../scripts/redis.mjs';
import { root } from '../../../../scripts/repository.mjs';
import { useProject } from '../../test/project.js';

const here = useProject();
let postgres: Awaited<ReturnType<typeof startPostgres>>;
let redis: Awaited<ReturnType<typeof startRedis>>;
beforeAll(async () => {
  [postgres, redis] = await Promise.all([startPostgres(), startRedis()]);
});
afterAll(() => Promise.all([postgres?.stop(), redis?.stop()]));

const STORES = {
  postgres: {
    open: (): Store => postgresStore({ connectionString: postgres.connectionString }),
    config: () => `{ use = "postgres", connectionString = "${postgres.connectionString}" }`,
  },
  redis: {
    open: (): Store => redisStore({ url: redis.url }),
    config: () => `{ use = "redis", url = "${redis.url}" }`,
  },
};

const DAY = 86_400_000;

/** Old sessions of two tenants with one of a sub-agent, an old one that waits, and one of today. */
async function fill(store: Store): Promise<void> {
  const old = Date.now() - 40 * DAY;
  const add = async (id: string, at: number, tenant?: string, waits = false) => {
    const run = { v: 2, at, runId: 'r_1' } as const;
    const end = { ...run, type: 'run_end', status: 'done', stop: { reason: 'final' }, turns: 1 } as const;
    await store.append(id, 0, [
      { ...run, type: 'run_start', plan: [], ...(tenant !== undefined && { tenant }) },
      ...(waits ? [] : [end]),
    ]);
  };
  await add('ancient', old, 'a');
  await add('ancient/r_1.2.0', old, 'a');
  await add('dusty', old, 'b');
  await add('asking', old, undefined, true);
  await add('fresh', Date.now(), 'a');
  await store.post('ancient', { type: 'cancel' });
}

describe.each(Object.entries(STORES))('on %s', (name, { open, config }) => {
  it('deletes what was not used for some time, with all that belongs to it', async () => {
    const scope = join(here().folder, 'node_modules/@allium');
    mkdirSync(scope, { recursive: true });
    symlinkSync(join(root, `packages/store-${name}`), join(scope, `store-${name}`), 'junction');
    here().write('allium.toml', `[allium]\nmodel = "offline"\nstore = ${config()}\n`);
    const store = open();
    await fill(store);
    const prune = async (...flags: string[]) => {
      const { stdout, stderr } = await here().allium([
        'sessions',
        'prune',
        '--json',
        '--older-than',
        ...flags,
      ]);
      expect(stderr).toBe('');
      const { found, deleted } = JSON.parse(stdout);
      return { found: found.toSorted(), deleted: deleted.toSorted() };
    };
    const left = async () => (await store.list()).sessions.map(({ sessionId }) => sessionId).sort();
    expect(await prune('60d', '--yes')).toEqual({ found: [], deleted: [] });
    expect(await prune('30d', '--dry-run')).toEqual({ found: ['ancient', 'dusty'], deleted: [] });
    expect(await left()).toEqual(['ancient', 'ancient/r_1.2.0', 'asking', 'dusty', 'fresh']);
    expect(await prune('30d', '--yes', '--tenant', 'a')).toEqual({
      found: ['ancient'],
      deleted: ['ancient'],
    });
    expect(await left()).toEqual(['asking', 'dusty', 'fresh']);
    expect([
      await store.head('ancient'),
      await store.read('ancient', 1),
      await store.take('ancient', 0),
    ]).toEqual([0, [], []]);
    expect(await prune('30d', '--yes')).toEqual({ found: ['dusty'], deleted: ['dusty'] });
    expect(await prune('30d', '--yes', '--include-open')).toEqual({ found: ['asking'], deleted: ['asking'] });
    expect(await left()).toEqual(['fresh']);
    await store.close?.();
  });
});
