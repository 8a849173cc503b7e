/** Limits, budgets and caches that several processes share, on a real Redis. */
import { type ChildProcess, spawn } from 'node:child_process';
import path from 'node:path';
import { createInterface } from 'node:readline';
import { Redis } from 'ioredis';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { build } from '../../../scripts/build.mjs';
import { type RedisServer, startRedis } from '../test/redis-server.js';

let server: RedisServer;
let redis: Redis;
beforeAll(async () => {
  await build();
  server = await startRedis();
  redis = new Redis(server.url);
});
afterAll(async () => {
  await redis?.quit();
  await server?.stop();
});

interface Report {
  /** Calls of the model. */
  readonly calls: number;
  /** How runs ended: reasons and codes. */
  readonly ends: Readonly<Record<string, number>>;
  /** How often a call had to wait. */
  readonly waits: number;
}

/** Two processes that begin at the same moment. */
async function two(backend: string, runs: number): Promise<readonly Report[]> {
  const prefix = `${backend.replaceAll(' ', '-')}-${Date.now()}`;
  const children = [another(backend, prefix, runs), another(backend, prefix, runs)];
  await Promise.all(children.map(({ ready }) => ready));
  for (const { child } of children) child.stdin!.end('\n');
  return Promise.all(children.map(({ report }) => report));
}

function another(backend: string, prefix: string, runs: number) {
  const file = path.join(import.meta.dirname, '../test/backends-child.mjs');
  const child: ChildProcess = spawn(process.execPath, [file, backend, server.url, prefix, String(runs)], {
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  const lines = createInterface({ input: child.stdout! })[Symbol.asyncIterator]();
  const line = async (): Promise<string> => {
    const { value, done } = await lines.next();
    if (done) throw new Error(`The process for ${backend} ended without a word.`);
    return value as string;
  };
  const ready = line();
  const report = ready.then(line).then((text) => JSON.parse(text) as Report);
  return { child, ready, report };
}

const sum = (reports: readonly Report[], end: string) =>
  reports.reduce((total, { ends }) => total + (ends[end] ?? 0), 0);

describe('two processes', () => {
  it('share a rate limit through rate-limiter-flexible: ten calls in all, and the rest refused', async () => {
    const reports = await two('rate-limit', 12);
    expect(sum(reports, 'final')).toBe(10);
    expect(sum(reports, 'RATE_LIMITED')).toBe(14);
    expect(reports.reduce((calls, report) => calls + report.calls, 0)).toBe(10);
  });

  it('wait for each other if the limit says so, and all get their turn', async () => {
    const reports = await two('rate-limit that waits', 6);
    expect(sum(reports, 'final')).toBe(12);
    expect(reports.reduce((waits, report) => waits + report.waits, 0)).toBeGreaterThanOrEqual(2);
  });

  it('share a budget: one dollar is spent once, and nothing stays set aside', async () => {
    const reports = await two('budget', 12);
    expect(sum(reports, 'final')).toBe(10);
    expect(sum(reports, 'max_cost')).toBe(14);
    const [key] = await redis.keys('budget-*:tenant:acme:usd');
    expect(Number(await redis.get(key!))).toBeCloseTo(1);
  });

  it('share a cache through Keyv: what one was answered, the other does not ask', async () => {
    const prefix = `cache-${Date.now()}`;
    const reports: Report[] = [];
    for (let i = 0; i < 2; i++) {
      const { child, ready, report } = another('cache', prefix, 3);
      await ready;
      child.stdin!.end('\n');
      reports.push(await report);
    }
    expect(reports.map(({ calls, ends }) => ({ calls, ends }))).toEqual([
      { calls: 1, ends: { final: 3 } },
      { calls: 0, ends: { final: 3 } },
    ]);
  });
});
