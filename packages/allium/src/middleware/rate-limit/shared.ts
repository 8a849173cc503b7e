/** Counts somewhere else, for several processes. */

import { type Clock, monotonic, sleep } from '../../index.js';

/**
 * What counts: any limiter of rate-limiter-flexible, or anything like it.
 *
 * Contract: `consume` resolves when the call may begin, and rejects with `{ msBeforeNext }` if it may not yet. Any
 * other rejection is an error of its own, which fails the call.
 */
export interface SharedLimiter {
  consume(key: string, points: number): Promise<unknown>;
}

/** A call that asks for its turn. */
export interface Asked {
  readonly key: string;
  /** The longest it may wait. */
  readonly patienceMs: number;
  readonly clock: Clock;
  signal(): AbortSignal;
  /** Called when it has to wait. */
  waits(waitMs: number): void;
  refused(retryAfterMs: number): Error;
}

export class Shared {
  /** Calls of this process that wait for a key, in order: only the first one asks. */
  private readonly lines = new Map<string, Line>();

  constructor(private readonly limiter: SharedLimiter) {}

  async take(asked: Asked): Promise<void> {
    if (asked.patienceMs === 0) return this.ask(asked, monotonic(asked.clock));
    const { key, clock } = asked;
    const until = monotonic(clock) + asked.patienceMs;
    const line = this.lines.get(key) ?? new Line();
    this.lines.set(key, line);
    try {
      await line.enter(asked);
      try {
        await this.ask(asked, until, line);
      } finally {
        line.leave();
      }
    } finally {
      if (line.isEmpty) this.lines.delete(key);
    }
  }

  /** Asks until the call may begin, or would have to wait for too long. */
  private async ask(asked: Asked, until: number, line?: Line): Promise<void> {
    const { key, clock } = asked;
    for (;;) {
      const waitMs = await this.consume(key, asked.signal());
      if (waitMs === undefined) return;
      if (monotonic(clock) + waitMs > until) throw asked.refused(waitMs);
      if (line) line.nextAt = monotonic(clock) + waitMs;
      asked.waits(waitMs);
      await sleep(waitMs, asked.signal(), clock);
    }
  }

  /** Undefined, or the milliseconds until it is worth asking again. */
  private async consume(key: string, signal: AbortSignal): Promise<number | undefined> {
    try {
      await untilAborted(this.limiter.consume(key, 1), signal);
      return undefined;
    } catch (refusal) {
      const ms = (refusal as { msBeforeNext?: unknown } | null | undefined)?.msBeforeNext;
      if (typeof ms !== 'number' || Number.isNaN(ms)) throw refusal;
      return Math.max(1, ms);
    }
  }
}

/** A run that is aborted does not wait for the network. */
function untilAborted(work: Promise<unknown>, signal: AbortSignal): Promise<unknown> {
  return new Promise((resolve, reject) => {
    const aborted = (): void => reject(signal.reason);
    if (signal.aborted) aborted();
    signal.addEventListener('abort', aborted);
    work.then(resolve, reject).finally(() => signal.removeEventListener('abort', aborted));
  });
}

/** One after the other. */
class Line {
  /** When the first one will ask again. */
  nextAt = 0;
  private busy = false;
  private readonly waiting = new Set<() => void>();

  get isEmpty(): boolean {
    return !this.busy && this.waiting.size === 0;
  }

  enter(asked: Asked): Promise<void> {
    const { patienceMs, clock } = asked;
    const signal = asked.signal();
    return new Promise((resolve, reject) => {
      if (signal.aborted) return reject(signal.reason);
      if (!this.busy) {
        this.busy = true;
        return resolve();
      }
      const go = (act: () => void) => () => {
        cancel?.();
        this.waiting.delete(admit);
        signal.removeEventListener('abort', aborted);
        act();
      };
      const admit = go(resolve);
      const aborted = go(() => reject(signal.reason));
      const late = go(() => reject(asked.refused(Math.max(1, this.nextAt - monotonic(clock)))));
      const cancel = patienceMs === Number.POSITIVE_INFINITY ? undefined : clock.setTimer(late, patienceMs);
      signal.addEventListener('abort', aborted);
      this.waiting.add(admit);
    });
  }

  leave(): void {
    const [next] = this.waiting;
    if (next) next();
    else this.busy = false;
  }
}
