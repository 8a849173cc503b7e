// What callers and workers do while Redis does not answer.

import { Agent, defineMiddleware, memoryStore, textOf } from 'allium';
import { scriptedModel, text } from 'allium/testing';
import { afterEach, describe, expect, it } from 'vitest';
import { storeWith } from '../../../test/run-checks.js';
import { useFleets } from '../test/fleet.js';
import { type ConnectionChange, createQueue, createWorker } from './index.js';

const { fleet, redis: server } = useFleets();
const agent = () => new Agent({ model: scriptedModel([text('Done.')], { repeat: true }) });
const open: { close(): Promise<void> }[] = [];
afterEach(async () => {
  server().continue();
  await Promise.all(open.splice(0).map((one) => one.close()));
});
const keep = <T extends { close(): Promise<void> }>(one: T): T => {
  open.push(one);
  return one;
};

/** Every call of a queue that asks Redis. */
const calls = (queue: ReturnType<typeof createQueue>): Record<string, () => Promise<unknown>> => ({
  enqueue: () => queue.enqueue('a', 'Hi.'),
  delayed: () => queue.enqueue('a', 'Hi.', { delayMs: 1000 }),
  keyed: () => queue.enqueue('a', 'Hi.', { idempotencyKey: 'k' }),
  scheduled: () => queue.enqueue('a', 'Hi.', { schedule: { id: 's', everyMs: 1000 } }),
  continue: () => queue.continue('a', { sessionId: 's' }),
  resume: () => queue.resume('a', { sessionId: 's' }),
  answer: () => queue.answer('r.1', { type: 'approve' }),
  stop: () => queue.stop('s'),
  isBusy: () => queue.isBusy('s'),
  outcome: () => queue.outcome('r'),
  finished: () => queue.finished('r'),
  failed: () => queue.failed(),
  redrive: () => queue.redrive(),
  unschedule: () => queue.unschedule('s'),
  setRateLimit: () => queue.setRateLimit('t', { max: 1, perMs: 1 }),
  metrics: () => queue.metrics(),
  join: async () => queue.join('s').next(),
});

async function refuses(queue: ReturnType<typeof createQueue>): Promise<void> {
  const all = Object.entries(calls(queue));
  const ends = await Promise.allSettled(all.map(([, call]) => call()));
  for (const [i, end] of ends.entries())
    expect(end, all[i]![0]).toMatchObject({
      status: 'rejected',
      reason: { code: 'QUEUE_UNREACHABLE', message: expect.stringContaining('Check that it runs') },
    });
}

describe('a queue', () => {
  it('says in time that there is no Redis, whatever is asked, and closes', async () => {
    const queue = createQueue({
      connection: 'redis://127.0.0.1:1',
      store: memoryStore(),
      timeoutMs: 200,
    });
    await refuses(queue);
    await queue.close();
  });

  it('says in time that Redis stands still, and goes on when it does', async () => {
    const { another } = fleet();
    const queue = another({ timeoutMs: 200 });
    const answers = () =>
      expect.poll(() => queue.metrics().catch(() => undefined)).toMatchObject({ workers: 0 });
    await answers();
    server().pause();
    await refuses(queue);
    server().continue();
    await answers();
  });

  it('says a message once, though Redis stood still just after it was said, and the caller tries again', async () => {
    const inner = memoryStore();
    let stands = false;
    const store = storeWith(inner, {
      post(...args) {
        if (stands) server().pause();
        stands = false;
        return inner.post(...args);
      },
    });
    const { another, work } = fleet({ store });
    const queue = another({ timeoutMs: 500 });
    let letGo = (): void => {};
    const free = new Promise<void>((resolve) => {
      letGo = resolve;
    });
    const holding = defineMiddleware({ name: 'holding', beforeModel: () => free });
    const held = new Agent({
      model: scriptedModel([text('Done.')], { repeat: true }),
      middleware: [holding],
    });
    await work({ a: held });
    const { runId } = await queue.enqueue('a', 'Go.', { sessionId: 's' });
    await expect.poll(() => inner.head('s')).toBeGreaterThan(0);
    const hurry = () =>
      queue.enqueue('a', 'Hurry.', { sessionId: 's', whenBusy: 'steer', idempotencyKey: 'hurry' });
    stands = true;
    await expect(hurry()).rejects.toMatchObject({ code: 'QUEUE_UNREACHABLE' });
    server().continue();
    // As long as another caller would wait for this one.
    await new Promise((resolve) => setTimeout(resolve, 11_000));
    expect(await hurry()).toMatchObject({ state: 'known', runId });
    letGo();
    await queue.finished(runId);
    await expect.poll(() => queue.isBusy('s')).toBe(false);
    const messages = await held.session('s', { store }).messages();
    expect(messages.filter((one) => textOf(one) === 'Hurry.').length).toBe(1);
  }, 60_000);

  it('takes a time that makes sense', () => {
    expect(() => createQueue({ connection: 'redis://127.0.0.1:1', timeoutMs: 0 })).toThrow('timeoutMs');
  });
});

describe('a worker', () => {
  it('goes on when Redis was restarted, and says what became of the connection', async () => {
    const changes: ConnectionChange[] = [];
    const { queue, work } = fleet();
    await work({ a: agent() }, { onConnection: (change) => void changes.push(change) });
    const before = await queue.enqueue('a', 'Hi.');
    await queue.finished(before.runId);
    await server().crash();
    const after = await queue.enqueue('a', 'Hi.');
    expect(await queue.finished(after.runId)).toMatchObject({ status: 'done' });
    expect(changes.map(({ state }) => state)).toEqual(['lost', 'back']);
    expect(changes[0]!.address).toMatch(/^127\.0\.0\.1:\d+$/);
  });

  it('closes, also when there never was a Redis', async () => {
    const changes: string[] = [];
    const worker = createWorker({
      agents: agent(),
      store: memoryStore(),
      connection: 'redis://127.0.0.1:1',
      drainOn: [],
      onConnection: ({ state }) => void changes.push(state),
    });
    await expect.poll(() => changes).toEqual(['lost']);
    expect(await worker.health()).toMatchObject({ ready: false, down: ['redis'] });
    await worker.close();
    expect(changes).toEqual(['lost']);
  });

  it('closes while Redis stands still', async () => {
    const { work } = fleet();
    const worker = await work({ a: agent() }, { drainMs: 100 });
    keep(worker);
    server().pause();
    await worker.close();
  });
});
