// `allium worker` and `allium enqueue`, on a real Redis.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { startRedis } from '../../../../scripts/redis.mjs';
import { cleanEnvironment } from '../../../../scripts/run-command.mjs';
import { program, useProject } from '../../test/project.js';

const here = useProject();
let redis: Awaited<ReturnType<typeof startRedis>>;
beforeAll(async () => {
  redis = await startRedis();
});
afterAll(() => redis.stop());

it('runs what is enqueued, and leaves in order', async () => {
  const env = { REDIS_URL: redis.url };
  const child = spawn(process.execPath, [program, 'worker', '--concurrency', '2'], {
    cwd: here().folder,
    env: { ...cleanEnvironment(), ...env },
  });
  let told = '';
  const ready = new Promise<void>((resolve, reject) => {
    child.stderr.on('data', (data) => {
      told += data;
      if (told.includes('takes jobs for "agent", 2 at a time.')) resolve();
    });
    child.once('close', () => reject(new Error(told)));
  });
  await ready;
  const waited = await here().allium(['enqueue', '--wait', '--session', 'ann', 'add 2 and 3'], { env });
  expect([waited.code, waited.stderr]).toEqual([0, '']);
  expect(waited.stdout).toContain('5');
  expect((await here().allium(['sessions', 'show', 'ann'])).stdout).toContain('add 2 and 3');
  const ids = JSON.parse((await here().allium(['enqueue', '--json', '--key', 'k', 'hi'], { env })).stdout);
  expect(ids).toMatchObject({ state: 'queued', sessionId: expect.stringMatching(/^s_/) });
  const again = await here().allium(['enqueue', '--key', 'k', 'hi'], { env });
  expect(again.stdout).toBe(`${ids.runId}\n`);
  const asked = await here().allium(['enqueue', '--wait', '--redis', redis.url, 'pay 5']);
  expect([asked.code, asked.stderr]).toEqual([5, 'suspended\n']);
  child.kill('SIGTERM');
  const [code] = await once(child, 'close');
  expect([code, told]).toEqual([143, expect.stringContaining('Leaving')]);
});

it('says what is missing', async () => {
  const nowhere = await here().allium(['enqueue', 'hi']);
  expect([nowhere.code, nowhere.stderr]).toEqual([2, expect.stringContaining('--redis')]);
  here().write('allium.toml', '[allium]\nmodel = "offline"\n');
  const forgetful = await here().allium(['worker'], { env: { REDIS_URL: redis.url } });
  expect([forgetful.code, forgetful.stderr]).toEqual([2, expect.stringContaining('store')]);
});
