/** Tool calls that take too long, and runs that are aborted while tools run. */
import { Agent, defineState, type Middleware, type ToolContext } from 'allium';
import { fakeClock, scriptedModel } from 'allium/testing';
import { describe, expect, it } from 'vitest';
import { deferred, settle, watched } from '../../../../../test/run-checks.js';
import { calls, make, results } from '../../../../../test/tool-batch-setup.js';

describe('timeouts and aborts', () => {
  it('cancel a tool through its signal when its time is over, and drop what comes later', async () => {
    const clock = fakeClock();
    const late = deferred<string>();
    let signal: AbortSignal | undefined;
    const slow = make(
      'slow',
      (_, ctx) => {
        signal = ctx.signal;
        return late.promise;
      },
      { timeoutMs: 100 },
    );
    const agent = new Agent({
      model: scriptedModel([calls('slow', 'fast'), 'end']),
      tools: [slow, make('fast', () => 'fast')],
      clock,
    });
    const running = watched(agent, 'go');
    await clock.advance(99);
    expect(signal?.aborted).toBe(false);
    await clock.advance(1);
    expect(signal?.aborted).toBe(true);
    const { result } = await running;
    late.resolve('too late');
    await settle();
    expect(results(result.messages)).toEqual(['"slow" failed: "slow" did not finish within 100 ms.', 'fast']);
    expect(clock.pending).toBe(0);
  });

  it('clear the timer of a tool that is in time', async () => {
    const clock = fakeClock();
    const agent = new Agent({
      model: scriptedModel([calls('quick'), 'end']),
      tools: [make('quick', async () => 'in time', { timeoutMs: 100 })],
      clock,
    });
    expect(results((await watched(agent, 'go')).result.messages)).toEqual(['in time']);
    expect(clock.pending).toBe(0);
  });

  it('do not count the time a person takes to answer, just as when the run suspends', async () => {
    const clock = fakeClock();
    const answer = deferred();
    const asks = make(
      'asks',
      async (_, ctx) => {
        await ctx.suspend({ title: 'May I?' });
        return new Promise(() => {});
      },
      { timeoutMs: 100 },
    );
    const agent = new Agent({
      model: scriptedModel([calls('asks'), 'end']),
      tools: [asks],
      clock,
      onRequest: () => answer.promise.then(() => ({ type: 'approve' })),
    });
    const running = watched(agent, 'go');
    await clock.advance(5000);
    answer.resolve();
    await clock.advance(99);
    expect(clock.pending).toBe(1);
    await clock.advance(1);
    expect(results((await running).result.messages)).toEqual([
      '"asks" failed: "asks" did not finish within 100 ms.',
    ]);
    expect(clock.pending).toBe(0);
  });

  it('are not polled while a person is asked', async () => {
    const clock = fakeClock();
    let timers = 0;
    const setTimer: typeof clock.setTimer = (fn, ms) => {
      timers++;
      return clock.setTimer(fn, ms);
    };
    const answer = deferred();
    const asks = make(
      'asks',
      async (_, ctx) => {
        await new Promise<void>((resolve) => clock.setTimer(resolve, 99));
        await ctx.suspend({ title: 'May I?' });
        return 'done';
      },
      { timeoutMs: 100 },
    );
    const agent = new Agent({
      model: scriptedModel([calls('asks'), 'end']),
      tools: [asks],
      clock: { now: clock.now, setTimer },
      limits: { timeoutMs: 100 },
      onRequest: () => answer.promise.then(() => ({ type: 'approve' })),
    });
    const running = agent.run('go');
    await clock.advance(99 + 10_000);
    answer.resolve();
    expect(results((await running).messages)).toEqual(['done']);
    expect(timers).toBeLessThan(500);
  });

  it('use the time that a layer sets', async () => {
    const clock = fakeClock();
    const layer: Middleware = {
      beforeTool: (ctx) => {
        ctx.timeoutMs = 5;
      },
    };
    const agent = new Agent({
      model: scriptedModel([calls('never'), 'end']),
      tools: [make('never', () => new Promise(() => {}))],
      clock,
      middleware: [layer],
    });
    const running = watched(agent, 'go');
    await clock.advance(5);
    expect(results((await running).result.messages)).toEqual([
      '"never" failed: "never" did not finish within 5 ms.',
    ]);
  });

  it('show no update of a call that has ended', async () => {
    const clock = fakeClock();
    let update: ((text: string) => void) | undefined;
    const slow = make(
      'slow',
      (_, ctx) => {
        update = (said) => ctx.update(said);
        void ctx.update('working', { percent: 1 });
        return new Promise(() => {});
      },
      { timeoutMs: 10 },
    );
    const agent = new Agent({ model: scriptedModel([calls('slow'), 'end']), tools: [slow], clock });
    const running = watched(agent, 'go');
    await clock.advance(10);
    update!('late');
    const { events } = await running;
    expect(events.filter(({ type }) => type === 'tool_execution_update')).toMatchObject([
      { update: [{ text: 'working' }], details: { percent: 1 } },
    ]);
  });

  it('keep ctx.signal aborted for a tool that polls it later, but not for the hooks around it', async () => {
    const clock = fakeClock();
    let held: ToolContext | undefined;
    const slow = make(
      'slow',
      (_, ctx) => {
        held = ctx;
        return new Promise(() => {});
      },
      { timeoutMs: 10 },
    );
    const heard: boolean[] = [];
    const agent = new Agent({
      model: scriptedModel([calls('slow'), 'end']),
      tools: [slow],
      clock,
      middleware: [{ afterToolCall: (ctx) => void heard.push(ctx.signal.aborted) }],
    });
    const running = watched(agent, 'go');
    await clock.advance(10);
    await running;
    expect(held!.signal.aborted).toBe(true);
    expect(heard).toEqual([false]);
  });

  it('leave nothing of the attempt that was too slow: no update, no state, no question, no stop', async () => {
    const clock = fakeClock();
    const cell = defineState<readonly string[]>({ name: 'said', scope: 'session', initial: [] });
    const attempts: ToolContext[] = [];
    const second = deferred<string>();
    const slow = make(
      'slow',
      (_, ctx) => {
        attempts.push(ctx);
        ctx.state.update(cell, (said) => [...said, `attempt ${attempts.length}`]);
        return attempts.length === 1 ? new Promise(() => {}) : second.promise;
      },
      { timeoutMs: 10 },
    );
    const retry: Middleware = { name: 'again', state: [cell], onError: () => 'retry' };
    const agent = new Agent({
      model: scriptedModel([calls('slow'), 'end']),
      tools: [slow],
      clock,
      middleware: [retry],
    });
    const running = watched(agent, 'go');
    await clock.advance(10);
    const [dead] = attempts;
    void dead!.update('late');
    dead!.state.update(cell, (said) => [...said, 'late']);
    await expect(dead!.suspend({ title: 'Late?' })).rejects.toMatchObject({ code: 'TOOL_TIMEOUT' });
    expect(() => dead!.stop('stopped', 'late')).toThrow('late');
    second.resolve('in time');
    const { result, events } = await running;
    expect(result.status).toBe('done');
    expect(results(result.messages)).toEqual(['in time']);
    expect(events.filter(({ type }) => type === 'tool_execution_update')).toEqual([]);
    expect(events.filter(({ type }) => type === 'state_change')).toMatchObject([{ value: ['attempt 2'] }]);
  });

  it('keep what a tool wrote that was in time, for the layers around it as well', async () => {
    const clock = fakeClock();
    const cell = defineState({ name: 'count', scope: 'session', initial: 0 });
    const quick = make(
      'quick',
      async (_, ctx) => {
        ctx.state.update(cell, (count) => count + 1);
        ctx.metadata.note = 'of the tool';
        if (ctx.toolCall.id === 'c1') throw new Error('broken');
        return 'in time';
      },
      { timeoutMs: 10 },
    );
    const seen: unknown[] = [];
    const layer: Middleware = { state: [cell], afterTool: (ctx) => void seen.push(ctx.metadata.note) };
    const agent = new Agent({
      model: scriptedModel([calls('quick', 'quick'), 'end']),
      tools: [quick],
      clock,
      middleware: [layer],
    });
    const { events } = await watched(agent, 'go');
    expect(seen).toEqual(['of the tool']);
    // The second call failed by itself: what it wrote counts as it does for a tool without a limit.
    expect(events.filter(({ type }) => type === 'state_change')).toMatchObject([{ value: 1 }, { value: 2 }]);
  });
});
