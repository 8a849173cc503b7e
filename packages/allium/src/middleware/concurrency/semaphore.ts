/** At most `max` at once; the others wait in order. */

import type { Clock } from '../../index.js';

export class Semaphore {
  private active = 0;
  // A set keeps the order and lets anyone leave.
  private readonly waiting = new Set<() => void>();

  constructor(private readonly max: number) {}

  get isIdle(): boolean {
    return this.active === 0 && this.waiting.size === 0;
  }

  get isFull(): boolean {
    return this.active >= this.max || this.waiting.size > 0;
  }

  /** Takes a place if one is free. */
  tryEnter(): boolean {
    if (this.isFull) return false;
    this.active++;
    return true;
  }

  /** Waits for a place. Resolves with false when `maxWaitMs` have passed; rejects when the signal aborts. */
  enter(signal: AbortSignal, clock: Clock, maxWaitMs: number): Promise<boolean> {
    return new Promise((resolve, reject) => {
      if (signal.aborted) return reject(signal.reason);
      const leaving = (act: () => void) => () => {
        cancel?.();
        this.waiting.delete(admit);
        signal.removeEventListener('abort', aborted);
        act();
      };
      const admit = leaving(() => resolve(true));
      const aborted = leaving(() => reject(signal.reason));
      const late = leaving(() => resolve(false));
      const cancel = maxWaitMs === Number.POSITIVE_INFINITY ? undefined : clock.setTimer(late, maxWaitMs);
      signal.addEventListener('abort', aborted);
      this.waiting.add(admit);
    });
  }

  /** Gives a place back, to the call that has waited longest. */
  leave(): void {
    const [next] = this.waiting;
    if (next) next();
    else this.active--;
  }
}
