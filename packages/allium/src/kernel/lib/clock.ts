/** The clock: all time in the kernel comes from here, so that tests can replace it. */
import { invalidOption } from './errors.js';

export interface Clock {
  /** Milliseconds since the epoch, for timestamps that other processes compare. It may jump. */
  now(): number;
  /** Milliseconds since some moment, never going back, for durations and limits. @default now() */
  monotonic?(): number;
  /** Calls `fn` once after `ms`. The returned function cancels that. */
  setTimer(fn: () => void, ms: number): () => void;
}

/** A timer can hold 31 bits: about 25 days. */
const LONGEST_TIMER = 2_147_483_647;

/** The clock of this machine. */
export const systemClock: Clock = {
  now: () => Date.now(),
  // Whole milliseconds, like `now`: durations are shown and stored.
  monotonic: () => Math.floor(performance.now()),
  setTimer(fn, ms) {
    // What isn't a number fires at once, as with `setTimeout`.
    if (!(ms > LONGEST_TIMER)) {
      const timer = setTimeout(fn, ms);
      return () => clearTimeout(timer);
    }
    const after = (): void => {
      cancel = systemClock.setTimer(fn, ms - LONGEST_TIMER);
    };
    let cancel = systemClock.setTimer(after, LONGEST_TIMER);
    return () => cancel();
  },
};

/** The time for measuring durations, which a change of the wall clock doesn't affect. */
export function monotonic(clock: Clock = systemClock): number {
  if (typeof clock?.now !== 'function')
    throw invalidOption('clock', 'an object with now() and setTimer()', clock);
  return clock.monotonic === undefined ? clock.now() : clock.monotonic();
}

const immediate = globalThis.setImmediate;

/** Calls `fn` once everything that is ready has run, before the process waits. It doesn't depend on a clock. */
export function soon(fn: () => void): void {
  if (immediate) immediate(fn);
  else setTimeout(fn, 0);
}

/** Calls `fn` as soon as every settled promise has been handled: sooner than `soon`. */
export const whenIdle: (fn: () => void) => void =
  (globalThis as { process?: { nextTick?: (fn: () => void) => void } }).process?.nextTick ?? queueMicrotask;
