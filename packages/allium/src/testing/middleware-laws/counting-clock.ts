/** A clock that counts the timers set through it. */

import { type Clock, monotonic } from '../../index.js';

export interface CountingClock extends Clock {
  readonly pending: number;
  /** How many timers were ever set. */
  readonly set: number;
}

/** The same clock, seen through a counter. */
export function counting(clock: Clock): CountingClock {
  const open = new Set<object>();
  let set = 0;
  return {
    now: () => clock.now(),
    monotonic: () => monotonic(clock),
    setTimer(fn, ms) {
      const timer = {};
      open.add(timer);
      set++;
      const cancel = clock.setTimer(() => {
        open.delete(timer);
        fn();
      }, ms);
      return () => {
        open.delete(timer);
        cancel();
      };
    },
    get pending() {
      return open.size;
    },
    get set() {
      return set;
    },
  };
}
