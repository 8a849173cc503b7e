// Eight processes take up a session that was left behind, all at the same moment.

import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import type { Store } from 'allium';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { build } from '../../scripts/build.mjs';
import { verify } from './checks.mjs';
import { readLines } from './ledger.mjs';
import { historyOf, prepare } from './scenario.mjs';
import { openStore, STORES, type StoreAddress, startStore } from './stores.mjs';
import { start } from './trial.mjs';

beforeAll(() => build());

describe.each(STORES)('on the %s store', (kind) => {
  let folder: string;
  let store: Store;
  let address: StoreAddress;
  let stop: () => Promise<void>;

  beforeAll(async () => {
    folder = fs.mkdtempSync(path.join(os.tmpdir(), 'allium-eight-'));
    ({ address, stop } = await startStore(kind, folder));
    store = await openStore(address);
  });
  afterAll(async () => {
    await store?.close?.();
    await stop?.();
    fs.rmSync(folder, { recursive: true, force: true });
  });

  /** One process begins and is killed; then as many as that go on from the same moment. How each ended. */
  async function work(sessionId: string, processes: number) {
    await prepare(store, sessionId);
    const [ledger, acks] = [path.join(folder, `${sessionId}.ledger`), path.join(folder, `${sessionId}.acks`)];
    const task = { store: address, sessionId, ledger, acks, runs: 1 };
    const first = start({ ...task, seed: 0, haltAt: { phase: 'after user message', n: 1 } });
    expect(await first.says('at ')).toBe(true);
    first.child.kill('SIGKILL');
    await first.ended;
    const started = Array.from({ length: processes }, (_, seed) => start({ ...task, seed, barrier: true }));
    await Promise.all(started.map(({ says }) => says('ready')));
    for (const { child } of started) child.stdin.end('!');
    const ends = await Promise.all(started.map(({ ended }) => ended));
    const entries = await store.read(sessionId, 1);
    return {
      ends,
      entries,
      messages: await historyOf(store, sessionId),
      ledger: readLines(ledger),
      acks: readLines(acks),
    };
  }

  it('D11 one goes on, the others get SESSION_CONFLICT, and nothing mixes', async () => {
    const alone = await work('alone', 1);
    expect(alone.ends).toMatchObject([{ code: 0 }]);
    for (let round = 0; round < 3; round++) {
      const together = await work(`together-${round}`, 8);
      // 3: SESSION_CONFLICT. A process that finds the work done has nothing to do.
      expect(together.ends.filter(({ code }) => code !== 0 && code !== 3)).toEqual([]);
      expect(together.ends.filter(({ code }) => code === 0).length).toBeGreaterThan(0);
      expect(together.ends.filter(({ code }) => code === 3).length).toBeGreaterThan(0);
      // Whoever takes over a call that another process has begun says that it is in doubt, and may.
      const snapshots = together.entries.map((_, i) => ({
        entries: together.entries.slice(0, i + 1),
        effects: Number.POSITIVE_INFINITY,
      }));
      expect(verify({ ...together, snapshots }, alone).violations).toEqual([]);
    }
  });
});
