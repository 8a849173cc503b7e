/** How a bench waits for a run: first for what happens by itself, then for time to pass. */

import { type FakeClock, settle } from '../fake-clock.js';
import type { Activity } from './activity.js';
import type { Bench, Running } from './bench.js';
import type { CountingClock } from './counting-clock.js';
import type { Observation } from './observation.js';
import type { RealWork } from './real-work.js';

/** After this many rounds without work, nothing more is expected to happen by itself, except in other threads. */
const QUIET_ROUNDS = 8;

export interface Waiting {
  readonly time: FakeClock;
  readonly clock: CountingClock;
  readonly activity: Activity;
  readonly work: RealWork;
  readonly timeoutMs: number;
}

export function waiting({
  time,
  clock,
  activity,
  work,
  timeoutMs,
}: Waiting): Pick<Bench, 'quiet' | 'idle' | 'finish'> {
  async function quiet(running?: Running): Promise<void> {
    for (let still = 0; still < QUIET_ROUNDS && !running?.ended; still = activity.working > 0 ? 0 : still + 1)
      await settle();
  }

  /** Does something still happen by itself, with the clock standing still? */
  async function stirs(running: Running): Promise<boolean> {
    const signs = () => [running.ended, activity.calls, activity.steps, time.pending, clock.set].join();
    return !running.ended && (await work.stirs(signs, clock.pending > 0));
  }

  async function idle(running: Running): Promise<void> {
    do await quiet(running);
    while (activity.hanging === 0 && (await stirs(running)));
  }

  async function finish(running: Running): Promise<Observation> {
    const deadline = Date.now() + timeoutMs;
    while (!running.ended) {
      await quiet(running);
      if (!(await stirs(running)) && !running.ended) await time.advanceToNext();
      if (!running.ended && Date.now() > deadline)
        throw new Error(`The run did not end within ${timeoutMs} ms.`);
    }
    return running.done;
  }

  return { quiet, idle, finish };
}
