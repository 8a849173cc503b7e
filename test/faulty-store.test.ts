/** Runs with sub-agents on stores that fail, dawdle or fall silent at random: all end in time and leave usable sessions. */
import { Agent, type Middleware, memoryStore, type Store, tool } from 'allium';
import { retry } from 'allium/middleware/retry';
import { type FakeClock, failWith, fakeClock, hang, scriptedModel, text, toolCalls } from 'allium/testing';
import { expect, it } from 'vitest';
import { z } from 'zod';

const RUNS = 400;
const TIMEOUT_MS = 3000;
/** Twice five seconds for code that ignores the end, and five more for what is written about it. */
const LATEST_MS = TIMEOUT_MS + 15_000;

/** Numbers from 0 to 1 that look random and are the same each time. */
function numbers(seed: number): () => number {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 4_294_967_296;
  };
}

function wait(clock: FakeClock, ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const cancel = clock.setTimer(resolve, ms);
    signal?.addEventListener('abort', () => {
      cancel();
      reject(signal.reason);
    });
  });
}

/** A store that answers `kept`'s answers, or does not, or says that it failed although it did not. */
function faulty(kept: Store, clock: FakeClock, random: () => number): Store {
  const fails = random() * 0.15;
  const slow = fails + random() * 0.25;
  const silent = slow + (random() < 0.4 ? random() * 0.05 : 0);
  const slowMs = random() * 15_000;
  const methods = ['append', 'read', 'head', 'list', 'fork', 'delete', 'post', 'take'] as const;
  const answer = async (ask: () => unknown, ill: number, after: number, ms: number): Promise<unknown> => {
    if (ill < fails) {
      if (after < 0.5) await ask();
      throw new Error('The store failed.');
    }
    if (ill < slow) await wait(clock, ms);
    else if (ill < silent) await new Promise(() => {});
    return ask();
  };
  const all = methods.map((name) => [
    name,
    (...args: never[]) => {
      const ask = () => (kept[name] as (...args: never[]) => unknown)(...args);
      return answer(ask, random(), random(), random() * slowMs);
    },
  ]);
  return Object.fromEntries(all) as unknown as Store;
}

function world(seed: number, clock: FakeClock, kept: Store): Agent {
  const random = numbers(seed);
  const work = tool({
    name: 'work',
    description: 'Works.',
    input: z.any(),
    async execute(_, ctx) {
      const how = random();
      if (how < 0.1) await new Promise(() => {});
      if (how < 0.5) await wait(clock, random() * 2000, ctx.signal);
      if (how > 0.95) throw new Error('The tool failed.');
      return 'ok';
    },
  });
  const step = () => {
    const what = random();
    const call = () => ({ name: random() < 0.5 ? 'work' : 'child' });
    if (what < 0.5) return toolCalls(...Array.from({ length: 1 + Math.floor(random() * 3) }, call));
    if (what < 0.55) return hang('x');
    if (what < 0.65) return failWith(Object.assign(new Error('Overloaded.'), { status: 503 }));
    return text('done');
  };
  const model = () => scriptedModel([step], { repeat: true });
  const middleware = (): Middleware[] =>
    random() < 0.4 ? [retry({ attempts: 3, on: random() < 0.5 ? 'tool' : 'model', minDelayMs: 200 })] : [];
  const leaf = tool({ name: 'child', description: 'No child.', input: z.any(), execute: () => 'leaf' });
  const grandchild = new Agent({ model: model(), tools: [work, leaf], clock, middleware: middleware() });
  const child = new Agent({
    model: model(),
    tools: [work, grandchild.asTool({ name: 'child', description: 'Helps.' })],
    clock,
    middleware: middleware(),
  });
  return new Agent({
    model: model(),
    tools: [work, child.asTool({ name: 'child', description: 'Helps.' })],
    clock,
    store: faulty(kept, clock, random),
    middleware: middleware(),
    limits: { timeoutMs: TIMEOUT_MS, turns: 10 },
  });
}

it(`D23, D24 ${RUNS} runs end in time, whatever their store does, and their sessions can be continued`, async () => {
  const failed: string[] = [];
  for (let seed = 1; seed <= RUNS; seed++) {
    const clock = fakeClock(1_000_000);
    const kept = memoryStore();
    const random = numbers(seed + 10_000);
    const controller = new AbortController();
    const abortAt = random() < 0.3 ? random() * TIMEOUT_MS : Number.POSITIVE_INFINITY;
    const session = world(seed, clock, kept).session('s');
    let over = false;
    const { signal } = controller;
    const run = random() < 0.5 ? session.run('go', { signal }) : session.stream('go', { signal }).result;
    run
      .catch(() => {})
      .finally(() => {
        over = true;
      });
    for (let ms = 0; !over && ms <= LATEST_MS; ms += 250) {
      if (ms >= abortAt) controller.abort();
      await clock.advance(250);
    }
    if (!over) failed.push(`seed ${seed}: not over after ${LATEST_MS} ms`);
    // What the store was asked for may still happen.
    for (let i = 0; i < 20; i++) await clock.advance(1000);
    try {
      const next = new Agent({ model: scriptedModel(['fine']), store: kept });
      for (const { sessionId } of (await kept.list({ limit: 1000 })).sessions)
        await next.session(sessionId).messages();
      await next.session('s').run('go on');
    } catch (error) {
      failed.push(`seed ${seed}: ${(error as Error).message}`);
    }
  }
  expect(failed).toEqual([]);
});
