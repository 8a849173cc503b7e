/**
 * Hands events to the consumer of a stream, each once and in order. Bounded: a producer that is ahead waits, unless
 * somebody awaits the result. The reader may be the one who awaits it, so neither may hold up the other: the producer
 * continues, and events are kept until they are read, or dropped if nobody reads.
 */
import type { Context } from '../context/context.js';
import { whenIdle } from '../lib/clock.js';
import { RingQueue } from '../lib/ring-queue.js';
import type { AgentEvent } from '../protocol/events.js';

const HIGH_WATER = 256;
const LOW_WATER = 64;
/** After so many deltas in a row that a reader waited for, so many are handed over at once. */
const BURST = 64;
const BATCH = 64;

type Step = IteratorResult<AgentEvent, undefined>;
type Waiter = (step: Step | Promise<Step>) => void;

/** Takes the events that the caller reads. */
export interface EventSink {
  push(event: AgentEvent): void;
  pushDelta(event: AgentEvent): void;
  pressure(): Promise<void> | undefined;
  /** The next pieces of the answer come from this attempt. */
  shows?(attempt: Context): void;
}

export class EventQueue implements EventSink {
  private readonly items = new RingQueue<AgentEvent>();
  /** A reader that waits for an event. The list is for the rare case of several. */
  private waiter: Waiter | undefined = undefined;
  private readonly moreWaiters: Waiter[] = [];
  private room: { readonly promise: Promise<void>; readonly resolve: () => void } | undefined = undefined;
  private ended: { readonly error?: unknown } | undefined = undefined;
  /** False when nobody will read any more: events are dropped. */
  private open = true;
  private iterated = false;
  private resultWanted = false;

  /** Deltas in a row that somebody waited for. */
  private burst = 0;
  private waking = false;
  private readonly wakeUp = (): void => {
    this.waking = false;
    this.wake();
  };

  /** One function for all promises: making one per event shows in the time a stream takes. */
  private readonly wait = (resolve: Waiter): void => {
    if (this.waiter === undefined) this.waiter = resolve;
    else this.moreWaiters.push(resolve);
  };

  /** Events that wait to be read. */
  get length(): number {
    return this.items.length;
  }

  push(event: AgentEvent): void {
    if (!this.open) return;
    this.burst = 0;
    this.items.push(event);
    this.wake();
  }

  /**
   * A piece of a message. If many come right after each other, a waiting reader gets several at once, because waking
   * it takes longest. It is woken at the latest when no other promise has work to do.
   */
  pushDelta(event: AgentEvent): void {
    if (!this.open) return;
    this.items.push(event);
    if (this.waiter !== undefined) this.wakeSoon();
  }

  private wakeSoon(): void {
    if (++this.burst <= BURST || this.items.length >= BATCH) this.wake();
    else if (!this.waking) {
      this.waking = true;
      whenIdle(this.wakeUp);
    }
  }

  /** A promise while the consumer is behind, undefined when there is room. */
  pressure(): Promise<void> | undefined {
    if (this.items.length < HIGH_WATER) return undefined;
    if (this.resultWanted) {
      if (!this.iterated) this.drain();
      return undefined;
    }
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
    // Readers that asked before come first.
    if (this.waiter !== undefined) this.wake();
    const value = this.items.shift();
    if (value !== undefined) {
      if (this.room !== undefined && this.items.length <= LOW_WATER) this.makeRoom();
      return Promise.resolve({ done: false, value });
    }
    return this.ended ? this.last() : new Promise(this.wait);
  }

  /** No event follows. An error is thrown to the consumer once, after the last event. */
  end(failure?: { readonly error: unknown }): void {
    this.ended ??= failure ?? {};
    this.wake();
    for (; this.waiter; this.waiter = this.moreWaiters.shift()) this.waiter(this.last());
  }

  /** Somebody iterates: nothing is lost from now on. */
  attach(): void {
    this.iterated = true;
  }

  /**
   * Somebody wants the result, so the run no longer waits for readers. Whether to drop events is decided when there
   * are too many again: the caller may be about to read.
   */
  detach(): void {
    this.resultWanted = true;
    this.makeRoom();
  }

  /** The consumer has left: it gets nothing more, not even the error. */
  leave(): void {
    this.drain();
    this.end();
  }

  private wake(): void {
    for (let { waiter } = this; waiter !== undefined && this.items.length > 0; waiter = this.waiter) {
      this.waiter = this.moreWaiters.length === 0 ? undefined : this.moreWaiters.shift();
      waiter({ done: false, value: this.items.shift()! });
    }
  }

  private drain(): void {
    this.open = false;
    this.items.clear();
    this.makeRoom();
  }

  private last(): Promise<Step> {
    const { ended } = this;
    if (!ended || !('error' in ended)) return Promise.resolve({ done: true, value: undefined });
    this.ended = {};
    return Promise.reject(ended.error);
  }

  private makeRoom(): void {
    this.room?.resolve();
    this.room = undefined;
  }
}
