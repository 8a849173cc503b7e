import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { describe, expect, it } from 'vitest';
import type { NewEntry, Store } from '../../index.js';
import { fileStore } from '../file/index.js';
import { memoryStore } from '../memory/index.js';
import { sqliteStore } from '../sqlite/index.js';
import { prunable, pruneSession } from './index.js';

const start = (at: number, tenant?: string): NewEntry => ({
  v: 2,
  at,
  type: 'run_start',
  runId: 'r_1',
  plan: [],
  ...(tenant !== undefined && { tenant }),
});
const end = (at: number): NewEntry => ({
  v: 2,
  at,
  type: 'run_end',
  runId: 'r_1',
  status: 'done',
  stop: { reason: 'final' },
  turns: 1,
});
const cell = (at: number): NewEntry => ({ v: 2, at, type: 'state', cell: 'c', version: 1, value: 1 });

const folder = () => fs.mkdtempSync(path.join(os.tmpdir(), 'allium-prune-'));
const STORES: Readonly<Record<string, () => Store>> = {
  memory: () => memoryStore(),
  file: () => fileStore({ dir: folder() }),
  sqlite: () => sqliteStore({ path: path.join(folder(), 's.db') }),
};

async function filled(store: Store): Promise<Store> {
  await store.append('old', 0, [start(1, 'a'), end(2)]);
  await store.append('old-b', 0, [start(1, 'b'), end(2)]);
  // The end of its run is far back.
  await store.append('noted', 0, [start(1), end(2), ...Array.from({ length: 50 }, () => cell(3))]);
  await store.append('waiting', 0, [start(1), ...Array.from({ length: 50 }, () => cell(3))]);
  await store.append('new', 0, [start(100), end(200)]);
  await store.append('new/r_1.2.0', 0, [start(1), end(2)]);
  await store.append('old/r_1.2.0', 0, [start(1), end(2)]);
  await store.append('gone/r_1.2.0', 0, [start(1), end(2)]);
  return store;
}

async function ids(store: Store, options: Parameters<typeof prunable>[1]): Promise<string[]> {
  const found: string[] = [];
  for await (const { sessionId } of prunable(store, options)) found.push(sessionId);
  return found.sort();
}

describe.each(Object.entries(STORES))('prunable, %s', (_, open) => {
  it('finds unused sessions, but none that wait or belong to another session', async () => {
    const store = await filled(open());
    expect(await ids(store, { before: 100 })).toEqual(['gone/r_1.2.0', 'noted', 'old', 'old-b']);
    expect(await ids(store, { before: 100, open: true })).toContain('waiting');
    expect(await ids(store, { before: 100, tenant: 'a' })).toEqual(['old']);
    expect(await ids(store, { before: 1 })).toEqual([]);
    await store.close?.();
  });

  it('deletes them with their sub-agents, unless somebody has used them since', async () => {
    const store = await filled(open());
    for await (const info of prunable(store, { before: 100 })) {
      if (info.sessionId === 'noted') await store.append('noted', info.seq, [cell(300)]);
      expect(await pruneSession(store, info)).toBe(info.sessionId !== 'noted');
    }
    const { sessions } = await store.list();
    expect(sessions.map(({ sessionId }) => sessionId).sort()).toEqual([
      'new',
      'new/r_1.2.0',
      'noted',
      'waiting',
    ]);
    await store.close?.();
  });
});

it('prunable refuses anything but a time', async () => {
  await expect(ids(memoryStore(), { before: Number.NaN })).rejects.toThrow('`before`');
});
