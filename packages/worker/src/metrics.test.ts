// What a worker says about itself and about the queue.

import { Agent, memoryStore } from 'allium';
import { failWith, scriptedModel, text } from 'allium/testing';
import { expect, it } from 'vitest';
import { storeWith } from '../../../test/run-checks.js';
import { useFleets } from '../test/fleet.js';

const { fleet } = useFleets();
const done = () => new Agent({ model: scriptedModel([text('Done.')], { repeat: true }) });
const broken = () =>
  new Agent({ model: scriptedModel([failWith(new Error('no such model'))], { repeat: true }) });

it('metrics tell depth, age, delays, tenants, ends by status, failures, workers and places; Prometheus reads the same', async () => {
  const { queue, work } = fleet();
  const early = await queue.enqueue('good', 'One.', { tenant: 'a' });
  const late = await queue.enqueue('good', 'Two.', { tenant: 'b' });
  await queue.enqueue('bad', 'Three.', { tenant: 'b' });
  await queue.enqueue('good', 'Later.', { delayMs: 60_000 });
  await queue.enqueue('good', 'Happy new year.', { schedule: { id: 'yearly', cron: '0 0 1 1 *' } });
  await new Promise((resolve) => setTimeout(resolve, 30));
  const before = await queue.metrics();
  expect(before).toMatchObject({
    waiting: 3,
    running: 0,
    delayed: 2,
    failed: 0,
    tenantsWaiting: 2,
    workers: 0,
    capacity: 0,
    takeovers: 0,
    ended: {},
  });
  expect(before.ageMs).toBeGreaterThanOrEqual(30);
  const worker = await work({ good: done(), bad: broken() }, { concurrency: 4 });
  for (const { runId } of [early, late]) await queue.finished(runId);
  await expect.poll(async () => (await worker.metrics()).failed).toBe(1);
  await expect
    .poll(() => worker.metrics())
    .toMatchObject({
      waiting: 0,
      running: 0,
      ageMs: 0,
      tenantsWaiting: 0,
      workers: 1,
      capacity: 4,
      ended: { done: expect.any(Number), failed: 1 },
    });
  const { ended, delayed } = await worker.metrics();
  const lines = (await worker.prometheus()).split('\n');
  expect(lines).toEqual(
    expect.arrayContaining([
      'allium_queue_waiting 0',
      'allium_queue_running 0',
      `allium_queue_delayed ${delayed}`,
      'allium_queue_failed 1',
      'allium_queue_oldest_seconds 0',
      'allium_queue_tenants_waiting 0',
      'allium_queue_workers 1',
      'allium_queue_capacity 4',
      'allium_queue_takeovers_total 0',
      `allium_queue_ended_total{status="done"} ${ended.done}`,
      'allium_queue_ended_total{status="failed"} 1',
    ]),
  );
  // Every value has a help text and a type before it.
  const names = lines.flatMap((line) => /^(allium_\w+)[ {]/.exec(line)?.[1] ?? []);
  for (const name of names) {
    expect(lines.some((line) => line.startsWith(`# HELP ${name} `))).toBe(true);
    expect(lines.some((line) => line.startsWith(`# TYPE ${name} `))).toBe(true);
  }
});

it('metrics count jobs that wait for another try, as while a provider is down', async () => {
  const { queue, work } = fleet({ retry: { delayMs: 3_600_000, maxDelayMs: 3_600_000 } });
  const down = Object.assign(new Error('overloaded'), { status: 503 });
  const worker = await work({ a: new Agent({ model: scriptedModel([failWith(down)], { repeat: true }) }) });
  const { runId } = await queue.enqueue('a', 'Hi.');
  await queue.enqueue('a', 'Hi.');
  await expect.poll(() => queue.metrics()).toMatchObject({ waiting: 0, running: 0, retrying: 2, failed: 0 });
  expect(await worker.prometheus()).toContain('\nallium_queue_retrying 2\n');
  await queue.cancel(runId);
  await queue.finished(runId);
  await expect.poll(() => queue.metrics()).toMatchObject({ retrying: 1 });
});

it('a worker whose store does not answer is live but not ready, and says what is down', async () => {
  const { work } = fleet();
  let isDown = false;
  const store = storeWith(memoryStore(), {
    head: async () => {
      if (isDown) throw new Error('no connection');
      return 0;
    },
  });
  const worker = await work({ a: done() }, { store });
  expect(await worker.health()).toEqual({ live: true, ready: true, running: 0, draining: false, down: [] });
  isDown = true;
  expect(await worker.health()).toMatchObject({ live: true, ready: false, down: ['store'] });
  isDown = false;
  expect(await worker.health()).toMatchObject({ ready: true, down: [] });
});

it('begins a run at every time that a cron line names, in the time zone it is given', async () => {
  const { queue, work, events } = fleet();
  await work({ a: done() });
  const schedule = { id: 'ticks', cron: '* * * * * *', timeZone: 'Europe/Oslo' };
  expect(await queue.enqueue('a', 'Tick.', { schedule, sessionId: 'clock' })).toMatchObject({
    state: 'scheduled',
  });
  await expect.poll(() => events.filter(({ type }) => type === 'ended').length).toBeGreaterThanOrEqual(2);
  expect(await queue.unschedule('ticks')).toBe(true);
  expect(new Set(events.map(({ sessionId }) => sessionId))).toEqual(new Set(['clock']));
});
