/** Counts in memory: at most `limit` starts in any window of `perMs`, per key, first come first served. */
import { type Clock, monotonic } from '../../index.js';
import type { Asked } from './shared.js';

/** How many keys there may be before those with nothing to remember are dropped. */
const SWEEP = 1000;

export class Windows {
  private readonly keys = new Map<string, Window>();
  private sweepAt = SWEEP;

  constructor(
    private readonly limit: number,
    private readonly perMs: number,
  ) {}

  /** How many keys it remembers something about. */
  get size(): number {
    return this.keys.size;
  }

  /** Undefined if the call may begin at once; otherwise a promise of its turn. */
  take(asked: Asked): Promise<void> | undefined {
    let window = this.keys.get(asked.key);
    if (window === undefined) {
      this.sweep();
      window = new Window(this.limit, this.perMs, asked.clock);
      this.keys.set(asked.key, window);
    }
    return window.take(asked);
  }

  private sweep(): void {
    if (this.keys.size < this.sweepAt) return;
    for (const [key, window] of this.keys) if (window.isIdle) this.keys.delete(key);
    this.sweepAt = Math.max(SWEEP, 2 * this.keys.size);
  }
}

class Window {
  /** When calls began, the oldest first; those before `first` are over. */
  private starts: number[] = [];
  private first = 0;
  // A set keeps the order and lets anyone leave.
  private readonly waiting = new Set<() => void>();
  private cancel: (() => void) | undefined = undefined;

  constructor(
    private readonly limit: number,
    private readonly perMs: number,
    private readonly clock: Clock,
  ) {}

  get isIdle(): boolean {
    this.forget();
    return this.waiting.size === 0 && this.counted === 0;
  }

  take(asked: Asked): Promise<void> | undefined {
    const now = this.forget();
    if (this.waiting.size === 0 && this.counted < this.limit) {
      this.starts.push(now);
      return undefined;
    }
    const waitMs = this.turnOf(this.waiting.size, now) - now;
    if (waitMs > asked.patienceMs) return Promise.reject(asked.refused(waitMs));
    asked.waits(waitMs);
    return this.queue(asked.signal());
  }

  private queue(signal: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      if (signal.aborted) return reject(signal.reason);
      const aborted = (): void => {
        this.waiting.delete(admit);
        if (this.waiting.size === 0) this.stop();
        reject(signal.reason);
      };
      const admit = (): void => {
        signal.removeEventListener('abort', aborted);
        resolve();
      };
      signal.addEventListener('abort', aborted, { once: true });
      this.waiting.add(admit);
      this.arm();
    });
  }

  private get counted(): number {
    return this.starts.length - this.first;
  }

  /** Drops what has left the window; returns the time. */
  private forget(): number {
    const now = monotonic(this.clock);
    while (this.first < this.starts.length && this.starts[this.first]! + this.perMs <= now) this.first++;
    if (this.first > 64 && this.first * 2 > this.starts.length) {
      this.starts = this.starts.slice(this.first);
      this.first = 0;
    }
    return now;
  }

  /** When the call behind `ahead` others may begin: each takes the place of one that began `perMs` earlier. */
  private turnOf(ahead: number, now: number): number {
    const free = this.limit - this.counted;
    if (ahead < free) return now;
    const place = ahead - free;
    const index = place % this.limit;
    const start = index < this.counted ? this.starts[this.first + index]! : now;
    return start + this.perMs * (1 + Math.floor(place / this.limit));
  }

  private arm(): void {
    if (this.cancel !== undefined || this.waiting.size === 0) return;
    const now = monotonic(this.clock);
    const ms = this.turnOf(0, now) - now;
    this.cancel = this.clock.setTimer(() => this.admit(), Math.max(1, ms));
  }

  private admit(): void {
    this.cancel = undefined;
    const now = this.forget();
    for (const admit of this.waiting) {
      if (this.counted >= this.limit) break;
      this.waiting.delete(admit);
      this.starts.push(now);
      admit();
    }
    this.arm();
  }

  private stop(): void {
    this.cancel?.();
    this.cancel = undefined;
  }
}
