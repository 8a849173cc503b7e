/** The wall clock may be set while something lasts: durations and limits do not notice. */
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { Agent, sleep, tool } from '../packages/allium/src/index.js';
import {
  cache,
  circuitBreaker,
  rateLimit,
  stopwatch,
  timeout,
} from '../packages/allium/src/middleware/index.js';
import { failWith, fakeClock, hang, scriptedModel, toolCalls } from '../packages/allium/src/testing/index.js';

const HOUR = 3_600_000;
const START = 10 * HOUR;

/** How `work` ends when the wall clock is set to `to` at once and 100 ms pass. */
async function within100(
  work: (clock: ReturnType<typeof fakeClock>) => Promise<unknown>,
  to: number,
): Promise<unknown> {
  const clock = fakeClock(START);
  let ended: unknown = 'still running';
  work(clock).then(
    (value) => {
      ended = value;
    },
    (error) => {
      ended = error;
    },
  );
  await clock.advance(0);
  clock.setNow(to);
  await clock.advance(99);
  expect(ended).toBe('still running');
  await clock.advance(1);
  return ended;
}

const idle = tool({
  name: 'idle',
  description: 'Does nothing for ever.',
  input: z.object({}),
  timeoutMs: 100,
  execute: () => new Promise<string>(() => {}),
});

describe.each([
  ['set back an hour', START - HOUR],
  ['set forward an hour', START + HOUR],
])('with the wall clock %s', (_, to) => {
  it('limits.timeoutMs ends the run in time', async () => {
    const ended = await within100(
      (clock) => new Agent({ model: scriptedModel([hang()]), clock, limits: { timeoutMs: 100 } }).run('hi'),
      to,
    );
    expect(ended).toMatchObject({ status: 'stopped', stop: { reason: 'timeout' } });
  });

  it('limits.timeoutMs of a stream ends it in time', async () => {
    const ended = await within100(
      (clock) =>
        new Agent({ model: scriptedModel([hang('a')]), clock, limits: { timeoutMs: 100 } }).stream('hi')
          .result,
      to,
    );
    expect(ended).toMatchObject({ status: 'stopped', stop: { reason: 'timeout' } });
  });

  it('a time limit goes on counting in a resumed run', async () => {
    const clock = fakeClock(START);
    const ask = tool({
      name: 'ask',
      description: 'Asks.',
      input: z.object({}),
      async execute(_args, ctx) {
        await sleep(60, ctx.signal, clock);
        await ctx.suspend({ title: 'Sure?' });
        return 'sure';
      },
    });
    const model = scriptedModel([toolCalls({ name: 'ask' }), hang()]);
    const session = new Agent({ model, tools: [ask], clock, limits: { timeoutMs: 100 } }).session('s');
    const first = session.run('hi');
    await clock.advance(60);
    const { pending } = await first;
    clock.setNow(to);
    const second = session.resume({ answers: { [pending[0]!.id]: { type: 'approve' } } });
    // The body of the tool runs again, so the limit cuts it off after 40 ms more.
    await clock.advance(40);
    expect(await second).toMatchObject({ status: 'stopped', stop: { reason: 'timeout' } });
  });

  it.each([
    ['modelMs', { modelMs: 100 }],
    ['firstTokenMs', { firstTokenMs: 100 }],
    ['idleMs', { idleMs: 100 }],
  ])('timeout({ %s }) ends a model call in time', async (_name, limits) => {
    const step = 'firstTokenMs' in limits ? hang() : hang('a');
    const ended = await within100(
      (clock) => new Agent({ model: scriptedModel([step]), clock, middleware: [timeout(limits)] }).run('hi'),
      to,
    );
    expect(ended).toMatchObject({ code: 'MODEL_TIMEOUT' });
  });

  it.each([
    ["the tool's own timeoutMs", []],
    ['timeout({ toolMs })', [timeout({ toolMs: 100 })]],
  ])('%s ends a tool call in time', async (_name, middleware) => {
    const model = scriptedModel([toolCalls({ name: 'idle' }), 'gave up']);
    const ended = await within100(
      (clock) => new Agent({ model, tools: [idle], clock, middleware }).run('hi'),
      to,
    );
    expect(ended).toMatchObject({ status: 'done', text: 'gave up' });
  });

  it('rateLimit lets the next call begin in time', async () => {
    const ended = await within100(async (clock) => {
      const agent = new Agent({
        model: scriptedModel(['one', 'two']),
        clock,
        middleware: [rateLimit({ limit: 1, perMs: 100 })],
      });
      await agent.run('hi');
      return agent.run('again');
    }, to);
    expect(ended).toMatchObject({ text: 'two' });
  });

  it('circuitBreaker tries again in time, and not before', async () => {
    const clock = fakeClock(START);
    const agent = new Agent({
      model: scriptedModel([failWith(Object.assign(new Error('down'), { status: 503 })), 'up']),
      clock,
      middleware: [circuitBreaker({ failures: 1, cooldownMs: 100 })],
    });
    await expect(agent.run('hi')).rejects.toThrow('down');
    clock.setNow(to);
    await clock.advance(99);
    await expect(agent.run('hi')).rejects.toMatchObject({ code: 'CIRCUIT_OPEN' });
    await clock.advance(1);
    expect(await agent.run('hi')).toMatchObject({ text: 'up' });
  });

  it('an answer that is cached in memory lives as long as it should', async () => {
    const clock = fakeClock(START);
    const agent = new Agent({
      model: scriptedModel(['one', 'two']),
      clock,
      middleware: [cache({ ttlMs: 100 })],
    });
    expect((await agent.run('hi')).text).toBe('one');
    clock.setNow(to);
    await clock.advance(99);
    expect((await agent.run('hi')).text).toBe('one');
    await clock.advance(1);
    expect((await agent.run('hi')).text).toBe('two');
  });

  it('stopwatch says how long it took', async () => {
    const clock = fakeClock(START);
    const lines: string[] = [];
    const nap = tool({
      name: 'nap',
      description: 'Waits.',
      input: z.object({}),
      execute: async (_args, ctx) => {
        await sleep(100, ctx.signal, clock);
        return 'rested';
      },
    });
    const model = scriptedModel([toolCalls({ name: 'nap' }), 'done']);
    const run = new Agent({
      model,
      tools: [nap],
      clock,
      middleware: [stopwatch({ log: (line) => lines.push(line) })],
    }).run('x');
    await clock.advance(0);
    clock.setNow(to);
    await clock.advance(100);
    await run;
    expect(lines[1]).toContain('nap 100 ms');
  });
});
