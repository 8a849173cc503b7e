/** Many calls that wait at once: each has a signal of its own, so Node sees no leak of listeners. */
import { Agent, type Middleware, type Model, tool } from 'allium';
import { concurrency } from 'allium/middleware/concurrency';
import { idempotency } from 'allium/middleware/idempotency';
import { rateLimit } from 'allium/middleware/rate-limit';
import { retry } from 'allium/middleware/retry';
import { toolCache } from 'allium/middleware/tool-cache';
import { fakeClock, scriptedModel, text, toolCalls } from 'allium/testing';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { z } from 'zod';
import { settle } from './run-checks.js';

const COUNT = 40;
const warnings: Error[] = [];
const listen = (warning: Error) => void warnings.push(warning);

beforeEach(() => {
  warnings.length = 0;
  process.on('warning', listen);
});
afterEach(() => void process.off('warning', listen));

/** A store that answers later. */
function slowMap(): Map<string, never> {
  const map = new Map<string, never>();
  const later = async (act: () => unknown): Promise<unknown> => {
    await settle();
    return act();
  };
  return {
    get: (key: string) => later(() => map.get(key)),
    set: (key: string, value: never) => later(() => void map.set(key, value)),
    delete: (key: string) => later(() => map.delete(key)),
  } as never;
}

const helper = (fails: number): Model => {
  let asked = 0;
  return {
    provider: 'test',
    id: 'helper',
    stream: (...given) => {
      if (++asked <= fails) throw new Error('busy');
      return scriptedModel([text('helped')]).stream(...given);
    },
  };
};

const retryAll = (on: 'model' | 'tool') =>
  retry({ on, retryOn: () => true, minDelayMs: 10, maxDelayMs: 10, jitter: 'none' });

const LISTS: Record<string, () => Middleware[]> = {
  retry: () => [retryAll('tool')],
  'retry of models that tools ask': () => [retryAll('model')],
  rateLimit: () => [rateLimit({ limit: 1, perMs: 1, scope: 'tool' })],
  'rateLimit with a limiter': () => [
    rateLimit({ limiter: { consume: () => settle() }, scope: 'tool', maxWaitMs: 60_000 }),
  ],
  concurrency: () => [concurrency({ max: 1, scope: 'tool' })],
  toolCache: () => [toolCache({ tools: ['work'], store: slowMap(), key: () => 'same' })],
  idempotency: () => [idempotency({ store: slowMap(), key: () => 'same' })],
  'idempotency of different calls': () => [idempotency({ store: slowMap() })],
  nothing: () => [],
  'all of them': () =>
    Object.entries(LISTS).flatMap(([name, list]) => (name === 'all of them' ? [] : list())),
};

it.each(Object.entries(LISTS))('%s', async (_, list) => {
  const clock = fakeClock();
  const failed = new Set<number>();
  const model = helper(COUNT);
  const work = tool({
    name: 'work',
    description: '',
    input: z.object({ n: z.number() }),
    async execute({ n }, ctx) {
      ctx.signal.addEventListener('abort', () => {});
      await settle();
      const asked = await ctx.generate(model, { messages: 'Help.' }).catch(() => undefined);
      if (!failed.has(n) && failed.add(n)) throw new Error('busy');
      return `done ${n} ${asked?.role}`;
    },
  });
  const agent = new Agent({
    model: scriptedModel([
      toolCalls(...Array.from({ length: COUNT }, (_, n) => ({ name: 'work', args: { n } }))),
      text('done'),
    ]),
    clock,
    tools: [work],
    middleware: list().map((one, i) => ({ ...one, name: `${one.name}-${i}` })),
  });
  const running = agent.run('go');
  let over = false;
  void running.finally(() => {
    over = true;
  });
  while (!over) {
    await settle();
    await clock.advance(20);
  }
  expect((await running).status).toBe('done');
  await settle();
  expect(warnings.map(({ name, message }) => `${name}: ${message}`)).toEqual([]);
});

it('of models that one hook asks', async () => {
  const clock = fakeClock();
  const model = helper(COUNT);
  const asks: Middleware = {
    name: 'asks',
    transformContext: async (messages, ctx) => {
      await Promise.all(Array.from({ length: COUNT }, () => ctx.generate(model, { messages: 'Help.' })));
      return messages;
    },
  };
  const agent = new Agent({
    model: scriptedModel([text('done')]),
    clock,
    middleware: [asks, retryAll('model')],
  });
  const running = agent.run('go');
  await settle();
  await clock.advance(20);
  expect((await running).status).toBe('done');
  await settle();
  expect(warnings).toEqual([]);
});
