/** Stores that are slow, late, silent or wrong about what they did: the journal stays valid, and the session usable. */
import { Agent, type Entry, memoryStore, type Store, type Tool, tool } from 'allium';
import { type FakeClock, fakeClock, hang, scriptedModel, toolCalls } from 'allium/testing';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { expectValidHistory, storeWith } from '../../../../../test/run-checks.js';

const make = (name: string, execute: Tool['execute']): Tool =>
  tool({ name, description: name, input: z.any(), execute }) as Tool;
/** Ignores its signal. */
const stubborn = make('stubborn', () => new Promise<string>(() => {}));
const obedient = make(
  'obedient',
  (_, ctx) =>
    new Promise((_resolve, reject) => ctx.signal.addEventListener('abort', () => reject(new Error('x')))),
);

const wait = (clock: FakeClock, ms: number) =>
  new Promise<void>((resolve) => void clock.setTimer(resolve, ms));

/** Takes time for each append and for nothing else; `kept` is what it holds. */
function slowStore(clock: FakeClock, ms: () => number): { store: Store; kept: Store } {
  const kept = memoryStore();
  const append: Store['append'] = async (...args) => {
    await wait(clock, ms());
    return kept.append(...args);
  };
  return { store: storeWith(kept, { append }), kept };
}

/** Lets time pass until the work is over; fails when that takes longer than `ms`. */
async function within<T>(clock: FakeClock, ms: number, work: Promise<T>): Promise<T | Error> {
  let ended: { value: T | Error } | undefined;
  work.then(
    (value) => {
      ended = { value };
    },
    (error) => {
      ended = { value: error };
    },
  );
  const until = clock.monotonic!() + ms;
  await clock.advance(0);
  while (!ended && clock.monotonic!() < until) await clock.advance(Math.max(5, ms / 10_000));
  expect(ended, `not over after ${ms} ms`).toBeDefined();
  return ended!.value;
}

/** No call has two results and nothing of a run follows its end; another agent can read it and go on. */
async function expectUsable(kept: Store, sessionId = 's'): Promise<readonly Entry[]> {
  const entries = await kept.read(sessionId, 1);
  const answered = entries.flatMap((entry) =>
    entry.type === 'tool_finished' ? [entry.message.toolCallId] : [],
  );
  expect(new Set(answered).size, 'two results for a call').toBe(answered.length);
  const ended = new Set<string>();
  for (const entry of entries) {
    const { runId } = entry as { runId?: string };
    if (runId !== undefined) expect(ended.has(runId), `${entry.type} after the end`).toBe(false);
    if (entry.type === 'run_end') ended.add(entry.runId);
  }
  const session = new Agent({
    model: scriptedModel(['fine'], { repeat: true }),
    tools: [stubborn, obedient],
    store: kept,
  }).session(sessionId);
  expect((await session.run('and now?')).text).toBe('fine');
  expectValidHistory(await session.messages());
  return entries;
}

describe('an append in flight when a run is aborted', () => {
  const variants = [2, 5].flatMap((calls) =>
    [15, 45, 95, 400].flatMap((appendMs) =>
      (['run', 'stream'] as const).flatMap((how) =>
        [stubborn, obedient].map((one) => ({ calls, appendMs, how, name: one.name, one })),
      ),
    ),
  );
  it.each(variants)('is never answered over: $calls calls of $name, $appendMs ms, $how', async (given) => {
    const { calls, appendMs, how, one } = given;
    const clock = fakeClock();
    let ms = 0;
    const { store, kept } = slowStore(clock, () => ms);
    const agent = new Agent({
      model: scriptedModel([toolCalls(...Array.from({ length: calls }, () => ({ name: one.name })))]),
      tools: [one],
      store,
      clock,
      teardownTimeoutMs: 20,
    });
    const session = agent.session('s');
    const running = how === 'run' ? session.run('go') : session.stream('go').result;
    running.catch(() => {});
    await clock.advance(1);
    ms = appendMs;
    await session.abort('enough');
    expect(await within(clock, 5000, running)).toMatchObject({ code: 'ABORTED' });
    await clock.advance(5000);
    const entries = await expectUsable(kept);
    expect(entries.at(-1)).toMatchObject({ type: 'run_end', status: 'aborted' });
  });

  it('is waited for no longer than needed, and the session can be continued after its late write', async () => {
    const clock = fakeClock();
    let ms = 0;
    const { store, kept } = slowStore(clock, () => ms);
    const agent = new Agent({
      model: scriptedModel([toolCalls({ name: 'obedient' }, { name: 'obedient' })]),
      tools: [obedient],
      store,
      clock,
    });
    const session = agent.session('s');
    const running = session.run('go');
    running.catch(() => {});
    await clock.advance(1);
    ms = 12_000;
    await session.abort();
    expect(await within(clock, 5010, running)).toMatchObject({ code: 'ABORTED' });
    ms = 0;
    // While the first append is under way, and once it has come through.
    const next = within(clock, 12_000, agent.session('s').run('again')).catch(() => {});
    await clock.advance(12_000);
    await next;
    await expectUsable(kept);
  });
});

describe('a store that stops answering', () => {
  const silent = new Promise<never>(() => {});
  const methods = ['read', 'append', 'take'] as const;

  /** Answers as it should until `from` calls of the method have been made. */
  function silentStore(method: (typeof methods)[number], from: number, late?: Promise<void>) {
    const kept = memoryStore();
    let calls = 0;
    const replaced = async (...args: never[]) => {
      if (++calls > from) await (late ?? silent);
      return (kept[method] as (...args: never[]) => unknown)(...args);
    };
    return { kept, store: storeWith(kept, { [method]: replaced }) };
  }

  const cases = methods.flatMap((method) => [0, 1, 2].map((from) => ({ method, from })));

  it.each(cases)('fails the run with a code: $method() after $from answers', async ({ method, from }) => {
    const clock = fakeClock();
    const { kept, store } = silentStore(method, from);
    const agent = new Agent({
      model: scriptedModel([toolCalls({ name: 'quick' }), 'done'], { repeat: true }),
      tools: [make('quick', () => 'ok')],
      store,
      clock,
      storeTimeoutMs: 100,
    });
    const ended = await within(clock, 150, agent.session('s').run('go'));
    if (method !== 'read' || from === 0) {
      expect(ended).toMatchObject({ code: 'STORE_TIMEOUT' });
      expect((ended as Error).message).toContain(`${method}() of the store did not answer within 100 ms`);
    }
    await expectUsable(kept);
  });

  it.each(cases.filter(({ method, from }) => method !== 'read' || from === 0))(
    'does not outlast limits.timeoutMs or an abort: $method() after $from answers',
    async (given) => {
      for (const by of ['limit', 'abort'] as const) {
        const clock = fakeClock();
        const { kept, store } = silentStore(given.method, given.from);
        const controller = new AbortController();
        const agent = new Agent({
          model: scriptedModel([toolCalls({ name: 'quick' }), 'done'], { repeat: true }),
          tools: [make('quick', () => 'ok')],
          store,
          clock,
          ...(by === 'limit' && { limits: { timeoutMs: 3000 } }),
        });
        const running = agent.session('s').run('go', { signal: controller.signal });
        running.catch(() => {});
        if (by === 'abort') {
          await clock.advance(3000);
          controller.abort();
        }
        const ended = await within(clock, 8100, running);
        expect(ended).toMatchObject({ code: by === 'limit' ? 'STORE_TIMEOUT' : 'ABORTED' });
        await expectUsable(kept);
      }
    },
  );

  it('ends a run with a sub-agent as soon, whichever of the two it fails', async () => {
    const call = { name: 'child', args: { prompt: 'Help.' } };
    for (let from = 0; from < 12; from++)
      for (const method of methods) {
        const clock = fakeClock();
        const { kept, store } = silentStore(method, from);
        const child = new Agent({
          name: 'child',
          model: scriptedModel([toolCalls({ name: 'quick' }), 'child'], { repeat: true }),
          tools: [make('quick', () => 'ok')],
          clock,
        });
        const agent = new Agent({
          model: scriptedModel([toolCalls(call, call), 'done']),
          tools: [child.asTool({ name: 'child', description: 'Helps.' })],
          store,
          clock,
          limits: { timeoutMs: 3000 },
        });
        await within(clock, 8100, agent.session('s').run('go'));
        await expectUsable(kept);
      }
  });

  it.each(['steer', 'answer', 'abort', 'messages', 'pending'] as const)(
    'fails session.%s()',
    async (call) => {
      const clock = fakeClock();
      const store = storeWith(memoryStore(), { read: () => silent, post: () => silent, take: () => silent });
      const session = new Agent({ model: scriptedModel([]), store, clock }).session('s');
      const work: Promise<unknown> =
        call === 'steer'
          ? session.steer('hi')
          : call === 'answer'
            ? session.answer('q', { type: 'approve' })
            : session[call]();
      expect(await within(clock, 30_010, work)).toMatchObject({ code: 'STORE_TIMEOUT' });
    },
  );

  it('leaves a session that the same process can continue when the store answers again', async () => {
    const clock = fakeClock();
    let goOn = (): void => {};
    const late = new Promise<void>((resolve) => {
      goOn = resolve;
    });
    const { kept, store } = silentStore('append', 1, late);
    const agent = new Agent({
      model: scriptedModel([toolCalls({ name: 'quick' }), 'done']),
      tools: [make('quick', () => 'ok')],
      store,
      clock,
      storeTimeoutMs: 50,
    });
    const session = agent.session('s');
    expect(await within(clock, 100, session.run('go'))).toMatchObject({ code: 'STORE_TIMEOUT' });
    goOn();
    await clock.advance(1);
    expect(await within(clock, 100, session.resume())).toMatchObject({ status: 'done', text: 'done' });
    await expectUsable(kept);
  });

  it('has no time limit if the options say so', async () => {
    const clock = fakeClock();
    const { store } = slowStore(clock, () => 1_000_000);
    const agent = new Agent({ model: scriptedModel(['done']), store, clock, storeTimeoutMs: Infinity });
    expect(await within(clock, 3_000_100, agent.session('s').run('go'))).toMatchObject({ text: 'done' });
  });
});

describe('a store that says it failed and has written all the same', () => {
  it.each([1, 2, 3, 4])('leaves a session that can be continued: append %i', async (nth) => {
    const kept = memoryStore();
    let appends = 0;
    const append: Store['append'] = (...args) => {
      const seq = kept.append(...args);
      if (++appends === nth) throw new Error('connection reset');
      return seq;
    };
    const agent = new Agent({
      model: scriptedModel([toolCalls({ name: 'quick' }, { name: 'quick' }), 'done'], { repeat: true }),
      tools: [make('quick', () => 'ok')],
      store: storeWith(kept, { append }),
    });
    const session = agent.session('s');
    await session.run('go').catch(() => session.resume().catch(() => {}));
    await expectUsable(kept);
  });
});

it('a write of an abandoned tool comes too late once the run is ending', async () => {
  const clock = fakeClock();
  let ms = 0;
  const { store, kept } = slowStore(clock, () => ms);
  const agent = new Agent({
    model: scriptedModel([toolCalls({ name: 'asks' }, { name: 'asks' }), hang()]),
    tools: [make('asks', async (_, ctx) => (await ctx.suspend({ title: 'Sure?' })).type)],
    store,
    clock,
    teardownTimeoutMs: 20,
    limits: { timeoutMs: 100 },
    onRequest: async () => {
      await wait(clock, 130);
      return { type: 'approve' };
    },
  });
  const running = agent.session('s').run('go');
  running.catch(() => {});
  await clock.advance(50);
  ms = 200;
  await within(clock, 3000, running);
  await clock.advance(1000);
  await expectUsable(kept);
});
