import { Agent, defineMiddleware, memoryStore, textOf, tool } from 'allium';
import { approval } from 'allium/middleware/approval';
import { failWith, scriptedModel, text, toolCalls } from 'allium/testing';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { storeWith } from '../../../test/run-checks.js';
import { type Fleet, useFleets } from '../test/fleet.js';
import type { AgentQueue } from './index.js';
import { openBackend } from './options.js';

const { fleet, redis } = useFleets();

function gate(): { readonly promise: Promise<void>; resolve(): void } {
  let resolve = (): void => {};
  const promise = new Promise<void>((done) => {
    resolve = done;
  });
  return { promise, resolve };
}

/** An agent whose first model call waits until it is let go, and then does what `first` says. */
function held(first: ReturnType<typeof text> = text('Done.')) {
  const [begun, going] = [gate(), gate()];
  const model = scriptedModel([first, text('Again.'), text('And again.')]);
  const waits = defineMiddleware({
    name: 'waits',
    async wrapModel(_ctx, next) {
      begun.resolve();
      await going.promise;
      await next();
    },
  });
  return { agent: new Agent({ model, middleware: [waits] }), begun: begun.promise, letGo: going.resolve };
}

describe('an idempotency key', () => {
  it('says a message to a busy session once, whoever tries again', async () => {
    const { queue, work, store, another } = fleet();
    const { agent, begun, letGo } = held();
    await work({ a: agent });
    const go = { sessionId: 's', idempotencyKey: 'go', whenBusy: 'steer' } as const;
    const one = await queue.enqueue('a', 'Go.', go);
    expect(one.state).toBe('queued');
    await begun;
    // The same call again, now that the session is busy with it.
    expect(await queue.enqueue('a', 'Go.', go)).toEqual({ ...one, state: 'known' });
    const hurry = (on: AgentQueue = queue) =>
      on.enqueue('a', 'Hurry.', { sessionId: 's', idempotencyKey: 'hurry', whenBusy: 'steer' });
    const said = await Promise.all([hurry(), hurry(another()), hurry()]);
    expect(said.map(({ state }) => state).sort()).toEqual(['known', 'known', 'said']);
    expect(new Set(said.map(({ runId }) => runId))).toEqual(new Set([one.runId]));
    letGo();
    await queue.finished(one.runId);
    expect(await hurry()).toMatchObject({ state: 'known', runId: one.runId });
    await expect.poll(() => queue.isBusy('s')).toBe(false);
    const messages = await agent.session('s', { store }).messages();
    expect(messages.filter(({ role }) => role === 'user').map(textOf)).toEqual(['Go.', 'Hurry.']);
  });

  it('is free again if the message could not be said', async () => {
    const inner = memoryStore();
    let down = true;
    const store = storeWith(inner, {
      async post(...args) {
        if (down) throw new Error('The store is down.');
        return inner.post(...args);
      },
    });
    const { queue, work } = fleet({ store });
    const { agent, begun, letGo } = held();
    await work({ a: agent });
    await queue.enqueue('a', 'Go.', { sessionId: 's' });
    await begun;
    const hurry = () =>
      queue.enqueue('a', 'Hurry.', { sessionId: 's', idempotencyKey: 'hurry', whenBusy: 'steer' });
    await expect(hurry()).rejects.toMatchObject({ code: 'STORE_FAILED' });
    down = false;
    expect(await hurry()).toMatchObject({ state: 'said' });
    letGo();
    // Much less than the time for which the key was reserved.
  }, 5000);

  it('makes one job of a delayed one and one for now, and everybody is told its session', async () => {
    const { queue, work, another } = fleet();
    const send = (sessionId: string, delayMs: number) =>
      another().enqueue('a', 'Once.', { sessionId, delayMs, idempotencyKey: 'k' });
    const sent = await Promise.all([send('one', 0), send('two', 20), send('three', 0), send('four', 20)]);
    const { runId, sessionId } = sent[0];
    expect(sent.map((one) => [one.runId, one.sessionId])).toEqual(sent.map(() => [runId, sessionId]));
    expect(sent.filter(({ state }) => state === 'known').length).toBe(3);
    await work({ a: new Agent({ model: scriptedModel([text('.')], { repeat: true }) }) });
    await queue.finished(runId);
    await expect.poll(async () => (await queue.metrics()).delayed).toBe(0);
    expect((await queue.metrics()).ended).toEqual({ done: 1 });
  });

  it('does not file a delayed one whose process died before it had the key, if there is another', async () => {
    const { queue, work, redis } = fleet();
    const keys = `{${queue.prefix}}:q:i:`;
    const orphan = await queue.enqueue('a', 'Once.', { delayMs: 1, idempotencyKey: 'k' });
    const records = await redis.keys(`${keys}*`);
    expect(records.length).toBe(2);
    await redis.del(...records);
    const { runId, state } = await queue.enqueue('a', 'Once.', { delayMs: 1, idempotencyKey: 'k' });
    expect(state).toBe('delayed');
    expect(runId).not.toBe(orphan.runId);
    await work({ a: new Agent({ model: scriptedModel([text('.')], { repeat: true }) }) });
    await queue.finished(runId);
    await expect.poll(async () => (await queue.metrics()).delayed).toBe(0);
    expect((await queue.metrics()).ended).toEqual({ done: 1 });
  });

  it('may be used again after `keepMs`: for another run, even if the last one is in the dead-letter list', async () => {
    const { queue, work } = fleet({ keepMs: 200 });
    const bad = Object.assign(new Error('no such model'), { status: 404 });
    const model = scriptedModel([failWith(bad), text('Tuesday.'), text('Wednesday.'), text('Monday.')]);
    await work({ a: new Agent({ model }) }, { keepMs: 200 });
    const report = async () => {
      const job = await queue.enqueue('a', 'Report.', { idempotencyKey: 'report' });
      expect(job.state).toBe('queued');
      expect(await queue.enqueue('a', 'Report.', { idempotencyKey: 'report' })).toEqual({
        ...job,
        state: 'known',
      });
      const outcome = await queue.finished(job.runId);
      await expect.poll(() => queue.outcome(job.runId)).toBe(undefined);
      return { runId: job.runId, outcome };
    };
    const [monday, tuesday, wednesday] = [await report(), await report(), await report()];
    expect(monday.outcome).toMatchObject({ status: 'failed' });
    expect(tuesday.outcome).toMatchObject({ status: 'done', text: 'Tuesday.' });
    expect(wednesday.outcome).toMatchObject({ status: 'done', text: 'Wednesday.' });
    expect((await queue.failed()).map(({ runId }) => runId)).toEqual([monday.runId]);
    // What is sent back has its key again for as long as anybody knows it.
    expect(await queue.redrive()).toBe(1);
    expect(await queue.enqueue('a', 'Report.', { idempotencyKey: 'report' })).toMatchObject({
      state: 'known',
      runId: monday.runId,
    });
    expect(await queue.finished(monday.runId)).toMatchObject({ text: 'Monday.' });
  });

  it('is known as long as a run waits for an answer, and after it', async () => {
    const { queue, work } = fleet({ keepMs: 500 });
    const book = tool({ name: 'book', description: 'Books.', input: z.object({}), execute: () => 'booked' });
    const model = scriptedModel([toolCalls({ name: 'book', args: {} }), text('Booked.')], { repeat: true });
    await work(
      { a: new Agent({ model, tools: [book], middleware: [approval({ policy: { book: 'ask' } })] }) },
      { keepMs: 500 },
    );
    const ask = () => queue.enqueue('a', 'Book.', { idempotencyKey: 'k' });
    const { runId } = await ask();
    const { pending } = await queue.finished(runId);
    await new Promise((resolve) => setTimeout(resolve, 700));
    expect(await ask()).toMatchObject({ state: 'known', runId });
    await queue.answer(pending![0]!.id, { type: 'approve' });
    await expect.poll(() => queue.outcome(runId)).toMatchObject({ status: 'done' });
    expect(await ask()).toMatchObject({ state: 'known', runId });
    await expect.poll(() => queue.outcome(runId)).toBe(undefined);
    expect(await ask()).toMatchObject({ state: 'queued' });
  });
});

describe('what enqueue cannot do', () => {
  it.each([
    ['agent', '', {}],
    ['tenant', 'a', { tenant: '' }],
    ['tenant', 'a', { tenant: 5 }],
    ['tenant', 'a', { tenant: 'a\0b' }],
    ['sessionId', 'a', { sessionId: 'a\0b' }],
    ['sessionId', 'a', { sessionId: '\ud800' }],
    ['idempotencyKey', 'a', { idempotencyKey: '' }],
    ['idempotencyKey', 'a', { idempotencyKey: 7 }],
    ['metadata', 'a', { metadata: 'text' }],
    ['metadata', 'a', { metadata: { n: 1n } }],
    ['delayMs', 'a', { delayMs: 5, whenBusy: 'steer' }],
    ['whenBusy', 'a', { schedule: { id: 's', everyMs: 5 }, whenBusy: 'follow-up' }],
    ['delayMs', 'a', { schedule: { id: 's', everyMs: 5 }, delayMs: 5 }],
    ['idempotencyKey', 'a', { schedule: { id: 's', everyMs: 5 }, idempotencyKey: 'k' }],
  ])('is refused with the name of the option: %s of %s with %o', async (option, agent, options) => {
    const { queue } = fleet();
    await expect(queue.enqueue(agent, 'Hi.', options as object)).rejects.toMatchObject({
      code: 'INVALID_OPTION',
      message: expect.stringContaining(`\`${option}\``),
    });
    expect(await queue.metrics()).toMatchObject({ waiting: 0, delayed: 0 });
  });

  it('a message that is not JSON is refused', async () => {
    const message = { role: 'user', content: [{ type: 'text', text: 'Hi.' }], metadata: { n: 1n } };
    await expect(fleet().queue.enqueue('a', message as never)).rejects.toMatchObject({
      code: expect.stringMatching(/^INVALID_/),
    });
  });
});

describe('a message that is said to a run', () => {
  it('that fails is answered by another run', async () => {
    const { queue, work, store } = fleet();
    const { agent, begun, letGo } = held(failWith(Object.assign(new Error('bad request'), { status: 400 })));
    await work({ a: agent });
    const { runId } = await queue.enqueue('a', 'Go.', { sessionId: 's' });
    await begun;
    expect(await queue.enqueue('a', 'Wait!', { sessionId: 's', whenBusy: 'follow-up' })).toMatchObject({
      state: 'said',
    });
    letGo();
    expect(await queue.finished(runId)).toMatchObject({ status: 'failed' });
    await expect.poll(async () => (await queue.metrics()).ended).toEqual({ failed: 1, done: 1 });
    expect((await agent.session('s', { store }).messages()).map(textOf)).toContain('Wait!');
  });

  it('is answered if its worker died when the run had ended, before it looked for messages', async () => {
    const { queue, work, store, redis } = fleet();
    const keys = `{${queue.prefix}}:q:`;
    // As if there were a worker: BullMQ gets the job.
    await redis.set(`${keys}room`, 1);
    const { runId } = await queue.enqueue('a', 'Go.', { sessionId: 's' });
    await queue.enqueue('a', 'Wait!', { sessionId: 's', whenBusy: 'follow-up' });
    const res = JSON.stringify({ status: 'done', runId, sessionId: 's', text: 'Done.' });
    await redis
      .multi()
      .hset(`${keys}i:${runId}`, { st: 'f', res })
      .lpop(`${keys}s:s`)
      .zrem(`${keys}in`, runId)
      .exec();
    const agent = new Agent({ model: scriptedModel([text('Here.')]) });
    await work({ a: agent });
    await expect.poll(() => queue.outcome(`${runId}-s`)).toMatchObject({ status: 'done', text: 'Here.' });
    expect((await agent.session('s', { store }).messages()).map(textOf)).toEqual(['Wait!', 'Here.']);
  });

  /** A run that waits for an answer, and was spoken to before. */
  async function spokenTo() {
    const on = fleet();
    const { agent, begun, letGo, heard } = asksFirst();
    await on.work({ a: agent });
    const { runId } = await on.queue.enqueue('a', 'Go.', { sessionId: 's' });
    await begun;
    const said = await on.queue.enqueue('a', 'Wait!', { sessionId: 's', whenBusy: 'follow-up' });
    expect(said).toMatchObject({ state: 'said', runId });
    letGo();
    const { pending } = await on.queue.finished(runId);
    await expect.poll(() => on.queue.isBusy('s')).toBe(false);
    expect(heard()).toBe(0);
    return { ...on, runId, question: pending![0]!.id, heard };
  }

  it('that waits for an answer and is cancelled is answered by another run', async () => {
    const { queue, runId, heard } = await spokenTo();
    expect(await queue.cancel(runId)).toBe(true);
    expect(await queue.finished(runId)).toMatchObject({ status: 'aborted' });
    await expect.poll(heard).toBe(1);
    await expect
      .poll(async () => (await queue.metrics()).ended)
      .toEqual({ suspended: 1, aborted: 1, done: 1 });
  });

  it('that waits for an answer, and fails when it has it, is answered by another run', async () => {
    const { queue, runId, question, heard } = await spokenTo();
    await queue.answer(question, { type: 'reject', reason: 'fail' });
    await expect.poll(() => queue.outcome(runId)).toMatchObject({ status: 'failed' });
    await expect.poll(heard).toBe(1);
  });

  it('that waits, through a job that failed meanwhile, is heard when that run goes on, and nothing else runs', async () => {
    const { queue, runId, question, heard } = await spokenTo();
    const other = await queue.enqueue('nobody', 'Hi.', { sessionId: 's' });
    expect(await queue.finished(other.runId)).toMatchObject({ status: 'failed' });
    await expect.poll(() => queue.isBusy('s')).toBe(false);
    await queue.answer(question, { type: 'approve' });
    await expect.poll(() => queue.outcome(runId)).toMatchObject({ status: 'done', text: 'Here.' });
    expect(heard()).toBe(1);
    expect((await queue.metrics()).ended).toEqual({ suspended: 1, failed: 1, done: 1 });
  });

  it('while that is being cancelled is answered by another run', async () => {
    const on = fleet();
    const { agent, begun, letGo, heard } = asksFirst();
    const worker = await on.work({ a: agent });
    const { queue, redis } = on;
    const { runId } = await queue.enqueue('a', 'Go.', { sessionId: 's' });
    await begun;
    letGo();
    await queue.finished(runId);
    await expect.poll(() => queue.isBusy('s')).toBe(false);
    await worker.close();
    // As if there were a worker: BullMQ gets the job that ends the run.
    await redis.set(`{${queue.prefix}}:q:room`, 1);
    await queue.cancel(runId);
    const said = await queue.enqueue('a', 'Wait!', { sessionId: 's', whenBusy: 'steer' });
    expect(said).toMatchObject({ state: 'said', runId });
    await on.work({ a: agent });
    await expect.poll(heard).toBe(1);
  });

  it('that goes on after an answer names that run, whatever became of the job that brought the answer', async () => {
    const on = fleet();
    const { agent, begun, letGo } = asksFirst();
    const worker = await on.work({ a: agent });
    const { queue, redis } = on;
    const { runId } = await queue.enqueue('a', 'Go.', { sessionId: 's' });
    await begun;
    letGo();
    const { pending } = await queue.finished(runId);
    await expect.poll(() => queue.isBusy('s')).toBe(false);
    await worker.close();
    await redis.set(`{${queue.prefix}}:q:room`, 1);
    await queue.answer(pending![0]!.id, { type: 'reject', reason: 'ask' });
    const said = await queue.enqueue('a', 'Wait!', {
      sessionId: 's',
      whenBusy: 'follow-up',
      idempotencyKey: 'k',
    });
    expect(said).toMatchObject({ state: 'said', runId });
    await on.work({ a: agent });
    const asked = await queue.finished(runId);
    expect(asked).toMatchObject({ status: 'suspended' });
    await queue.answer(asked.pending![0]!.id, { type: 'approve' });
    await expect.poll(() => queue.outcome(said.runId)).toMatchObject({ status: 'done' });
  });
});

/**
 * An agent whose first model call waits until it is let go, and then asks somebody. It fails, asks again or ends, as the
 * answer says. `heard`: how many of its answers know of "Wait!".
 */
function asksFirst() {
  const [begun, going] = [gate(), gate()];
  let heard = 0;
  let failed = false;
  const ask = toolCalls({ name: 'pay', args: {} });
  const model = scriptedModel(
    [
      ({ messages }) => {
        const said = messages.map(textOf);
        if (said.includes('Wait!')) {
          heard++;
          return text('Here.');
        }
        if (said.at(-1)!.includes('fail') && !failed) {
          failed = true;
          return failWith(Object.assign(new Error('bad request'), { status: 400 }));
        }
        return said.length === 1 || said.at(-1)!.includes('ask') ? ask : text('Done.');
      },
    ],
    { repeat: true },
  );
  const pay = tool({ name: 'pay', description: 'Pays.', input: z.object({}), execute: () => 'paid' });
  const waits = defineMiddleware({
    name: 'waits',
    async wrapModel(_ctx, next) {
      begun.resolve();
      await going.promise;
      await next();
    },
  });
  const middleware = [waits, approval({ policy: { pay: 'ask' } })];
  const agent = new Agent({ model, tools: [pay], middleware });
  return { agent, begun: begun.promise, letGo: going.resolve, heard: () => heard };
}

it('a rate that is changed or removed holds at once, for those who wait for the old one, too', async () => {
  const { queue, work } = fleet({ rateLimits: { '*': { max: 1, perMs: 3_600_000 } } });
  await work({ a: new Agent({ model: scriptedModel([text('.')], { repeat: true }) }) });
  const send = () => queue.enqueue('a', 'Hi.', { tenant: 't' });
  const jobs = [await send(), await send(), await send(), await send()];
  await queue.finished(jobs[0]!.runId);
  expect((await queue.metrics()).waiting).toBe(3);
  await queue.setRateLimit('t', { max: 2, perMs: 3_600_000 });
  await queue.finished(jobs[1]!.runId);
  expect((await queue.metrics()).waiting).toBe(2);
  await queue.setRateLimit('t', { max: 1000, perMs: 1 });
  await Promise.all(jobs.map(({ runId }) => queue.finished(runId)));
});

it('a rate that a queue brings holds for the first job it sends', async () => {
  const { queue, another, redis, work } = fleet();
  await work({ a: new Agent({ model: scriptedModel([text('.')], { repeat: true }) }) });
  // From here on, Redis knows the script of a job, but not yet that of a rate.
  await redis.script('FLUSH');
  await queue.finished((await queue.enqueue('a', 'Hi.')).runId);
  const limited = another({ rateLimits: { t: { max: 1, perMs: 3_600_000 } } });
  const [first] = await Promise.all([1, 2, 3].map(() => limited.enqueue('a', 'Hi.', { tenant: 't' })));
  await limited.finished(first!.runId);
  expect((await limited.metrics()).waiting).toBe(2);
});

describe('a run that waits for an answer leaves nothing in Redis for ever', () => {
  const ask = toolCalls({ name: 'pay', args: {} });
  const pay = tool({ name: 'pay', description: 'Pays.', input: z.object({}), execute: () => 'paid' });

  async function asking(...rest: ReturnType<typeof text>[]) {
    const on = fleet();
    const model = scriptedModel([ask, ...rest]);
    const agent = new Agent({ model, tools: [pay], middleware: [approval({ policy: { pay: 'ask' } })] });
    await on.work({ a: agent });
    const { runId } = await on.queue.enqueue('a', 'Pay.', { sessionId: 's' });
    const outcome = await on.queue.finished(runId);
    expect(await forever(on)).toContain(`i:${runId}`);
    return { ...on, agent, runId, outcome, forever: () => forever(on) };
  }

  /** Records that stay until somebody deletes them. */
  async function forever({ redis, queue }: Fleet): Promise<string[]> {
    const records = await redis.keys(`{${queue.prefix}}:q:[iq]:*`);
    const kept = await Promise.all(records.map((record) => redis.pttl(record)));
    return records.filter((_, i) => kept[i]! < 0).map((record) => record.split(':q:')[1]!);
  }

  it('once all its questions are answered, one after the other', async () => {
    const { queue, runId, outcome, forever } = await asking(ask, ask, text('Paid.'));
    for (let now = outcome; now.status === 'suspended'; now = await queue.finished(runId))
      await queue.answer(now.pending![0]!.id, { type: 'approve' });
    await expect.poll(forever, { timeout: 5000 }).toEqual([]);
  });

  it('once a new message has ended it, also if that one asks', async () => {
    const { queue, runId, forever } = await asking(ask, text('Fine.'));
    const next = await queue.enqueue('a', 'Pay less.', { sessionId: 's' });
    expect(await queue.finished(next.runId)).toMatchObject({ status: 'suspended' });
    expect(await forever()).not.toContain(`i:${runId}`);
    await queue.finished((await queue.enqueue('a', 'Never mind.', { sessionId: 's' })).runId);
    await expect.poll(forever, { timeout: 5000 }).toEqual([]);
  });

  it('once somebody has resumed it by its session', async () => {
    const { queue, outcome, forever } = await asking(ask, text('Paid.'));
    const answer = { [outcome.pending![0]!.id]: { type: 'approve' } as const };
    const again = await queue.resume('a', { sessionId: 's', answers: answer });
    const asked = await queue.finished(again.runId);
    expect(asked).toMatchObject({ status: 'suspended' });
    const answers = { [asked.pending![0]!.id]: { type: 'approve' } as const };
    const last = await queue.resume('a', { sessionId: 's', answers });
    expect(await queue.finished(last.runId)).toMatchObject({ status: 'done', text: 'Paid.' });
    await expect.poll(forever, { timeout: 5000 }).toEqual([]);
  });

  it('once it is over, also if somebody answered before the end of its last job was recorded', async () => {
    const { queue, runId, outcome, forever, redis: client } = await asking(ask, text('Paid.'));
    const keys = `{${queue.prefix}}:q:`;
    const first = outcome.pending![0]!.id;
    await queue.answer(first, { type: 'approve' });
    const asksAgain = async () => (await queue.outcome(runId))?.pending?.[0]?.id !== first;
    await expect.poll(asksAgain).toBe(true);
    const asked = (await queue.outcome(runId))!;
    const job = (await client.hget(`${keys}i:${runId}`, 'by'))!;
    await client.multi().hset(`${keys}i:${job}`, 'st', 'a').lpush(`${keys}s:s`, job).exec();
    await queue.answer(asked.pending![0]!.id, { type: 'approve' });
    const { turns, close } = openBackend({ connection: redis().url, prefix: queue.prefix });
    await turns.finish(job, asked, { of: runId });
    await close();
    await expect.poll(() => queue.outcome(runId)).toMatchObject({ text: 'Paid.' });
    await expect.poll(forever, { timeout: 5000 }).toEqual([]);
  });

  it('once it is over, also if the end of its first job is recorded twice', async () => {
    const { queue, outcome, forever } = await asking(text('Paid.'));
    await queue.answer(outcome.pending![0]!.id, { type: 'approve' });
    await expect.poll(forever, { timeout: 5000 }).toEqual([]);
    // The worker lost the job before BullMQ knew of its end.
    const { turns, close } = openBackend({ connection: redis().url, prefix: queue.prefix });
    await turns.finish(outcome.runId, outcome, {});
    await close();
    expect(await forever()).toEqual([]);
  });

  it('but stays if a job of the session failed before its run', async () => {
    const { queue, runId, outcome, forever } = await asking(text('Paid.'));
    const other = await queue.enqueue('nobody', 'Hi.', { sessionId: 's' });
    expect(await queue.finished(other.runId)).toMatchObject({ status: 'failed' });
    expect(await forever()).toContain(`i:${runId}`);
    await queue.answer(outcome.pending![0]!.id, { type: 'approve' });
    await expect.poll(() => queue.outcome(runId)).toMatchObject({ text: 'Paid.' });
    await expect.poll(forever, { timeout: 5000 }).toEqual([]);
  });
});
