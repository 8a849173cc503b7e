/** Measures how long a run is active. Waiting for readers and people doesn't count. */

import { type Clock, monotonic } from '../lib/clock.js';

/** Active time is journaled each time it has grown by this share of its limit, so that a crash loses little. */
const SHARE = 0.01;

/** While a run is paused, its time is checked no more often than this. */
const LOOK_MS = 50;

/** Calls `fn` when the run has been active for `ms`. The returned function cancels that. */
export function afterActive(
  run: { readonly clock: Clock; readonly pausedMs: number; readonly isPaused: boolean },
  ms: number,
  fn: () => void,
): () => void {
  const { clock } = run;
  const start = monotonic(clock) - run.pausedMs;
  let cancel: () => void;
  const check = (): void => {
    const left = start + ms - (monotonic(clock) - run.pausedMs);
    if (left <= 0) fn();
    else cancel = clock.setTimer(check, run.isPaused ? Math.max(left, LOOK_MS) : left);
  };
  cancel = clock.setTimer(check, ms);
  return () => cancel();
}

export class ActiveTime {
  private readonly started: number;
  private pausedFor = 0;
  private pausedSince = 0;
  private pauses = 0;

  constructor(
    private readonly clock: Clock,
    /** Active time in earlier parts of the run. */
    private readonly before: number,
    private readonly limitMs: number | undefined,
  ) {
    this.started = monotonic(clock);
  }

  /** Over all parts of the run. */
  get ms(): number {
    return this.before + (monotonic(this.clock) - this.started - this.pausedMs);
  }

  /** Time the run was paused, including the current pause. */
  get pausedMs(): number {
    return this.pausedFor + (this.pauses > 0 ? monotonic(this.clock) - this.pausedSince : 0);
  }

  get isPaused(): boolean {
    return this.pauses > 0;
  }

  /** Time spent in here doesn't count. Overlapping pauses count once. */
  async paused<T>(wait: () => Promise<T>): Promise<T> {
    if (this.pauses++ === 0) this.pausedSince = monotonic(this.clock);
    try {
      return await wait();
    } finally {
      if (--this.pauses === 0) this.pausedFor += monotonic(this.clock) - this.pausedSince;
    }
  }

  /** Is it time to journal it again? */
  isDue(written: number): boolean {
    return this.limitMs !== undefined && this.ms - written >= this.limitMs * SHARE;
  }
}
