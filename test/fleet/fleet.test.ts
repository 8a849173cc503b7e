// A short run of the fault suite: workers killed and paused, Redis and Postgres restarted, and nothing lost or doubled.

import { fork, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import fs from 'node:fs';
import os from 'node:os';
import { join } from 'node:path';
import { beforeAll, expect, it } from 'vitest';
import { build } from '../../scripts/build.mjs';
import { startPostgres } from '../../scripts/postgres.mjs';
import { startRedis } from '../../scripts/redis.mjs';
import { root } from '../../scripts/repository.mjs';
import { runCommand } from '../../scripts/run-command.mjs';
import { readLines } from '../crash/ledger.mjs';

beforeAll(() => build());

it('finishes every session, loses and doubles nothing, whatever dies meanwhile', async () => {
  const { code, stdout, stderr } = await runCommand(
    process.execPath,
    [join(root, 'test/fleet/run.mjs'), '--no-build', '--quick'],
    { cwd: root },
  );
  const lines = stdout.trimEnd().split('\n');
  expect(lines.at(-2), stdout + stderr).toBe('verdict: ok');
  expect(JSON.parse(lines.at(-1)!)).toMatchObject({
    finished: 12,
    lost: 0,
    doubled: 0,
    repeatedEffects: 0,
    missingCharges: 0,
    failed: 0,
    pauses: 1,
    restarts: 2,
  });
  expect(code).toBe(0);
});

it('the example finishes what a killed worker left behind', async () => {
  const { code, stdout, stderr } = await runCommand(
    process.execPath,
    [join(root, 'examples/fleet/run.mjs')],
    { cwd: root },
  );
  expect(stdout, stderr).toContain('done: Parcel 6 is in Bergen.\n6 done, ');
  expect(code).toBe(0);
});

it('a worker that gets SIGTERM ends by it, and what it did not finish is finished by another, once', async () => {
  const [postgres, redis] = await Promise.all([startPostgres(), startRedis()]);
  const ledger = fs.mkdtempSync(join(os.tmpdir(), 'allium-drain-'));
  fs.mkdirSync(join(ledger, 'charges'));
  const { connectionString } = postgres;
  const { url } = redis;
  const env = { connectionString, url, ledger, turns: 6, latencyMs: 400, concurrency: 4, lockMs: 30_000 };
  const hire = () =>
    fork(join(root, 'test/fleet/worker.mjs'), {
      env: { ...process.env, FLEET: JSON.stringify({ ...env, drainMs: 2000 }) },
      stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
    });
  const { createQueue } = await import('@allium/worker');
  const queue = createQueue({ connection: url });
  const first = hire();
  let second: typeof first | undefined;
  const told: string[] = [];
  first.on('message', ({ type }: { type: string }) => told.push(type));
  try {
    const jobs = await Promise.all(
      [1, 2, 3, 4].map((n) => queue.enqueue('fleet', 'Book.', { sessionId: `drained ${n}` })),
    );
    await expect.poll(() => told.filter((type) => type === 'started').length).toBe(4);
    first.kill('SIGTERM');
    const later = await queue.enqueue('fleet', 'Book.', { sessionId: 'drained 5' });
    const [code, signal] = await once(first, 'exit');
    expect([code, signal]).toEqual([null, 'SIGTERM']);
    // Four runs of six turns take longer than it has: it hands them over, and takes nothing new.
    expect(told.filter((type) => type === 'handed over').length).toBeGreaterThan(0);
    expect(told.filter((type) => type === 'started').length).toBe(4);
    second = hire();
    for (const { runId } of [...jobs, later])
      expect(await queue.finished(runId)).toMatchObject({ status: 'done', text: 'Done after 6 turns.' });
    const booked = readLines(join(ledger, 'effects'))
      .filter(({ tool }) => tool === 'book')
      .map(({ callId }) => callId);
    expect(new Set(booked).size).toBe(booked.length);
    expect(booked.length).toBe(5 * 5);
  } finally {
    first.kill('SIGKILL');
    second?.kill('SIGKILL');
    await queue.close();
    await Promise.all([postgres.stop(), redis.stop()]);
    fs.rmSync(ledger, { recursive: true, force: true });
  }
});

/** May this user make a process the first one of its own world, as a container does? */
const canIsolate = spawnSync('unshare', ['--pid', '--fork', '--mount-proc', 'true']).status === 0;

it.skipIf(!canIsolate)(
  'a worker that is the first process of a container ends on SIGTERM as well',
  async () => {
    const [postgres, redis] = await Promise.all([startPostgres(), startRedis()]);
    const env = { ...process.env, REDIS_URL: redis.url, DATABASE_URL: postgres.connectionString };
    const queue = (await import('@allium/worker')).createQueue({ connection: redis.url });
    const command = ['--pid', '--fork', '--kill-child', '--mount-proc', process.execPath];
    const outside = spawn('unshare', [...command, join(root, 'examples/fleet/worker.mjs')], {
      env,
      stdio: 'ignore',
    });
    try {
      const { runId } = await queue.enqueue('support', 'Where is parcel 1?');
      expect(await queue.finished(runId)).toMatchObject({ status: 'done' });
      const inside = fs.readFileSync(`/proc/${outside.pid}/task/${outside.pid}/children`, 'utf8').trim();
      const told = performance.now();
      process.kill(Number(inside), 'SIGTERM');
      const [code] = await once(outside, 'exit');
      expect(code).toBe(143);
      // Not only when the last idle connection to Postgres is given up, after ten seconds.
      expect(performance.now() - told).toBeLessThan(9000);
    } finally {
      outside.kill('SIGKILL');
      await queue.close();
      await Promise.all([postgres.stop(), redis.stop()]);
    }
  },
);
