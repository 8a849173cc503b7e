import { describe, expect, it } from 'vitest';
import { sleep } from '../index.js';
import { fakeClock } from './fake-clock.js';

describe('fakeClock', () => {
  it('stands still until it is advanced', async () => {
    const clock = fakeClock(1000);
    expect(clock.now()).toBe(1000);
    await clock.advance(0);
    expect(clock.now()).toBe(1000);
    await clock.advance(250);
    expect(clock.now()).toBe(1250);
  });

  it('setNow() changes the time of day, but no timer and no duration', async () => {
    const clock = fakeClock(1000);
    let fired = false;
    clock.setTimer(() => {
      fired = true;
    }, 100);
    await clock.advance(40);
    clock.setNow(-5000);
    expect([clock.now(), clock.monotonic!()]).toEqual([-5000, 40]);
    await clock.advance(59);
    expect(fired).toBe(false);
    await clock.advance(1);
    expect([fired, clock.now(), clock.monotonic!()]).toEqual([true, -4940, 100]);
    expect(() => clock.setNow(Number.NaN)).toThrow('Expected `time` to be a time in milliseconds');
  });

  it('fires timers when they are due, and those of one moment in the order they were set', async () => {
    const clock = fakeClock();
    const fired: string[] = [];
    const at = (name: string) => () => fired.push(`${name} at ${clock.now()}`);
    clock.setTimer(at('c'), 30);
    clock.setTimer(at('a'), 10);
    clock.setTimer(at('b'), 10);
    await clock.advance(9);
    expect(fired).toEqual([]);
    await clock.advance(21);
    expect(fired).toEqual(['a at 10', 'b at 10', 'c at 30']);
    expect(clock.pending).toBe(0);
  });

  it('fires timers that are set while it advances, when they are due', async () => {
    const clock = fakeClock();
    const slept: number[] = [];
    const work = (async () => {
      for (const ms of [10, 20, 30]) {
        await sleep(ms, undefined, clock);
        slept.push(clock.now());
      }
    })();
    await clock.advance(59);
    expect(slept).toEqual([10, 30]);
    await clock.advance(1);
    await work;
    expect(slept).toEqual([10, 30, 60]);
  });

  it('takes anything but a positive number as "at once", but fires only when it is advanced', async () => {
    const clock = fakeClock();
    let fired = 0;
    for (const ms of [0, -5, Number.NaN]) clock.setTimer(() => fired++, ms);
    expect([fired, clock.pending]).toEqual([0, 3]);
    await clock.advance(0);
    expect([fired, clock.pending]).toEqual([3, 0]);
  });

  it('does not fire a cancelled timer, even if another timer cancelled it', async () => {
    const clock = fakeClock();
    const fired: string[] = [];
    const cancel = clock.setTimer(() => fired.push('b'), 20);
    clock.setTimer(() => {
      fired.push('a');
      cancel();
      cancel();
    }, 10);
    expect(clock.pending).toBe(2);
    await clock.advance(100);
    expect(fired).toEqual(['a']);
    expect(clock.pending).toBe(0);
  });

  it('advanceToNext() fires the next timer, and returns false if there is none', async () => {
    const clock = fakeClock();
    clock.setTimer(() => {}, 86_400_000);
    clock.setTimer(() => {}, Number.POSITIVE_INFINITY);
    expect(await clock.advanceToNext()).toBe(true);
    expect(clock.now()).toBe(86_400_000);
    expect(await clock.advanceToNext()).toBe(false);
    expect(clock.pending).toBe(1);
  });

  it('never goes back', async () => {
    const clock = fakeClock(100);
    await expect(clock.advance(-1)).rejects.toThrow('Expected `ms` to be a number ≥ 0, got -1.');
    await Promise.all([clock.advance(50), clock.advance(20)]);
    expect(clock.now()).toBe(150);
  });

  it('refuses a start that is not a time, and a timer that is not a function', () => {
    expect(() => fakeClock(Number.NaN)).toThrow('Expected `start` to be a time in milliseconds, got NaN.');
    expect(() => fakeClock().setTimer('x' as never, 1)).toThrow('Expected `fn` to be a function, got "x".');
  });

  it('lets promises settle before and after it fires a timer', async () => {
    const clock = fakeClock();
    const order: string[] = [];
    void Promise.resolve()
      .then(() => Promise.resolve())
      .then(() => order.push('settled before'));
    clock.setTimer(() => {
      order.push('timer');
      void Promise.resolve().then(() => order.push('settled after'));
    }, 1);
    await clock.advance(1);
    expect(order).toEqual(['settled before', 'timer', 'settled after']);
  });
});
