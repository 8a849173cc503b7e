/** Hands events to one consumer. Bounded: a producer that is ahead waits. */
import { isThenable } from './errors.js';
import type { AgentEvent, Observer } from './events.js';

const HIGH_WATER = 256;
const LOW_WATER = 64;

type Step = IteratorResult<AgentEvent, undefined>;

export class EventQueue {
  private items: AgentEvent[] = [];
  private head = 0;
  private waiting: { resolve: (step: Step) => void; reject: (error: unknown) => void } | undefined;
  private room: { promise: Promise<void>; resolve: () => void } | undefined;
  private ended: { error?: unknown } | undefined;
  /** Nobody reads any more: events are let go. */
  private open = true;

  push(event: AgentEvent): void {
    if (!this.open) return;
    if (this.waiting) {
      const { resolve } = this.waiting;
      this.waiting = undefined;
      resolve({ done: false, value: event });
    } else this.items.push(event);
  }

  /** A promise while the consumer is behind, undefined when there is room. */
  pressure(): Promise<void> | undefined {
    if (!this.open || this.items.length - this.head < HIGH_WATER) return undefined;
    if (!this.room) {
      let resolve!: () => void;
      const promise = new Promise<void>((done) => {
        resolve = done;
      });
      this.room = { promise, resolve };
    }
    return this.room.promise;
  }

  next(): Promise<Step> {
    if (this.head < this.items.length) {
      const value = this.items[this.head]!;
      this.items[this.head++] = undefined as never;
      if (this.head === this.items.length || this.head >= 1024) {
        this.items = this.head === this.items.length ? [] : this.items.slice(this.head);
        this.head = 0;
      }
      if (this.room && this.items.length - this.head <= LOW_WATER) this.makeRoom();
      return Promise.resolve({ done: false, value });
    }
    if (this.ended) {
      const { error } = this.ended;
      this.ended = {};
      return error === undefined ? Promise.resolve({ done: true, value: undefined }) : Promise.reject(error);
    }
    return new Promise((resolve, reject) => {
      this.waiting = { resolve, reject };
    });
  }

  /** No event follows. With an error, the consumer is thrown it after the last event. */
  end(error?: unknown): void {
    this.ended = { error };
    const { waiting } = this;
    this.waiting = undefined;
    if (!waiting) return;
    this.ended = {};
    if (error === undefined) waiting.resolve({ done: true, value: undefined });
    else waiting.reject(error);
  }

  /** The consumer has left, or never came: nothing waits for it any longer. */
  discard(): void {
    this.open = false;
    this.items = [];
    this.head = 0;
    this.makeRoom();
  }

  private makeRoom(): void {
    this.room?.resolve();
    this.room = undefined;
  }
}

const OBSERVER_QUEUE = 10_000;

export interface ObserverProblem {
  readonly observer: string;
  /** What it threw, when it did. */
  readonly error?: unknown;
  /** Events it was too slow for, in all. */
  readonly dropped: number;
}

/** Feeds one observer, in order, never making the run wait. */
export class ObserverFeed {
  private readonly queue: AgentEvent[] = [];
  private busy: Promise<void> | undefined;
  private dropped = 0;
  private readonly name: string;
  private readonly call: (event: AgentEvent) => void | Promise<void>;

  constructor(
    observer: Observer,
    index: number,
    private readonly onProblem: (problem: ObserverProblem) => void,
    private readonly capacity: number = OBSERVER_QUEUE,
  ) {
    this.name = (typeof observer === 'function' ? observer.name : observer.name) || `observer ${index + 1}`;
    this.call = typeof observer === 'function' ? observer : (event) => observer.onEvent(event);
  }

  push(event: AgentEvent): void {
    if (this.queue.length >= this.capacity) {
      this.queue.shift();
      if (++this.dropped === 1 || this.dropped % 1000 === 0) this.report({ observer: this.name, dropped: this.dropped });
    }
    this.queue.push(event);
    this.busy ??= this.drain();
  }

  /** Settles when every event so far has been seen. */
  async idle(): Promise<void> {
    while (this.busy) await this.busy;
  }

  private async drain(): Promise<void> {
    await undefined;
    while (this.queue.length > 0) {
      try {
        const wait = this.call(this.queue.shift()!);
        if (isThenable(wait)) await wait;
      } catch (error) {
        this.report({ observer: this.name, error, dropped: this.dropped });
      }
    }
    this.busy = undefined;
  }

  private report(problem: ObserverProblem): void {
    try {
      this.onProblem(problem);
    } catch {
      // An error handler that throws has nobody left to tell, and must not reach the run.
    }
  }
}
