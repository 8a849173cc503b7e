/** A clock that stands still until it is moved. */

import type { Clock } from '../index.js';
import { invalidOption } from '../kit/index.js';
export interface FakeClock extends Clock {
  /** Moves time on and fires the timers that are due, in order. Promises settle in between. */
  advance(ms: number): Promise<void>;
  /** Moves time on to the next timer and fires it; false if there is none. */
  advanceToNext(): Promise<boolean>;
  /** Sets the wall clock, as a person or a time server does. Timers and durations do not notice. */
  setNow(time: number): void;
  /** Timers that have been set and neither fired nor cancelled. */
  readonly pending: number;
}

interface Timer {
  readonly at: number;
  readonly order: number;
  readonly fn: () => void;
}

/**
 * Give it to anything that takes a `clock`, and no test has to wait for real time.
 *
 * @example
 * const clock = fakeClock();
 * const slept = sleep(1000, undefined, clock);
 * await clock.advance(1000);
 * await slept;
 */
export function fakeClock(start = 0): FakeClock {
  if (!Number.isFinite(start)) throw invalidOption('start', 'a time in milliseconds', start);
  let elapsed = 0;
  let wall = start;
  let order = 0;
  const timers = new Set<Timer>();
  const fireNext = async (end: number): Promise<boolean> => {
    await settle();
    const due = first(timers, end);
    if (!due) return false;
    timers.delete(due);
    elapsed = Math.max(elapsed, due.at);
    due.fn();
    return true;
  };
  return {
    now: () => wall + elapsed,
    monotonic: () => elapsed,
    setTimer(fn, ms) {
      if (typeof fn !== 'function') throw invalidOption('fn', 'a function', fn);
      // Like setTimeout, which takes anything but a positive number as "at once".
      const timer = { at: elapsed + (ms > 0 ? ms : 0), order: order++, fn };
      timers.add(timer);
      return () => void timers.delete(timer);
    },
    async advance(ms) {
      if (!(ms >= 0 && ms < Number.POSITIVE_INFINITY)) throw invalidOption('ms', 'a number ≥ 0', ms);
      const end = elapsed + ms;
      while (await fireNext(end));
      elapsed = Math.max(elapsed, end);
      await settle();
    },
    async advanceToNext() {
      const fired = await fireNext(Number.MAX_VALUE);
      await settle();
      return fired;
    },
    setNow(time) {
      if (!Number.isFinite(time)) throw invalidOption('time', 'a time in milliseconds', time);
      wall = time - elapsed;
    },
    get pending() {
      return timers.size;
    },
  };
}

function first(timers: Iterable<Timer>, end: number): Timer | undefined {
  let found: Timer | undefined;
  for (const timer of timers) {
    if (timer.at > end) continue;
    if (!found || timer.at < found.at || (timer.at === found.at && timer.order < found.order)) found = timer;
  }
  return found;
}

/** Lets everything run that is ready to. */
export function settle(): Promise<void> {
  return new Promise((resolve) => setImmediate(() => setImmediate(resolve)));
}
