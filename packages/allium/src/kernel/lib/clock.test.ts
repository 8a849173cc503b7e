import { monotonic, sleep, systemClock } from 'allium';
import { fakeClock } from 'allium/testing';
import { describe, expect, it, vi } from 'vitest';

describe('sleep', () => {
  it('waits for the given time', async () => {
    const clock = fakeClock();
    const done = vi.fn();
    const waiting = sleep(100, undefined, clock).then(done);
    await clock.advance(99);
    expect(done).not.toHaveBeenCalled();
    await clock.advance(1);
    await waiting;
    expect(done).toHaveBeenCalledTimes(1);
  });

  it('rejects with the reason as soon as the signal aborts, and leaves no timer behind', async () => {
    const clock = fakeClock();
    const controller = new AbortController();
    const waiting = sleep(100, controller.signal, clock);
    expect(clock.pending).toBe(1);
    controller.abort(new Error('enough'));
    await expect(waiting).rejects.toThrow('enough');
    expect(clock.pending).toBe(0);
    await expect(sleep(100, controller.signal, clock)).rejects.toThrow('enough');
    expect(clock.pending).toBe(0);
  });

  it('removes its listener when it is over', async () => {
    const clock = fakeClock();
    const { signal } = new AbortController();
    const remove = vi.spyOn(signal, 'removeEventListener');
    const waiting = sleep(1, signal, clock);
    await clock.advance(1);
    await waiting;
    expect(remove).toHaveBeenCalledTimes(1);
  });
});

describe('systemClock', () => {
  it('fires and cancels real timers', async () => {
    const cancelled = vi.fn();
    systemClock.setTimer(cancelled, 0)();
    await new Promise<void>((resolve) => systemClock.setTimer(resolve, 0));
    expect(cancelled).not.toHaveBeenCalled();
    expect(Math.abs(systemClock.now() - Date.now())).toBeLessThan(1000);
  });

  it('fires after the whole time, also if that is longer than a timer can hold', () => {
    vi.useFakeTimers();
    const day = 24 * 3_600_000;
    const fired = vi.fn();
    const cancelled = vi.fn();
    systemClock.setTimer(fired, 60 * day);
    const cancel = systemClock.setTimer(cancelled, 60 * day);
    vi.advanceTimersByTime(60 * day - 1);
    expect(fired).not.toHaveBeenCalled();
    cancel();
    vi.advanceTimersByTime(1);
    expect(fired).toHaveBeenCalledTimes(1);
    vi.advanceTimersByTime(60 * day);
    expect([fired, cancelled].map(({ mock }) => mock.calls.length)).toEqual([1, 0]);
    vi.useRealTimers();
  });

  it('waits longer than a timer can hold, instead of firing at once', () => {
    vi.useFakeTimers();
    const fired = vi.fn();
    const cancel = systemClock.setTimer(fired, Number.MAX_SAFE_INTEGER);
    vi.advanceTimersByTime(1_000_000);
    cancel();
    vi.useRealTimers();
    expect(fired).not.toHaveBeenCalled();
  });
});

describe('systemClock', () => {
  it('measures durations with a clock that nobody can set', () => {
    const now = vi.spyOn(Date, 'now');
    const before = systemClock.monotonic!();
    now.mockReturnValue(0);
    expect(systemClock.now()).toBe(0);
    expect(systemClock.monotonic!()).toBeGreaterThanOrEqual(before);
    expect(Number.isInteger(systemClock.monotonic!())).toBe(true);
    now.mockRestore();
  });

  it('uses the wall clock of a clock that has nothing else', () => {
    expect(monotonic({ now: () => 7, setTimer: () => () => {} })).toBe(7);
  });
});
