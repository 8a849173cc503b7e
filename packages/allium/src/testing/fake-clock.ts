/** A clock that stands still until it is told to go on. */
import type { Clock } from '../kernel/clock.js';

export interface FakeClock extends Clock {
  /** Moves time on and fires what is due, in order, letting promises settle in between. */
  advance(ms: number): Promise<void>;
  /** Timers that have been set and neither fired nor cancelled. */
  readonly pending: number;
}

export function fakeClock(start = 0): FakeClock {
  let now = start;
  let order = 0;
  const timers = new Set<{ readonly at: number; readonly order: number; readonly fn: () => void }>();
  return {
    now: () => now,
    setTimer(fn, ms) {
      const timer = { at: now + Math.max(0, ms), order: order++, fn };
      timers.add(timer);
      return () => timers.delete(timer);
    },
    async advance(ms) {
      const end = now + ms;
      for (;;) {
        await settle();
        const due = [...timers].filter((timer) => timer.at <= end).sort((a, b) => a.at - b.at || a.order - b.order)[0];
        if (!due) break;
        timers.delete(due);
        now = Math.max(now, due.at);
        due.fn();
      }
      now = end;
      await settle();
    },
    get pending() {
      return timers.size;
    },
  };
}

/** Lets everything that is ready run. */
function settle(): Promise<void> {
  return new Promise((resolve) => setImmediate(() => setImmediate(resolve)));
}
