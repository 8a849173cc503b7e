/** A timer of active time that can be reset at no cost. */

import { type Clock, monotonic } from '../../index.js';

/** While a run only waits, its time is checked no more often than this. */
const LOOK_MS = 50;

export class Alarm {
  private cancel: (() => void) | undefined = undefined;
  private ms = 0;
  private since = 0;
  private pausedBefore = 0;
  private late: (ms: number) => void = ignore;

  /** `pausedMs` of the call grows with time that doesn't count. */
  constructor(
    private readonly clock: Clock,
    private readonly call: { readonly pausedMs: number; readonly isPaused: boolean },
  ) {}

  /** Calls `late` after `ms`, instead of what was set before; never if there is no limit. */
  set(ms: number | undefined, late: (ms: number) => void): void {
    this.clear();
    if (ms === undefined || ms === Number.POSITIVE_INFINITY) return;
    this.ms = ms;
    this.late = late;
    this.start(ms);
    this.restart();
  }

  /** Starts counting again. The timer is left as it is: when it fires, it notices that it is early and continues. */
  restart(): void {
    if (this.cancel === undefined) return;
    this.since = monotonic(this.clock);
    this.pausedBefore = this.call.pausedMs;
  }

  clear(): void {
    this.cancel?.();
    this.cancel = undefined;
  }

  private start(ms: number): void {
    this.cancel = this.clock.setTimer(() => this.fire(), ms);
  }

  private fire(): void {
    const active = monotonic(this.clock) - this.since - (this.call.pausedMs - this.pausedBefore);
    const left = this.ms - active;
    this.cancel = undefined;
    if (left > 0) this.start(Math.max(left, this.call.isPaused ? LOOK_MS : 1));
    else this.late(this.ms);
  }
}

function ignore(): void {}
