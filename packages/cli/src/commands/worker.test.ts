// `allium worker` and `allium enqueue`, on a real Redis.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import net from 'node:net';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startRedis } from '../../../../scripts/redis.mjs';
import { cleanEnvironment } from '../../../../scripts/run-command.mjs';
import { program, useProject } from '../../test/project.js';

const here = useProject();
let redis: Awaited<ReturnType<typeof startRedis>>;
beforeAll(async () => {
  redis = await startRedis();
});
afterAll(() => redis.stop());

it('runs what is enqueued, and shuts down cleanly', async () => {
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
  const again = await here().allium(['enqueue', '--key', 'k', '--priority', '0', '--delay', '0', 'hi'], {
    env,
  });
  expect(again.stdout).toBe(`${ids.runId}\n`);
  const asked = await here().allium(['enqueue', '--wait', '--redis', redis.url, 'pay 5']);
  expect([asked.code, asked.stderr]).toEqual([5, 'suspended\n']);
  child.kill('SIGTERM');
  const [code] = await once(child, 'close');
  expect([code, told]).toEqual([143, expect.stringContaining('Leaving')]);
});

it('says why a job failed, and that its port is taken', async () => {
  const taken = net.createServer().listen(0);
  await once(taken, 'listening');
  const { port } = taken.address() as net.AddressInfo;
  const env = { REDIS_URL: redis.url };
  const refused = await here().allium(['worker', '--port', String(port)], { env });
  taken.close();
  expect([refused.code, refused.stderr]).toEqual([
    2,
    expect.stringContaining(`Cannot serve on port ${port}`),
  ]);
  expect(refused.stderr).not.toContain(' at ');
  const child = spawn(process.execPath, [program, 'worker', '--port', String(port)], {
    cwd: here().folder,
    env: { ...cleanEnvironment(), ...env },
  });
  let told = '';
  child.stderr.on('data', (data) => {
    told += data;
  });
  const asked = await here().allium(['enqueue', '--agent', 'nobody', '--wait', 'hi'], { env });
  expect(asked.code).toBe(1);
  await expect.poll(() => told).toMatch(/failed r_\w+: There is no agent "nobody" on this worker\./);
  expect((await fetch(`http://127.0.0.1:${port}/readyz`)).status).toBe(200);
  child.kill('SIGTERM');
  await once(child, 'close');
});

it('says what is missing', async () => {
  for (const option of ['--priority', '--delay']) {
    const wrong = await here().allium(['enqueue', option, '-1', 'hi'], { env: { REDIS_URL: redis.url } });
    expect(wrong.stderr).toContain(`${option}: Expected a whole number from 0, got "-1".`);
  }
  const nothing = await here().allium(['enqueue', ' ', '--redis', 'redis://127.0.0.1:1']);
  expect([nothing.code, nothing.stderr]).toEqual([2, expect.stringContaining('The prompt is empty.')]);
  const nowhere = await here().allium(['enqueue', 'hi']);
  expect([nowhere.code, nowhere.stderr]).toEqual([2, expect.stringContaining('--redis')]);
  here().write('allium.toml', '[allium]\nmodel = "offline"\n');
  const forgetful = await here().allium(['worker'], { env: { REDIS_URL: redis.url } });
  expect([forgetful.code, forgetful.stderr]).toEqual([2, expect.stringContaining('store')]);
});

describe('when Redis is down', () => {
  const nobody = 'redis://127.0.0.1:1';

  it('enqueue says so in time, and what to do', async () => {
    const failed = await here().allium(['enqueue', '--agent', 'agent', 'hi'], { env: { REDIS_URL: nobody } });
    expect(failed.code).toBe(1);
    expect(failed.stderr).toContain('Redis at 127.0.0.1:1');
    expect(failed.stderr).toContain('Check that it runs');
  });

  it.each([
    ['SIGTERM', 143, 143],
    // A worker that is stopped by Ctrl-C has done what it was asked to.
    ['SIGINT', 0, 130],
  ] as const)('worker and enqueue end by %s', async (signal, worker, enqueue) => {
    for (const [expected, ...command] of [
      [worker, 'worker'],
      [enqueue, 'enqueue', '--agent', 'agent', 'hi'],
    ] as const) {
      // Nobody answers there either. It shows when somebody tries.
      const door = net.createServer((socket) => socket.destroy()).listen(0, '127.0.0.1');
      await once(door, 'listening');
      const { port } = door.address() as net.AddressInfo;
      const tried = once(door, 'connection');
      const address = command[0] === 'worker' ? nobody : `redis://127.0.0.1:${port}`;
      const child = spawn(process.execPath, [program, ...command], {
        cwd: here().folder,
        env: { ...cleanEnvironment(), REDIS_URL: address },
      });
      let told = '';
      child.stderr.on('data', (data) => {
        told += data;
      });
      const closed = once(child, 'close');
      if (command[0] === 'worker')
        await expect.poll(() => told).toContain('Redis at 127.0.0.1:1 does not answer');
      else await tried;
      door.close();
      child.kill(signal);
      const began = Date.now();
      const [code] = await closed;
      expect(code, told).toBe(expected);
      expect(Date.now() - began, told).toBeLessThan(20_000);
      expect(told.match(/does not answer/g)?.length ?? 0).toBeLessThanOrEqual(1);
    }
  });

  it('a worker goes on when it is back, and says both', async () => {
    const child = spawn(process.execPath, [program, 'worker'], {
      cwd: here().folder,
      env: { ...cleanEnvironment(), REDIS_URL: redis.url },
    });
    let told = '';
    child.stderr.on('data', (data) => {
      told += data;
    });
    const closed = once(child, 'close');
    const heard = (text: string) => expect.poll(() => told).toContain(text);
    await heard('takes jobs');
    await redis.crash();
    await heard('does not answer. Trying again');
    await heard('answers again.');
    const env = { REDIS_URL: redis.url };
    const waited = await here().allium(['enqueue', '--wait', '--session', 'bob', 'add 2 and 3'], { env });
    expect([waited.code, waited.stdout]).toEqual([0, expect.stringContaining('5')]);
    child.kill('SIGTERM');
    expect((await closed)[0]).toBe(143);
  });
});
