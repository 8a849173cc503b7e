import {
  Agent,
  AlliumError,
  defineMiddleware,
  type Middleware,
  memoryStore,
  systemClock,
  textOf,
  tool,
} from 'allium';
import { approval } from 'allium/middleware/approval';
import { maxTurns } from 'allium/middleware/max-turns';
import { failWith, scriptedModel, text, toolCalls } from 'allium/testing';
import { Redis } from 'ioredis';
import { describe, expect, it, vi } from 'vitest';
import { z } from 'zod';
import { storeWith } from '../../../test/run-checks.js';
import { type Fleet, useFleets } from '../test/fleet.js';

const { fleet } = useFleets();

const look = tool({ name: 'look', description: 'Looks.', input: z.object({}), execute: () => 'seen' });
const again = toolCalls({ name: 'look', args: {} });
const busy = () => Object.assign(new Error('overloaded'), { status: 503 });

function gate(): { readonly promise: Promise<void>; resolve(): void } {
  let resolve = (): void => {};
  const promise = new Promise<void>((done) => {
    resolve = done;
  });
  return { promise, resolve };
}

describe('a queue and a worker', () => {
  it('runs what is enqueued, under the id that enqueue returns', async () => {
    const { queue, work, store } = fleet();
    const agent = new Agent({ model: scriptedModel([text('Hello, Ann.')]) });
    await work({ greeter: agent });
    const { runId, sessionId, state } = await queue.enqueue('greeter', 'I am Ann.', { tenant: 'acme' });
    expect(state).toBe('queued');
    expect(await queue.finished(runId)).toMatchObject({
      status: 'done',
      text: 'Hello, Ann.',
      runId,
      sessionId,
      turns: 1,
    });
    const [start] = await store.read(sessionId, 1);
    expect(start).toMatchObject({ type: 'run_start', runId, tenant: 'acme', metadata: { agent: 'greeter' } });
  });

  it('stops waiting for an end when it is told to, before it begins to wait, too', async () => {
    const { queue } = fleet();
    const { runId } = await queue.enqueue('greeter', 'Hi.');
    await expect(queue.finished(runId, { signal: AbortSignal.abort('enough') })).rejects.toBe('enough');
    const control = new AbortController();
    const waiting = queue.finished(runId, { signal: control.signal });
    control.abort('enough');
    await expect(waiting).rejects.toBe('enough');
  });

  it('opens a session once per try, and reads what the last one wrote', async () => {
    const inner = memoryStore();
    const opened: string[] = [];
    const store = storeWith(inner, {
      async tail(sessionId) {
        opened.push(sessionId);
        return { entries: await inner.read(sessionId, 1) };
      },
    });
    const { queue, work } = fleet({ store, retry: { delayMs: 1 } });
    const model = scriptedModel([text('One.'), text('Two.'), failWith(busy()), text('Three.')]);
    const agent = new Agent({ model });
    await work({ greeter: agent });
    for (const said of ['One.', 'Two.', 'Three.']) {
      const { runId } = await queue.enqueue('greeter', said, { sessionId: 's' });
      expect(await queue.finished(runId)).toMatchObject({ status: 'done', text: said });
    }
    expect(opened).toEqual(['s', 's', 's', 's']);
    expect(await agent.session('s', { store }).messages()).toHaveLength(6);
  });

  it('runs what was enqueued before there was a worker', async () => {
    const { queue, work } = fleet();
    const { runId } = await queue.enqueue('greeter', 'Hi.');
    expect(await queue.metrics()).toMatchObject({ waiting: 1, running: 0, workers: 0 });
    await work({ greeter: new Agent({ model: scriptedModel([text('Hi.')]) }) });
    expect(await queue.finished(runId)).toMatchObject({ status: 'done' });
    expect(await queue.metrics()).toMatchObject({ waiting: 0, running: 0, workers: 1, ended: { done: 1 } });
  });

  it('makes one job of several with the same idempotency key, even after it has ended', async () => {
    const { queue, work } = fleet();
    const model = scriptedModel([text('Once.')], { repeat: true });
    await work({ greeter: new Agent({ model }) });
    const send = () => queue.enqueue('greeter', 'Pay.', { idempotencyKey: 'order 7' });
    const [one, two] = await Promise.all([send(), send()]);
    await queue.finished(one.runId);
    const three = await send();
    expect(new Set([one.runId, two.runId, three.runId]).size).toBe(1);
    expect(two.sessionId).toBe(one.sessionId);
    expect([one.state, two.state, three.state].sort()).toEqual(['known', 'known', 'queued']);
    const other = await queue.enqueue('greeter', 'Pay.', { idempotencyKey: 'order 7', tenant: 'other' });
    await queue.finished(other.runId);
    expect(model.requests.length).toBe(2);
  });

  it('takes the messages of a session one after the other, in their order', async () => {
    const { queue, work, store } = fleet();
    let running = 0;
    const most: number[] = [];
    const counting = defineMiddleware({
      name: 'counting',
      async wrapModel(_ctx, next) {
        most.push(++running);
        await new Promise((resolve) => setImmediate(resolve));
        await next();
        running--;
      },
    });
    const model = scriptedModel([({ messages }) => text(`re: ${textOf(messages.at(-1)!)}`)], {
      repeat: true,
    });
    const agent = new Agent({ model, middleware: [counting] });
    await work({ a: agent }, { concurrency: 4 });
    const said = Array.from({ length: 12 }, (_, i) => `message ${i}`);
    const jobs = [];
    for (const one of said) jobs.push(await queue.enqueue('a', one, { sessionId: 's' }));
    for (const { runId } of jobs) expect(await queue.finished(runId)).toMatchObject({ status: 'done' });
    const messages = await agent.session('s', { store }).messages();
    expect(messages.map(textOf)).toEqual(said.flatMap((one) => [one, `re: ${one}`]));
    expect(Math.max(...most)).toBe(1);
  });

  it('starts jobs of a lower priority number first', async () => {
    const { queue, work } = fleet();
    const order: string[] = [];
    const model = scriptedModel(
      [
        ({ messages }) => {
          order.push(textOf(messages.at(-1)!));
          return text('.');
        },
      ],
      { repeat: true },
    );
    const jobs = [];
    for (const [name, priority] of [
      ['c', 10],
      ['a', 1],
      ['d', 10],
      ['b', 5],
    ] as const)
      jobs.push(await queue.enqueue('a', name, { priority }));
    await work({ a: new Agent({ model }) }, { concurrency: 1 });
    for (const { runId } of jobs) await queue.finished(runId);
    expect(order).toEqual(['a', 'b', 'c', 'd']);
  });

  it('refuses a job that cannot run before it is in the queue', async () => {
    const { queue, another } = fleet();
    await expect(queue.enqueue('a', { role: 'nobody' } as never)).rejects.toMatchObject({
      code: 'INVALID_MESSAGE',
    });
    await expect(queue.enqueue('a', 'hi', { prio: 1 } as never)).rejects.toMatchObject({
      code: 'INVALID_OPTION',
    });
    await expect(queue.enqueue('a', 'hi', { schedule: { id: 'x' } })).rejects.toMatchObject({
      code: 'INVALID_OPTION',
    });
    for (const [options, option] of [
      [{ whenBusy: 'drop' }, 'whenBusy'],
      [{ schedule: { id: 'x', cron: 'nonsense' } }, 'schedule.cron'],
      [{ schedule: { id: 'x', cron: '0 61 * * *' } }, 'schedule.cron'],
      [{ schedule: { id: 'x', cron: '0 9 * * *', timeZone: 'Mars/Base' } }, 'schedule.timeZone'],
      [{ schedule: { id: 'x', everyMs: -5 } }, 'schedule.everyMs'],
    ] as const)
      await expect(queue.enqueue('a', 'hi', options as never), option).rejects.toMatchObject({
        code: 'INVALID_OPTION',
        message: expect.stringContaining(`Expected \`${option}\``),
      });
    const blind = another({ store: undefined as never });
    expect(() => blind.reader('s')).toThrow('`store`');
    await expect(queue.finished('nobody')).rejects.toMatchObject({ code: 'SESSION_UNKNOWN' });
    expect(await queue.cancel('nobody')).toBe(false);
  });
});

describe('what becomes of a job', () => {
  it('completes a run that a guardrail or a limit stopped, with that status, and does not try again', async () => {
    const { queue, work } = fleet();
    const model = scriptedModel([again], { repeat: true });
    await work({ a: new Agent({ model, tools: [look], middleware: [maxTurns({ turns: 2 })] }) });
    const { runId } = await queue.enqueue('a', 'Look.');
    expect(await queue.finished(runId)).toMatchObject({
      status: 'stopped',
      stop: { reason: 'max_turns' },
      turns: 2,
    });
    expect(model.requests.length).toBe(2);
    expect(await queue.failed()).toEqual([]);
  });

  it('completes a run that asks somebody, and goes on with it when it is answered', async () => {
    const { queue, work, store } = fleet();
    const model = scriptedModel([again, text('Seen.')]);
    const agent = new Agent({ model, tools: [look], middleware: [approval({ policy: { look: 'ask' } })] });
    await work({ a: agent });
    const { runId, sessionId } = await queue.enqueue('a', 'Look.', { tenant: 'acme' });
    const { status, pending } = await queue.finished(runId);
    expect([status, pending!.length]).toEqual(['suspended', 1]);
    const requestId = pending![0]!.id;
    await expect(queue.answer(requestId, { type: 'edit' } as never)).rejects.toMatchObject({
      code: 'INVALID_OPTION',
    });
    await queue.answer(requestId, { type: 'approve' });
    const seen: string[] = [];
    for await (const { event } of queue.join(sessionId, { stay: true })) {
      seen.push(event.type === 'agent_end' ? event.status : event.type);
      if (event.type === 'agent_end' && event.status === 'done') break;
    }
    expect(seen.at(-1)).toBe('done');
    expect(await queue.finished(runId)).toMatchObject({ status: 'done', text: 'Seen.', runId });
    const runs = (await store.read(sessionId, 1)).filter(({ type }) => type === 'run_start');
    expect(runs.length).toBe(1);
    await expect(queue.answer(requestId, { type: 'approve' })).rejects.toMatchObject({
      code: 'REQUEST_UNKNOWN',
    });
    await expect(queue.answer('nobody.1.0.ask', { type: 'approve' })).rejects.toMatchObject({
      code: 'REQUEST_UNKNOWN',
    });
  });

  it('tries again with back-off while the provider is down, and says the message once', async () => {
    const { queue, work, store, events } = fleet({ retry: { attempts: 5, delayMs: 1 } });
    const model = scriptedModel([again, failWith(busy()), failWith(busy()), text('Back.')]);
    const agent = new Agent({ model, tools: [look] });
    await work({ a: agent });
    const { runId, sessionId } = await queue.enqueue('a', 'Hi.');
    expect(await queue.finished(runId)).toMatchObject({ status: 'done', text: 'Back.', runId: `${runId}~3` });
    const roles = (await agent.session(sessionId, { store }).messages()).map(({ role }) => role);
    expect(roles).toEqual(['user', 'assistant', 'tool', 'assistant']);
    await expect
      .poll(() => events.map(({ type }) => type))
      .toEqual(['started', 'retry', 'started', 'retry', 'started', 'ended']);
  });

  it('tries again when the store is down, whenever that is', async () => {
    const inner = memoryStore();
    let failures = 0;
    const failing = ['read', 'append', 'head', 'take'];
    const store = new Proxy(inner, {
      get(target, name) {
        const member: unknown = Reflect.get(target, name);
        if (typeof member !== 'function') return member;
        return async (...args: unknown[]) => {
          // As a driver throws it, with a code of its own.
          if (failures > 0 && failing.includes(String(name)) && failures--)
            throw Object.assign(new Error('the database system is shutting down'), { code: '57P03' });
          return Reflect.apply(member, target, args);
        };
      },
    });
    const { queue, work } = fleet({ store, retry: { attempts: 20, delayMs: 1 } });
    const model = scriptedModel([failWith(busy()), text('Back.')], { repeat: true });
    await work({ a: new Agent({ model }) });
    for (const times of [1, 2, 3, 5]) {
      failures = times;
      const { runId } = await queue.enqueue('a', 'Hi.');
      expect(await queue.finished(runId), `${times} failures`).toMatchObject({
        status: 'done',
        text: 'Back.',
      });
    }
    expect(await queue.failed()).toEqual([]);
  });

  it('gives up when the provider stays down, into the dead-letter list', async () => {
    const { queue, work } = fleet({ retry: { attempts: 3, delayMs: 1 } });
    const model = scriptedModel([failWith(busy())], { repeat: true });
    await work({ a: new Agent({ model }) });
    const { runId } = await queue.enqueue('a', 'Hi.');
    expect(await queue.finished(runId)).toMatchObject({ status: 'failed', error: { code: 'MODEL_ERROR' } });
    expect(model.requests.length).toBe(3);
  });

  it('fails once for good with any other error, and can be sent back', async () => {
    const { queue, work, store } = fleet();
    const bad = Object.assign(new Error('no such model'), { status: 404 });
    const model = scriptedModel([failWith(bad), text('Now it works.')]);
    const agent = new Agent({ model });
    await work({ a: agent });
    const { runId, sessionId } = await queue.enqueue('a', 'Hi.', { tenant: 'acme' });
    const next = await queue.enqueue('nobody', 'Hi.');
    expect(await queue.finished(runId)).toMatchObject({ status: 'failed' });
    expect(await queue.finished(next.runId)).toMatchObject({ status: 'failed' });
    expect(model.requests.length).toBe(1);
    // Whoever hears of the end finds it there.
    const failed = await queue.failed();
    expect(failed.length).toBe(2);
    const first = failed.find((one) => one.runId === runId);
    expect(first).toMatchObject({
      runId,
      sessionId,
      agent: 'a',
      tenant: 'acme',
      reason: expect.stringContaining('no such model'),
    });
    expect(await queue.redrive(runId)).toBe(1);
    expect(await queue.finished(runId)).toMatchObject({ status: 'done', text: 'Now it works.' });
    expect((await agent.session(sessionId, { store, tenant: 'acme' }).messages()).length).toBe(2);
    expect((await queue.failed()).map((one) => one.runId)).toEqual([next.runId]);
  });

  describe('says its message in the next try if the first failed before the history had it', () => {
    /** What fails the first time, in different places before the first model call. */
    const failing = (error: unknown): Record<string, Omit<Middleware, 'name'>> => {
      let calls = 0;
      const fail = (): void => {
        if (calls++ === 0) throw error;
      };
      return {
        'a guard of the input': { guard: { on: ['input'], judge: fail } },
        'the run hook': {
          async wrapRun(_ctx, next) {
            fail();
            await next();
          },
        },
        'the hook before the run': { beforeRun: fail },
        'the hook before the model': { beforeModel: fail },
      };
    };
    const ways = {
      'sent back': new Error('broken'),
      'tried again': new AlliumError('RATE_LIMITED', 'Too many calls.'),
    };
    for (const [way, error] of Object.entries(ways))
      for (const where of Object.keys(failing(error)))
        it(`${where}, ${way}`, async () => {
          const { queue, work, store, events } = fleet({ retry: { attempts: 2, delayMs: 10 } });
          const model = scriptedModel([text('Hello.')], { repeat: true });
          await new Agent({ model, store }).session('s').run('Earlier.');
          const middleware = [defineMiddleware({ name: 'fails', ...failing(error)[where] })];
          await work({ a: new Agent({ model, middleware }) });
          const { runId } = await queue.enqueue('a', 'Hi.', { sessionId: 's' });
          const first = await queue.finished(runId);
          if (first.status === 'failed') expect(await queue.redrive()).toBe(1);
          expect(await queue.finished(runId)).toMatchObject({ status: 'done', text: 'Hello.' });
          expect(events.filter(({ type }) => type === 'started').length).toBe(2);
          const messages = await new Agent({ model, store }).session('s').messages();
          expect(messages.map(textOf)).toEqual(['Earlier.', 'Hello.', 'Hi.', 'Hello.']);
        });
  });

  it('does not let a failed job hold up its session', async () => {
    const { queue, work } = fleet();
    const bad = Object.assign(new Error('no'), { status: 400 });
    await work({ a: new Agent({ model: scriptedModel([failWith(bad), text('Fine.')]) }) });
    const one = await queue.enqueue('a', 'One.', { sessionId: 's' });
    const two = await queue.enqueue('a', 'Two.', { sessionId: 's' });
    expect(await queue.finished(one.runId)).toMatchObject({ status: 'failed' });
    expect(await queue.finished(two.runId)).toMatchObject({ status: 'done', text: 'Fine.' });
  });
});

describe('takeover', () => {
  it('goes on from the journal when the lock of a job is lost, and the first worker says nothing more', async () => {
    const { queue, work, store, events, redis } = fleet();
    const begun = gate();
    let times = 0;
    const wait = tool({
      name: 'wait',
      description: 'Waits, the first time until it is told to stop.',
      input: z.object({}),
      idempotent: true,
      execute: (_args, { signal }) => {
        if (++times > 1) return 'waited';
        begun.resolve();
        return new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)));
      },
    });
    const model = scriptedModel([toolCalls({ name: 'wait', args: {} }), text('Done.')]);
    const agent = new Agent({ model, tools: [wait] });
    await work({ a: agent }, { lockMs: 400 });
    await work({ a: agent }, { lockMs: 400 });
    const { runId, sessionId } = await queue.enqueue('a', 'Wait.');
    await begun.promise;
    await redis.del(`{${queue.prefix}}:runs:${runId}:lock`);
    expect(await queue.finished(runId)).toMatchObject({ status: 'done', text: 'Done.', runId });
    const entries = await store.read(sessionId, 1);
    expect(entries.filter(({ type }) => type === 'run_start').length).toBe(1);
    expect(entries.filter(({ type }) => type === 'run_end')).toMatchObject([{ status: 'done' }]);
    await expect
      .poll(() => events.map(({ type }) => type))
      .toEqual(expect.arrayContaining(['lost', 'takeover', 'ended']));
    expect((await queue.metrics()).takeovers).toBeGreaterThan(0);
  });

  it('gives up a job that outlives too many workers', async () => {
    const { queue, work, redis } = fleet();
    const begun = [gate(), gate()];
    let times = 0;
    const agent = new Agent({
      model: {
        provider: 'test',
        id: 'hangs',
        async *stream(_request, { signal }) {
          begun[times++]?.resolve();
          await new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)));
          yield { type: 'text', text: '' };
        },
      },
    });
    await work({ a: agent }, { lockMs: 400, maxTakeovers: 1 });
    const { runId } = await queue.enqueue('a', 'Hang.');
    for (const { promise } of begun) {
      await promise;
      await redis.del(`{${queue.prefix}}:runs:${runId}:lock`);
    }
    expect(await queue.finished(runId)).toMatchObject({
      status: 'failed',
      error: { code: 'TOO_MANY_TAKEOVERS', message: expect.stringContaining('2 workers') },
    });
  });
});

describe('the places of a fleet', () => {
  it('are those of every worker, whatever its clock says', async () => {
    const { queue, work } = fleet();
    const agents = { a: new Agent({ model: scriptedModel([text('.')], { repeat: true }) }) };
    const ahead = { ...systemClock, now: () => Date.now() + 3_600_000 };
    await work(agents, { lockMs: 300, concurrency: 2 });
    await work(agents, { lockMs: 300, concurrency: 3, clock: ahead });
    const seen: string[] = [];
    for (let i = 0; i < 15; i++) {
      const { workers, capacity } = await queue.metrics();
      seen.push(`${workers} with ${capacity}`);
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
    expect([...new Set(seen)]).toEqual(['2 with 5']);
  });

  it('are counted by the age that Redis knows, whatever the clock of who asks says', async () => {
    const { queue, another } = fleet();
    await queue.enqueue('a', 'Hi.');
    const behind = another({ clock: { ...systemClock, now: () => Date.now() - 3_600_000 } });
    const ahead = another({ clock: { ...systemClock, now: () => Date.now() + 3_600_000 } });
    await new Promise((resolve) => setTimeout(resolve, 5));
    for (const one of [behind, ahead]) {
      const { ageMs } = await one.metrics();
      expect(ageMs).toBeGreaterThan(0);
      expect(ageMs).toBeLessThan(60_000);
    }
  });

  it('are given up by a dead worker before its locks expire, so that its jobs find free ones', async () => {
    const { queue, work, redis } = fleet();
    const lockMs = 8000;
    await work({ a: new Agent({ model: scriptedModel([]) }) }, { lockMs, concurrency: 2 });
    // A worker that died right after its last sign.
    const key = (name: string) => `{${queue.prefix}}:q:${name}`;
    const [seconds] = await redis.time();
    await redis
      .multi()
      .hset(key('cap'), 'dead', 7)
      .zadd(key('beat'), Number(seconds) * 1000, 'dead')
      .incrby(key('room'), 7)
      .exec();
    const died = performance.now();
    expect(await queue.metrics()).toMatchObject({ workers: 2, capacity: 9 });
    await expect.poll(async () => (await queue.metrics()).capacity, { interval: 20 }).toBe(2);
    expect(performance.now() - died).toBeLessThan(lockMs);
  });
});

describe('leaving', () => {
  it('by a signal, all workers of the process do, before it ends; there is one handler however many they are', async () => {
    const kill = vi.spyOn(process, 'kill').mockReturnValue(true);
    const signal = 'SIGUSR2';
    try {
      const [quick, slow] = [fleet(), fleet()];
      const [begun, going] = [gate(), gate()];
      const waits = defineMiddleware({
        name: 'waits',
        async wrapModel(_ctx, next) {
          begun.resolve();
          await going.promise;
          await next();
        },
      });
      await quick.work({ a: new Agent({ model: scriptedModel([text('.')]) }) }, { drainOn: [signal] });
      await slow.work(
        { a: new Agent({ model: scriptedModel([text('Done.')]), middleware: [waits] }) },
        { drainOn: [signal], drainMs: 60_000 },
      );
      expect(process.listenerCount(signal)).toBe(1);
      const { runId } = await slow.queue.enqueue('a', 'Go.');
      await begun.promise;
      process.emit(signal, signal);
      await expect.poll(async () => (await quick.queue.metrics()).workers).toBe(0);
      await new Promise((resolve) => setTimeout(resolve, 200));
      expect(kill).not.toHaveBeenCalled();
      going.resolve();
      expect(await slow.queue.finished(runId)).toMatchObject({ status: 'done', text: 'Done.' });
      await expect.poll(() => kill.mock.calls).toEqual([[process.pid, signal]]);
      expect(process.listenerCount(signal)).toBe(0);
    } finally {
      kill.mockRestore();
    }
  });

  it('lets runs end, and takes nothing new', async () => {
    const { queue, work } = fleet();
    const begun = gate();
    const goOn = gate();
    const wait = tool({
      name: 'wait',
      description: 'Waits.',
      input: z.object({}),
      async execute() {
        begun.resolve();
        await goOn.promise;
        return 'waited';
      },
    });
    const model = scriptedModel([toolCalls({ name: 'wait', args: {} }), text('Done.')]);
    const worker = await work({ a: new Agent({ model, tools: [wait] }) });
    const { runId } = await queue.enqueue('a', 'Wait.');
    await begun.promise;
    expect(await worker.health()).toMatchObject({ live: true, ready: true, running: 1, down: [] });
    expect(await worker.prometheus()).toContain('allium_queue_running 1\n');
    const left = worker.drain({ deadlineMs: 60_000 });
    const next = await queue.enqueue('a', 'Hi.');
    expect(await worker.health()).toMatchObject({ live: true, ready: false, draining: true });
    goOn.resolve();
    await left;
    expect(await queue.outcome(runId)).toMatchObject({ status: 'done', text: 'Done.' });
    expect(await queue.outcome(next.runId)).toBe(undefined);
    expect(await queue.metrics()).toMatchObject({ waiting: 1, running: 0, workers: 0, capacity: 0 });
  });

  it('does not hand over what fails for good meanwhile', async () => {
    const { queue, work, events } = fleet();
    const [begun, goOn] = [gate(), gate()];
    const bad = Object.assign(new Error('no such model'), { status: 404 });
    const model = scriptedModel([failWith(bad), text('Done.')]);
    const holding = defineMiddleware({
      name: 'holding',
      async beforeModel() {
        begun.resolve();
        await goOn.promise;
      },
    });
    const agent = new Agent({ model, middleware: [holding] });
    const worker = await work({ a: agent });
    const { runId } = await queue.enqueue('a', 'Hi.');
    await begun.promise;
    const left = worker.drain({ deadlineMs: 60_000, finishMs: 0 });
    goOn.resolve();
    await left;
    await work({ a: agent });
    expect(await queue.finished(runId)).toMatchObject({ status: 'failed' });
    expect(events.map(({ type }) => type)).toEqual(['started', 'failed']);
    expect(model.requests.length).toBe(1);
  });

  it('hands over what does not end in time, where nothing is in doubt', async () => {
    const { queue, work, store, events, redis } = fleet();
    const begun = gate();
    const goOn = gate();
    const step = tool({
      name: 'step',
      description: 'A step.',
      input: z.object({}),
      execute: () => 'stepped',
    });
    const toStep = toolCalls({ name: 'step', args: {} });
    const model = scriptedModel([toStep, toStep, toStep, text('Done.')]);
    const holding = defineMiddleware({
      name: 'holding',
      async beforeModel({ turn }) {
        if (turn !== 2) return;
        begun.resolve();
        await goOn.promise;
      },
    });
    const agent = new Agent({ model, tools: [step], middleware: [holding] });
    // It takes its time to say that it leaves, as on a busy machine: it must not take its own job again meanwhile.
    const slow = new Redis(redis.options.port!, { maxRetriesPerRequest: null });
    const evalsha = slow.evalsha.bind(slow) as (...args: unknown[]) => Promise<unknown>;
    slow.evalsha = (async (...args: unknown[]) => {
      if (args[5] === -1) await new Promise((resolve) => setTimeout(resolve, 300));
      return evalsha(...args);
    }) as never;
    const worker = await work({ a: agent }, { connection: slow });
    const { runId, sessionId } = await queue.enqueue('a', 'Step.');
    await begun.promise;
    const left = worker.drain({ deadlineMs: 60_000, finishMs: 0 });
    goOn.resolve();
    await left;
    slow.disconnect();
    expect(events.map(({ type }) => type)).toEqual(['started', 'handed over']);
    expect(await queue.outcome(runId)).toBe(undefined);
    await work({ a: agent });
    expect(await queue.finished(runId)).toMatchObject({ status: 'done', text: 'Done.', runId });
    const messages = await agent.session(sessionId, { store }).messages();
    expect(messages.map(({ role }) => role)).toEqual([
      'user',
      'assistant',
      'tool',
      'assistant',
      'tool',
      'assistant',
    ]);
    expect(JSON.stringify(messages)).not.toContain('In doubt');
  });
});

describe('cancel', () => {
  it('removes a job that has not begun', async () => {
    const { queue, work } = fleet();
    const { runId } = await queue.enqueue('a', 'Hi.');
    const later = await queue.enqueue('a', 'Hi.', { delayMs: 3_600_000 });
    expect(await queue.cancel(runId, 'Changed my mind.')).toBe(true);
    expect(await queue.cancel(later.runId)).toBe(true);
    const model = scriptedModel([text('.')]);
    await work({ a: new Agent({ model }) });
    expect(await queue.finished(runId)).toMatchObject({
      status: 'aborted',
      stop: { message: 'Changed my mind.' },
    });
    expect(await queue.metrics()).toMatchObject({ waiting: 0, delayed: 0 });
    expect(await queue.cancel(runId)).toBe(false);
    expect(model.requests).toEqual([]);
  });

  it('ends a run that is under way, from another process', async () => {
    const { queue, work, another } = fleet();
    const begun = gate();
    const wait = tool({
      name: 'wait',
      description: 'Waits.',
      input: z.object({}),
      execute: (_args, { signal }) =>
        new Promise((_, reject) => {
          begun.resolve();
          signal.addEventListener('abort', () => reject(signal.reason));
        }),
    });
    await work({
      a: new Agent({ model: scriptedModel([toolCalls({ name: 'wait', args: {} })]), tools: [wait] }),
    });
    const { runId } = await queue.enqueue('a', 'Wait.');
    await begun.promise;
    expect(await another().cancel(runId, 'Enough.')).toBe(true);
    expect(await queue.finished(runId)).toMatchObject({ status: 'aborted', stop: { reason: 'aborted' } });
    expect(await queue.failed()).toEqual([]);
  });
});

describe('cancel of a run that waits for an answer', () => {
  async function waiting(on: Fleet) {
    const ran: string[] = [];
    const pay = tool({
      name: 'pay',
      description: 'Pays.',
      input: z.object({}),
      execute: () => {
        ran.push('pay');
        return 'paid';
      },
    });
    const model = scriptedModel([toolCalls({ name: 'pay', args: {} }), text('Paid.')]);
    const agent = new Agent({ model, tools: [pay], middleware: [approval({ policy: { pay: 'ask' } })] });
    const worker = await on.work({ a: agent });
    const { runId, sessionId } = await on.queue.enqueue('a', 'Pay.', { tenant: 'acme' });
    const { pending } = await on.queue.finished(runId);
    return { ran, worker, agent, runId, sessionId, requestId: pending![0]!.id };
  }

  async function expectEnded(on: Fleet, { ran, runId, sessionId, requestId }: Waiting, message: string) {
    const stop = { reason: 'aborted', message };
    await expect.poll(() => on.queue.outcome(runId)).toMatchObject({ status: 'aborted', stop });
    await expect(on.queue.answer(requestId, { type: 'approve' })).rejects.toMatchObject({
      code: 'REQUEST_UNKNOWN',
      message: expect.stringContaining('too late'),
    });
    const entries = await on.store.read(sessionId, 1);
    expect(entries.filter(({ type }) => type === 'run_end')).toMatchObject([{ status: 'aborted', stop }]);
    expect(entries.filter(({ type }) => type === 'tool_finished')).toHaveLength(1);
    expect(await on.queue.cancel(runId)).toBe(false);
    expect(ran).toEqual([]);
  }
  type Waiting = Awaited<ReturnType<typeof waiting>>;

  it('ends it: its call is answered, and a later answer comes too late', async () => {
    const on = fleet();
    const run = await waiting(on);
    expect(await on.another().cancel(run.runId, 'Too dear.')).toBe(true);
    await expectEnded(on, run, 'Too dear.');
  });

  it('stays ended after an answer that came too late, even if there is no worker', async () => {
    const on = fleet();
    const run = await waiting(on);
    expect(await on.queue.cancel(run.runId, 'Too dear.')).toBe(true);
    await expect.poll(() => on.queue.outcome(run.runId)).toMatchObject({ status: 'aborted' });
    await run.worker.drain();
    await expectEnded(on, run, 'Too dear.');
    expect(await on.queue.outcome(run.runId)).toMatchObject({ status: 'aborted' });
  });

  it('by its session ends it, too', async () => {
    const on = fleet();
    const run = await waiting(on);
    expect(await on.queue.stop(run.sessionId)).toBe(true);
    await expectEnded(on, run, 'The run was cancelled.');
    expect(await on.queue.stop(run.sessionId)).toBe(false);
  });

  it('ends it in the journal, too, if the store is down at that moment', async () => {
    const inner = memoryStore();
    let fails = 0;
    const store = storeWith(inner, {
      async append(...args) {
        if (fails > 0 && args[2].some(({ type }) => type === 'run_end') && fails--) throw new Error('down');
        return inner.append(...args);
      },
    });
    const { queue, work } = fleet({ store, retry: { delayMs: 1 } });
    const model = scriptedModel([again]);
    const agent = new Agent({ model, tools: [look], middleware: [approval({ policy: { look: 'ask' } })] });
    await work({ a: agent });
    const { runId } = await queue.enqueue('a', 'Look.', { sessionId: 's' });
    await queue.finished(runId);
    fails = 1;
    await queue.cancel(runId, 'Never mind.');
    await expect.poll(() => queue.outcome(runId)).toMatchObject({ status: 'aborted' });
    expect(fails).toBe(0);
    expect((await inner.read('s', 1)).at(-1)).toMatchObject({ type: 'run_end', status: 'aborted' });
    expect(await agent.session('s', { store }).pending()).toEqual([]);
  });

  it('takes no answers from then on, before a worker has come to it', async () => {
    const on = fleet();
    const run = await waiting(on);
    await run.worker.drain();
    expect(await on.queue.cancel(run.runId, 'Too dear.')).toBe(true);
    await expect(on.queue.answer(run.requestId, { type: 'approve' })).rejects.toMatchObject({
      code: 'REQUEST_UNKNOWN',
    });
    await on.work({ a: run.agent });
    await expectEnded(on, run, 'Too dear.');
  });

  it('ends it although it was answered, as long as no worker goes on with it', async () => {
    const on = fleet();
    const run = await waiting(on);
    await run.worker.drain();
    await on.queue.answer(run.requestId, { type: 'approve' });
    expect(await on.queue.cancel(run.runId, 'Too dear.')).toBe(true);
    await on.work({ a: run.agent });
    await expectEnded(on, run, 'Too dear.');
  });
});

describe('speaking to a busy session', () => {
  it('starts another run for a message that comes too late for the current one', async () => {
    const { queue, work, store } = fleet();
    const [ending, goOn] = [gate(), gate()];
    const slow = defineMiddleware({
      name: 'slow',
      async afterRun() {
        ending.resolve();
        await goOn.promise;
      },
    });
    const model = scriptedModel([
      text('Done.'),
      ({ messages }) => text(`heard: ${textOf(messages.at(-1)!)}`),
    ]);
    const agent = new Agent({ model, middleware: [slow] });
    await work({ a: agent });
    const { runId } = await queue.enqueue('a', 'Go.', { sessionId: 's' });
    await ending.promise;
    const said = await queue.enqueue('a', 'Wait!', { sessionId: 's', whenBusy: 'steer' });
    expect(said).toMatchObject({ state: 'said', runId });
    goOn.resolve();
    expect(await queue.finished(runId)).toMatchObject({ status: 'done', text: 'Done.' });
    await expect.poll(async () => (await queue.metrics()).ended).toEqual({ done: 2 });
    const last = (await agent.session('s', { store }).messages()).at(-1)!;
    expect(textOf(last)).toBe('heard: Wait!');
  });

  it('that then waits for an answer is heard when the run continues, and nothing fails', async () => {
    const { queue, work, store } = fleet();
    const [begun, going] = [gate(), gate()];
    const waits = defineMiddleware({
      name: 'waits',
      async wrapModel(_ctx, next) {
        begun.resolve();
        await going.promise;
        await next();
      },
    });
    const model = scriptedModel([again, ({ messages }) => text(messages.map(textOf).join(' '))]);
    const middleware = [waits, approval({ policy: { look: 'ask' } })];
    await work({ a: new Agent({ model, tools: [look], middleware }) });
    const { runId } = await queue.enqueue('a', 'Look.', { sessionId: 's' });
    await begun.promise;
    const said = await queue.enqueue('a', 'Hurry.', { sessionId: 's', whenBusy: 'steer' });
    expect(said).toMatchObject({ state: 'said', runId });
    going.resolve();
    const { pending, status } = await queue.finished(runId);
    expect(status).toBe('suspended');
    await expect.poll(() => queue.isBusy('s')).toBe(false);
    expect(await queue.failed()).toEqual([]);
    await queue.answer(pending![0]!.id, { type: 'approve' });
    await expect.poll(() => queue.outcome(runId)).toMatchObject({ status: 'done' });
    const messages = await new Agent({ model, store }).session('s').messages();
    expect(messages.map(textOf).filter((one) => one === 'Hurry.').length).toBe(1);
    expect((await queue.outcome(runId))!.text).toContain('Hurry.');
  });

  it('reaches the current run, and the message is answered once', async () => {
    const { queue, work, store, events } = fleet();
    const begun = gate();
    const goOn = gate();
    const wait = tool({
      name: 'wait',
      description: 'Waits.',
      input: z.object({}),
      async execute() {
        begun.resolve();
        await goOn.promise;
        return 'waited';
      },
    });
    const model = scriptedModel([
      toolCalls({ name: 'wait', args: {} }),
      ({ messages }) => text(`heard: ${textOf(messages.at(-1)!)}`),
    ]);
    const agent = new Agent({ model, tools: [wait] });
    await work({ a: agent });
    const { runId } = await queue.enqueue('a', 'Wait.', { sessionId: 's' });
    await begun.promise;
    const said = await queue.enqueue('a', 'Hurry up.', { sessionId: 's', whenBusy: 'steer' });
    expect(said).toMatchObject({ state: 'said', runId });
    goOn.resolve();
    expect(await queue.finished(said.runId)).toMatchObject({ status: 'done', text: 'heard: Hurry up.' });
    await expect.poll(() => events.at(-1)?.type).toBe('ended');
    expect(model.requests.length).toBe(2);
    // Had it come too late, another run would have answered.
    expect(await queue.metrics()).toMatchObject({ waiting: 0, running: 0, ended: { done: 1 } });
    const idle = await queue.enqueue('a', 'Now.', { sessionId: 's2', whenBusy: 'steer' });
    expect(idle.state).toBe('queued');
    expect(await store.take('s', 0)).toEqual([]);
  });
});

describe('later, and again and again', () => {
  it('begins a delayed job when its time has come, once', async () => {
    const { queue, work } = fleet();
    const model = scriptedModel([text('Now.')], { repeat: true });
    await work({ a: new Agent({ model }) });
    const send = () => queue.enqueue('a', 'Later.', { delayMs: 50, idempotencyKey: 'k' });
    const one = await send();
    expect(one.state).toBe('delayed');
    expect(await send()).toMatchObject({ runId: one.runId, sessionId: one.sessionId });
    expect(await queue.finished(one.runId)).toMatchObject({ status: 'done', text: 'Now.' });
    expect(await send()).toMatchObject({ state: 'known', sessionId: one.sessionId });
    expect(model.requests.length).toBe(1);
  });

  it('can be waited for and cancelled before its time has come', async () => {
    const { queue, work, another } = fleet();
    const model = scriptedModel([]);
    await work({ a: new Agent({ model }) });
    const { runId, sessionId } = await queue.enqueue('a', 'Later.', { delayMs: 3_600_000 });
    expect(await queue.outcome(runId)).toBeUndefined();
    const waiting = queue.finished(runId);
    expect(await another().cancel(runId, 'Never mind.')).toBe(true);
    const stop = { reason: 'aborted', message: 'Never mind.' };
    expect(await waiting).toMatchObject({ status: 'aborted', runId, sessionId, stop });
    expect(await queue.cancel(runId)).toBe(false);
    expect(await queue.metrics()).toMatchObject({ delayed: 0, waiting: 0, ended: { aborted: 1 } });
  });

  it('begins a run at every time of a schedule, until it is ended', async () => {
    const { queue, work, store } = fleet();
    const model = scriptedModel([text('Tick.')], { repeat: true });
    await work({ a: new Agent({ model }) });
    await queue.enqueue('a', 'Tick?', { schedule: { id: 'ticker', everyMs: 100 }, tenant: 'acme' });
    await expect.poll(() => model.requests.length).toBeGreaterThan(1);
    expect(await queue.unschedule('ticker')).toBe(true);
    expect(await queue.unschedule('ticker')).toBe(false);
    const { sessions } = await store.list({ tenant: 'acme' });
    expect(sessions.length).toBeGreaterThan(1);
  });
});

describe('join', () => {
  it('tells a run of another process as it goes, and goes on after any event', async () => {
    const { queue, work, another } = fleet();
    const model = scriptedModel([again, text('Seen.')]);
    await work({ a: new Agent({ model, tools: [look] }) });
    const { sessionId } = await queue.enqueue('a', 'Look.', { sessionId: 's' });
    const sent = [];
    for await (const one of queue.join(sessionId)) sent.push(one);
    const types = sent.map(({ event }) => event.type);
    expect(types[0]).toBe('agent_start');
    expect(types.at(-1)).toBe('agent_end');
    expect(types).toContain('tool_execution_end');
    const middle = sent[3]!;
    const rest = [];
    for await (const one of another().join(sessionId, { after: middle.id })) rest.push(one);
    expect(rest.map(({ event }) => event)).toEqual(sent.slice(4).map(({ event }) => event));
  });

  it('waits for a run that has not begun', async () => {
    const { queue, work } = fleet();
    const { sessionId } = await queue.enqueue('a', 'Hi.');
    const joined = (async () => {
      for await (const { event } of queue.join(sessionId)) if (event.type === 'agent_end') return event;
      return undefined;
    })();
    await work({ a: new Agent({ model: scriptedModel([text('Hi.')]) }) });
    expect(await joined).toMatchObject({ status: 'done' });
  });
});

describe('fair turns', () => {
  it('lets a tenant with 10 jobs through while another has 1,000', async () => {
    const { queue, work } = fleet();
    const order: string[] = [];
    const model = scriptedModel([text('.')], { repeat: true });
    const noting = defineMiddleware({ name: 'noting', beforeRun: (ctx) => void order.push(ctx.tenant!) });
    await Promise.all(Array.from({ length: 1000 }, () => queue.enqueue('a', 'Hi.', { tenant: 'big' })));
    const jobs = await Promise.all(
      Array.from({ length: 10 }, () => queue.enqueue('a', 'Hi.', { tenant: 'small' })),
    );
    await work({ a: new Agent({ model, middleware: [noting] }) }, { concurrency: 2 });
    await Promise.all(jobs.map(({ runId }) => queue.finished(runId)));
    const last = order.lastIndexOf('small');
    // Every other turn, and those that two places take at a time.
    expect(last).toBeLessThanOrEqual(24);
    expect(order.slice(0, last).filter((tenant) => tenant === 'big').length).toBeGreaterThanOrEqual(8);
  });

  it('keeps a tenant to its rate in the whole fleet, and nobody else', async () => {
    const { queue, work } = fleet({ rateLimits: { slow: { max: 2, perMs: 3_600_000 } } });
    const model = scriptedModel([text('.')], { repeat: true });
    const agents = { a: new Agent({ model }) };
    await work(agents);
    await work(agents);
    const slow = await Promise.all(
      Array.from({ length: 5 }, () => queue.enqueue('a', 'Hi.', { tenant: 'slow' })),
    );
    const quick = await Promise.all(
      Array.from({ length: 20 }, () => queue.enqueue('a', 'Hi.', { tenant: 'quick' })),
    );
    await Promise.all(quick.map(({ runId }) => queue.finished(runId)));
    await expect.poll(async () => (await queue.metrics()).waiting).toBe(3);
    const ended = await Promise.all(slow.map(({ runId }) => queue.outcome(runId)));
    expect(ended.filter(Boolean).length).toBe(2);
    expect(await queue.metrics()).toMatchObject({ waiting: 3, tenantsWaiting: 1 });
    await queue.setRateLimit('slow', undefined);
  });
});

it("sessions can be in another store than the agent's", async () => {
  const { queue, work, store } = fleet();
  const own = memoryStore();
  await work({ a: new Agent({ model: scriptedModel([text('.')]), store: own }) });
  const { runId, sessionId } = await queue.enqueue('a', 'Hi.');
  await queue.finished(runId);
  expect([await own.head(sessionId), (await store.head(sessionId)) > 0]).toEqual([0, true]);
});
