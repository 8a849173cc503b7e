// What becomes of jobs when the parts around them are full, stand still, or don't fit together.

import { Agent, defineMiddleware, memoryStore, type Store, textOf, tool } from 'allium';
import { approval } from 'allium/middleware/approval';
import { failWith, scriptedModel, text, toolCalls } from 'allium/testing';
import type { Redis } from 'ioredis';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { z } from 'zod';
import { storeWith } from '../../../test/run-checks.js';
import { useFleets } from '../test/fleet.js';
import { openBackend } from './options.js';

const { fleet, redis: server } = useFleets();

const agent = () => new Agent({ model: scriptedModel([text('Done.')], { repeat: true }) });

/** A tool whose call waits until it is let go, and how often it was called. */
function held() {
  let letGo = (): void => {};
  let begin = (): void => {};
  const begun = new Promise<void>((resolve) => {
    begin = resolve;
  });
  const free = new Promise<void>((resolve) => {
    letGo = resolve;
  });
  const calls: string[] = [];
  const book = tool({
    name: 'book',
    description: 'Books, and cannot be undone.',
    input: z.object({}),
    async execute(_args, { toolCall }) {
      calls.push(toolCall.id);
      begin();
      await free;
      return 'booked';
    },
  });
  const model = scriptedModel([toolCalls({ name: 'book', args: {}, id: 'c' }), text('Booked.')]);
  return { agent: new Agent({ model, tools: [book] }), begun, letGo, calls };
}

describe('a Redis that is full', () => {
  it('is what callers are told, and what was there is worked on when there is room again', async () => {
    const { queue, work, redis, store, errors } = fleet();
    const { agent: booking, begun, letGo, calls } = held();
    await work({ a: booking }, { lockMs: 400 });
    const { runId, sessionId } = await queue.enqueue('a', 'Book.');
    await begun;
    await redis.config('SET', 'maxmemory', '1');
    try {
      await expect(queue.enqueue('a', 'More.')).rejects.toMatchObject({
        code: 'QUEUE_FULL',
        message: expect.stringContaining('maxmemory'),
      });
      await expect(queue.enqueue('a', 'More.', { delayMs: 5 })).rejects.toMatchObject({ code: 'QUEUE_FULL' });
      // The run ends meanwhile: Redis can't be told, the journal can.
      letGo();
      await expect
        .poll(async () => (await store.read(sessionId, 1)).at(-1))
        .toMatchObject({ type: 'run_end', status: 'done' });
    } finally {
      await redis.config('SET', 'maxmemory', '0');
    }
    expect(await queue.finished(runId)).toMatchObject({ status: 'done', text: 'Booked.' });
    expect(calls).toEqual(['c']);
    expect(errors.length).toBeGreaterThan(0);
    expect((await queue.metrics()).waiting).toBe(0);
  });
});

it('a job whose time has come is filed later if Redis refuses it at first', async () => {
  const { queue, work, redis } = fleet();
  const { runId } = await queue.enqueue('a', 'Later.', { delayMs: 1 });
  const record = `{${queue.prefix}}:q:i:${runId}`;
  await redis.rename(record, `${record} aside`);
  // Not what it expects there.
  await redis.set(record, 'text');
  await work({ a: new Agent({ model: scriptedModel([text('Now.')]) }) });
  const tries = `{${queue.prefix}}:later:${runId}`;
  await expect.poll(async () => Number(await redis.hget(tries, 'atm'))).toBe(1);
  await redis.rename(`${record} aside`, record);
  expect(await queue.finished(runId)).toMatchObject({ status: 'done', text: 'Now.' });
});

describe('a failed job that is sent back', () => {
  /** A job that failed, and a worker on which it would work now. */
  async function failed() {
    const on = fleet();
    const bad = Object.assign(new Error('no such model'), { status: 404 });
    await on.work(
      { a: new Agent({ model: scriptedModel([failWith(bad), text('Well.')]) }) },
      { lockMs: 400 },
    );
    const { runId } = await on.queue.enqueue('a', 'Hi.', { sessionId: 's' });
    expect(await on.queue.finished(runId)).toMatchObject({ status: 'failed' });
    return { ...on, runId, keys: `{${on.queue.prefix}}:` };
  }

  it('before its worker could record the end has its place in the session', async () => {
    const { queue, redis, runId, keys } = await failed();
    await redis.hset(`${keys}q:i:${runId}`, 'st', 'a');
    await redis.hdel(`${keys}q:i:${runId}`, 'res');
    await redis.lpush(`${keys}q:s:s`, runId);
    expect(await queue.redrive(runId)).toBe(1);
    expect(await queue.finished(runId)).toMatchObject({ status: 'done', text: 'Well.' });
    expect(await queue.isBusy('s')).toBe(false);
  });

  it('is not ended by what its worker records late', async () => {
    const { queue, redis, runId, keys } = await failed();
    // No place for it yet.
    await redis.set(`${keys}q:room`, 0);
    await queue.redrive(runId);
    const { turns, close } = openBackend({ connection: server().url, prefix: queue.prefix });
    await turns.finish(runId, { status: 'failed', runId, sessionId: 's', text: '' }, {});
    await close();
    await redis.set(`${keys}q:room`, 10);
    expect(await queue.finished(runId)).toMatchObject({ status: 'done', text: 'Well.' });
  });

  it('is not lost if that breaks off in the middle', async () => {
    const { queue, redis, runId, keys } = await failed();
    // BullMQ doesn't remove a locked job.
    await redis.set(`${keys}runs:${runId}:lock`, 'somebody');
    await expect(queue.redrive(runId)).rejects.toThrow();
    await redis.del(`${keys}runs:${runId}:lock`);
    // Long ago, for those who look for what got lost.
    await redis.zadd(`${keys}q:adm`, 0, runId);
    expect(await queue.finished(runId)).toMatchObject({ status: 'done', text: 'Well.' });
  });

  it('and spoken to once more is followed by one more run', async () => {
    const { queue, work, redis, store } = fleet();
    let fails = true;
    const speaks = defineMiddleware({
      name: 'speaks',
      async wrapModel(_ctx, next) {
        if (!fails) return next();
        fails = false;
        await queue.enqueue('a', 'One.', { sessionId: 's', whenBusy: 'follow-up' });
        throw Object.assign(new Error('no such model'), { status: 404 });
      },
    });
    const model = scriptedModel([text('Heard.')], { repeat: true });
    const agent = new Agent({ model, middleware: [speaks] });
    const first = await work({ a: agent });
    const { runId } = await queue.enqueue('a', 'Hi.', { sessionId: 's' });
    await expect.poll(async () => (await queue.metrics()).ended).toEqual({ failed: 1, done: 1 });
    await first.close();
    // As if there were a worker: BullMQ gets the job.
    await redis.set(`{${queue.prefix}}:q:room`, 1);
    await queue.redrive(runId);
    expect(await queue.enqueue('a', 'Two.', { sessionId: 's', whenBusy: 'follow-up' })).toMatchObject({
      state: 'said',
    });
    fails = true;
    await work({ a: agent });
    // Between the two, the session is not busy for a moment.
    await expect
      .poll(async () => (await queue.metrics()).ended, { timeout: 9000 })
      .toEqual({ failed: 2, done: 2 });
    expect(await queue.isBusy('s')).toBe(false);
    expect(await agent.session('s', { store }).queued()).toEqual([]);
  });

  it('by several people at once runs once', async () => {
    const { queue, another, runId } = await failed();
    const counts = await Promise.all([queue.redrive(runId), another().redrive(), queue.redrive(runId)]);
    expect(counts.reduce((a, b) => a + b)).toBe(1);
    expect(await queue.finished(runId)).toMatchObject({ status: 'done', text: 'Well.' });
    expect((await queue.metrics()).ended).toEqual({ failed: 1, done: 1 });
  });
});

it('what was said to a job that failed is answered if its worker died before it looked for messages', async () => {
  const { queue, work, redis, store } = fleet();
  const bad = Object.assign(new Error('no such model'), { status: 404 });
  const agent = new Agent({ model: scriptedModel([failWith(bad), text('Hm.'), text('Here.')]) });
  await work({ a: agent }, { lockMs: 400 });
  const { runId } = await queue.enqueue('a', 'Hi.', { sessionId: 's' });
  await queue.finished(runId);
  await agent.session('s', { store }).followUp('Wait!');
  const keys = `{${queue.prefix}}:q:`;
  // As it was before the end was recorded, long ago.
  await redis
    .multi()
    .hset(`${keys}i:${runId}`, { st: 'a', sp: 1 })
    .hdel(`${keys}i:${runId}`, 'res')
    .lpush(`${keys}s:s`, runId)
    .zadd(`${keys}in`, 0, runId)
    .exec();
  await expect.poll(async () => (await queue.metrics()).ended.done, { timeout: 9000 }).toBe(1);
  expect((await agent.session('s', { store }).messages()).map(textOf)).toContain('Here.');
});

describe('a Redis that stands still in the middle', () => {
  afterEach(() => server().continue());

  it('of a run, of somebody who follows it, and of an answer: all go on, and nothing is done twice', async () => {
    const { queue, work, another } = fleet();
    const { agent: booking, begun, letGo, calls } = held();
    const asks = new Agent({
      model: scriptedModel([toolCalls({ name: 'look', args: {}, id: 'l' }), text('Seen.')]),
      tools: [tool({ name: 'look', description: 'Looks.', input: z.object({}), execute: () => 'seen' })],
      middleware: [approval({ policy: { look: 'ask' } })],
    });
    await work({ a: booking, asks }, { lockMs: 400 });
    const asked = await queue.enqueue('asks', 'Look.');
    const { pending } = await queue.finished(asked.runId);
    const { runId, sessionId } = await queue.enqueue('a', 'Book.');
    const types: string[] = [];
    const followed = (async () => {
      for await (const { event } of another().join(sessionId)) types.push(event.type);
    })();
    await begun;
    const impatient = another({ timeoutMs: 200 });
    await impatient.metrics();
    server().pause();
    await expect(impatient.answer(pending![0]!.id, { type: 'approve' })).rejects.toMatchObject({
      code: 'QUEUE_UNREACHABLE',
    });
    letGo();
    await new Promise((resolve) => setTimeout(resolve, 900));
    server().continue();
    await queue.answer(pending![0]!.id, { type: 'approve' }).catch(() => undefined);
    expect(await queue.finished(asked.runId)).toMatchObject({ status: 'done', text: 'Seen.' });
    expect(await queue.finished(runId)).toMatchObject({ status: 'done' });
    await followed;
    expect(calls).toEqual(['c']);
    expect(types.filter((type) => type === 'agent_end')).toEqual(['agent_end']);
  });
});

describe('a Redis that has lost its last writes', () => {
  /** Everything of a queue, to be put back. */
  async function copied(redis: Redis, prefix: string) {
    const keys = await redis.keys(`{${prefix}}:*`);
    const values = await Promise.all(keys.map((key) => redis.dumpBuffer(key)));
    return async () => {
      await redis.del(...(await redis.keys(`{${prefix}}:*`)));
      await Promise.all(keys.map((key, i) => redis.restore(key, 0, values[i]!)));
    };
  }

  const inner = memoryStore();
  const stores: Record<string, () => Store> = {
    'a new session': memoryStore,
    'a store without `tail`': () => storeWith(inner, { tail: undefined }),
  };
  for (const [what, store] of Object.entries(stores))
    it(`hands out a job again that has ended: nothing is said or done twice (${what})`, async () => {
      const { queue, work, redis, store: used, events } = fleet({ store: store() });
      const { agent: booking, letGo, calls } = held();
      const { runId, sessionId } = await queue.enqueue('a', 'Book.');
      const putBack = await copied(redis, queue.prefix);
      letGo();
      await work({ a: booking }, { lockMs: 400 });
      await queue.finished(runId);
      const before = await used.read(sessionId, 1);
      await expect.poll(() => events.map(({ type }) => type)).toEqual(['started', 'ended']);
      await putBack();
      await expect
        .poll(() => events.map(({ type }) => type), { timeout: 10_000 })
        .toEqual(['started', 'ended', 'started', 'ended']);
      expect(await queue.finished(runId)).toMatchObject({ status: 'done', text: 'Booked.' });
      expect(await used.read(sessionId, 1)).toEqual(before);
      expect(calls).toEqual(['c']);
    });

  it('hands out a job again in a long session, just after a snapshot', async () => {
    const look = tool({ name: 'look', description: 'Looks.', input: z.object({}), execute: () => 'seen' });
    const turns = Array.from({ length: 400 }, () => toolCalls({ name: 'look', args: {} }));
    const model = scriptedModel([...turns, text('Seen.'), text('Hello.')]);
    const { queue, work, redis, store, events } = fleet();
    const { runId } = await queue.enqueue('a', 'Look.', { sessionId: 's' });
    const putBack = await copied(redis, queue.prefix);
    await work({ a: new Agent({ model, tools: [look], limits: { turns: 1000 } }) }, { lockMs: 400 });
    await queue.finished(runId);
    const { snapshot, entries } = await store.tail!('s');
    expect(snapshot).toBeDefined();
    expect(entries.some(({ type }) => type === 'run_start')).toBe(false);
    await expect.poll(() => events.length).toBe(2);
    await putBack();
    await expect.poll(() => events.length, { timeout: 10_000 }).toBe(4);
    expect(await queue.finished(runId)).toMatchObject({ status: 'done', text: 'Seen.' });
    expect(model.requests.length).toBe(401);
    // Jobs that are new don't read all of it.
    const read = vi.spyOn(store, 'read');
    const next = await queue.enqueue('a', 'Hello.', { sessionId: 's' });
    expect(await queue.finished(next.runId)).toMatchObject({ text: 'Hello.' });
    expect(read.mock.calls.filter(([, from]) => from === 1).length).toBe(1);
  });

  it('hands out a job that still runs: it goes on elsewhere, and only one of the two writes', async () => {
    const { queue, work, redis, store, events } = fleet();
    const { agent: booking, begun, letGo, calls } = held();
    const { runId, sessionId } = await queue.enqueue('a', 'Book.');
    const putBack = await copied(redis, queue.prefix);
    await work({ a: booking }, { lockMs: 400 });
    await begun;
    await putBack();
    await expect
      .poll(() => events.filter(({ type }) => type === 'started').length, { timeout: 10_000 })
      .toBeGreaterThan(1);
    letGo();
    expect(await queue.finished(runId)).toMatchObject({ status: 'done', text: 'Booked.' });
    expect(calls).toEqual(['c']);
    const starts = (await store.read(sessionId, 1)).filter(({ type }) => type === 'run_start');
    expect(starts.length).toBe(1);
  });
});

it('whoever waits for a job that Redis has lost is told', async () => {
  const { queue, redis } = fleet();
  const { runId } = await queue.enqueue('a', 'Hi.');
  const waiting = queue.finished(runId);
  await redis.del(...(await redis.keys(`{${queue.prefix}}:*`)));
  await expect(waiting).rejects.toMatchObject({ code: 'SESSION_UNKNOWN' });
});

describe('a job that somebody removes from BullMQ', () => {
  it('while it waits for another try ends, and its session goes on', async () => {
    const { queue, work, redis, events } = fleet({ retry: { attempts: 3, delayMs: 60_000 } });
    const busy = Object.assign(new Error('overloaded'), { status: 503 });
    await work({ a: new Agent({ model: scriptedModel([failWith(busy), text('Next.')]) }) }, { lockMs: 400 });
    const { runId } = await queue.enqueue('a', 'Hi.', { sessionId: 's' });
    await expect.poll(() => events.map(({ type }) => type)).toEqual(['started', 'retry']);
    const keys = `{${queue.prefix}}:`;
    await expect.poll(() => redis.zcard(`${keys}runs:delayed`)).toBe(1);
    await redis.del(`${keys}runs:${runId}`);
    await redis.zrem(`${keys}runs:delayed`, runId);
    // Long ago, for those who look for what got lost.
    await redis.zadd(`${keys}q:off`, 0, runId);
    expect(await queue.finished(runId)).toMatchObject({ status: 'failed' });
    const next = await queue.enqueue('a', 'Hi again.', { sessionId: 's' });
    expect(await queue.finished(next.runId)).toMatchObject({ status: 'done' });
  });
});

it('a cancellation that its worker did not hear, because its connection was lost, reaches it with the next heartbeat', async () => {
  const { queue, work, redis } = fleet();
  const { agent: booking, begun } = held();
  await work({ a: booking }, { lockMs: 400 });
  const { runId } = await queue.enqueue('a', 'Book.');
  await begun;
  await redis.call('CLIENT', 'KILL', 'TYPE', 'pubsub');
  expect(await queue.cancel(runId, 'Enough.')).toBe(true);
  expect(await queue.finished(runId)).toMatchObject({
    status: 'aborted',
    stop: { reason: 'aborted', message: expect.stringContaining('Enough.') },
  });
  expect(await redis.exists(`{${queue.prefix}}:q:told`)).toBe(0);
});

describe('a worker of another version', () => {
  it('without the agent says which it has, with a code, and another worker can take the job back', async () => {
    const { queue, work } = fleet();
    const old = await work({ a: agent() });
    const { runId } = await queue.enqueue('b', 'Hi.');
    expect(await queue.finished(runId)).toMatchObject({
      status: 'failed',
      error: { code: 'AGENT_UNKNOWN', message: expect.stringContaining('It has: a') },
    });
    expect(await queue.failed()).toMatchObject([{ runId, agent: 'b' }]);
    await old.close();
    await work({ a: agent(), b: agent() });
    expect(await queue.redrive(runId)).toBe(1);
    expect(await queue.finished(runId)).toMatchObject({ status: 'done', text: 'Done.' });
  });

  it('without a middleware that a run began with does not go on with it; one that has it does', async () => {
    const { queue, work } = fleet();
    const look = tool({ name: 'look', description: 'Looks.', input: z.object({}), execute: () => 'seen' });
    const model = () => scriptedModel([toolCalls({ name: 'look', args: {}, id: 'l' }), text('Seen.')]);
    const guard = defineMiddleware({ name: 'guard', beforeModel: () => {} });
    const ask = approval({ policy: { look: 'ask' } });
    const whole = () => new Agent({ model: model(), tools: [look], middleware: [guard, ask] });
    const first = await work({ a: whole() });
    const { runId } = await queue.enqueue('a', 'Look.');
    const { pending } = await queue.finished(runId);
    await first.close();
    const lacking = await work({ a: new Agent({ model: model(), tools: [look], middleware: [ask] }) });
    await queue.answer(pending![0]!.id, { type: 'approve' });
    const refused = await queue.finished(runId);
    expect(refused).toMatchObject({ status: 'failed', error: { code: 'PLAN_MISMATCH' } });
    await lacking.close();
    const seen = scriptedModel([text('Seen.')]);
    await work({ a: new Agent({ model: seen, tools: [look], middleware: [guard, ask] }) });
    const [failed] = await queue.failed();
    expect(await queue.redrive(failed!.runId)).toBe(1);
    expect(await queue.finished(runId)).toMatchObject({ status: 'done', text: 'Seen.' });
  });
});

describe('a session that was deleted', () => {
  it('before its job began is begun anew', async () => {
    const { queue, work, store } = fleet();
    const { runId, sessionId } = await queue.enqueue('a', 'Hi.');
    await store.delete(sessionId);
    await work({ a: agent() });
    expect(await queue.finished(runId)).toMatchObject({ status: 'done' });
  });

  it('while it waited for an answer has no question any more', async () => {
    const { queue, work, store } = fleet();
    const look = tool({ name: 'look', description: 'Looks.', input: z.object({}), execute: () => 'seen' });
    const model = scriptedModel([toolCalls({ name: 'look', args: {} }), text('Seen.')]);
    await work({
      a: new Agent({ model, tools: [look], middleware: [approval({ policy: { look: 'ask' } })] }),
    });
    const { runId, sessionId } = await queue.enqueue('a', 'Look.');
    const { pending } = await queue.finished(runId);
    await store.delete(sessionId);
    await expect(queue.answer(pending![0]!.id, { type: 'approve' })).rejects.toMatchObject({
      code: 'REQUEST_UNKNOWN',
    });
    expect(await store.head(sessionId)).toBe(0);
  });

  it('while its run was under way is not made again by a retry: the job fails, once, and says so', async () => {
    const { queue, work, store } = fleet();
    const { agent: booking, begun, letGo, calls } = held();
    await work({ a: booking });
    const { runId, sessionId } = await queue.enqueue('a', 'Book.');
    await begun;
    await store.delete(sessionId);
    letGo();
    expect(await queue.finished(runId)).toMatchObject({
      status: 'failed',
      error: { code: 'SESSION_UNKNOWN', message: expect.stringContaining('was deleted') },
    });
    expect(calls).toEqual(['c']);
    expect(await store.head(sessionId)).toBe(0);
  });
});
