/** Feeds one observer, in order, never making a run wait. */

import type { Feed } from '../kernel/events/run-events.js';
import { isThenable } from '../kernel/lib/errors.js';
import { RingQueue } from '../kernel/lib/ring-queue.js';
import type { AgentEvent, Observer } from '../kernel/protocol/events.js';

export interface ObserverProblem {
  readonly observer: string;
  /** What it threw, if it did. */
  readonly error?: unknown;
  /** Events it was too slow for, in all. */
  readonly dropped: number;
}

/** A longer queue would slow the run down: every sweep of young garbage moves what waits in it. */
const CAPACITY = 2000;
/** Drops are reported at the first one, then once per this many, and when the observer has caught up. */
const REPORT_EVERY = 1000;

export class ObserverFeed implements Feed {
  private readonly queue = new RingQueue<AgentEvent>();
  private busy: Promise<void> | undefined;
  /** The observer is working on an event. */
  private waits = false;
  /** It was still working after everything else that was ready had run. */
  private slow = false;
  private closed = false;
  private dropped = 0;
  private reported = 0;
  readonly early: boolean;
  private readonly name: string;
  private readonly call: (event: AgentEvent) => void | Promise<void>;

  constructor(
    observer: Observer,
    index: number,
    private readonly onProblem: (problem: ObserverProblem) => unknown,
    private readonly capacity: number = CAPACITY,
  ) {
    this.early = typeof observer !== 'function' && observer.early === true;
    this.name = observer.name || `observer ${index + 1}`;
    this.call = typeof observer === 'function' ? observer : (event) => observer.onEvent(event);
  }

  push(event: AgentEvent): void {
    if (this.closed) return;
    if (this.queue.length >= this.capacity) {
      this.queue.shift();
      if (this.dropped++ % REPORT_EVERY === 0) this.reportDrops();
    }
    this.queue.push(event);
    this.busy ??= this.drain();
  }

  get isDue(): boolean {
    return !this.slow && this.queue.length >= this.capacity / 2;
  }

  hadTurn(): void {
    this.slow = this.waits;
  }

  /** It gets nothing more, not even what is waiting. */
  close(): void {
    this.closed = true;
  }

  /** Settles when every event so far has been seen. */
  async idle(): Promise<void> {
    while (this.busy) await this.busy;
  }

  private async drain(): Promise<void> {
    // The run that emitted the event goes on first.
    await undefined;
    for (let event = this.queue.shift(); event; event = this.queue.shift()) {
      if (this.closed) continue;
      try {
        const wait = this.call(event);
        if (isThenable(wait)) {
          this.waits = true;
          await wait;
        }
      } catch (error) {
        void this.report({ observer: this.name, error, dropped: this.dropped });
      }
      this.waits = this.slow = false;
    }
    if (this.dropped > this.reported) this.reportDrops();
    this.busy = undefined;
  }

  private reportDrops(): void {
    this.reported = this.dropped;
    void this.report({ observer: this.name, dropped: this.dropped });
  }

  /** An error handler that fails has nobody left to tell, and must not reach the run. */
  private async report(problem: ObserverProblem): Promise<void> {
    try {
      await this.onProblem(problem);
    } catch {
      // Nobody is left to tell.
    }
  }
}
