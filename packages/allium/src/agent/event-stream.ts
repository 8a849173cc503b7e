/** What `stream()` returns: the events of a run for one reader, and its result. */

import type { EventQueue } from '../kernel/events/event-queue.js';
import { AlliumError } from '../kernel/lib/errors.js';
import type { Scope } from '../kernel/lib/scope.js';
import type { AgentEvent } from '../kernel/protocol/events.js';
import type { RunResult } from '../kernel/protocol/result.js';
import { Aborted } from '../kernel/protocol/signals.js';

/** Events as they happen, for one reader, and the result. Not a promise: await `result`. */
export interface RunStream extends AsyncIterable<AgentEvent> {
  /** For one reader: iterating a second time throws `STREAM_TAKEN`. */
  [Symbol.asyncIterator](): AsyncIterableIterator<AgentEvent, undefined>;
  /**
   * Settles when the run has ended. Once you have asked for it, the run no longer waits for readers: events are
   * dropped if nobody iterates, and kept until they are read if somebody does.
   */
  readonly result: Promise<RunResult>;
  /**
   * For answers in JSON: reads the stream as the object that the answer is going to be. Each value is what has been
   * shown so far, with unfinished strings and without what guards hold back. After a retry it starts over. The last
   * value is `result.output`, if there is one. Use it instead of a loop over the events. Leaving it aborts the run,
   * too.
   */
  readonly partials: AsyncIterable<unknown>;
  /**
   * Lets the run continue without its reader: it doesn't wait for one, and leaving the loop no longer aborts it.
   * `session.abort()`, the `signal` of the run and its limits still end it. Returns the stream.
   */
  detach(): this;
}

/** Reads the events of a stream as the object that the answer is going to be. */
export type PartialsOf = (events: AsyncIterable<AgentEvent>) => AsyncIterable<unknown>;

/** A class and not an object literal: with its own getter, each stream would get its own hidden class. */
export class EventStream implements RunStream {
  readonly #queue: EventQueue;
  readonly #result: Promise<RunResult>;
  readonly #scope: Scope;
  readonly #partialsOf: PartialsOf;
  #taken = false;
  #detached = false;

  constructor(queue: EventQueue, result: Promise<RunResult>, scope: Scope, partialsOf: PartialsOf) {
    this.#queue = queue;
    this.#result = result;
    this.#scope = scope;
    this.#partialsOf = partialsOf;
  }

  get result(): Promise<RunResult> {
    this.#queue.detach();
    return this.#result;
  }

  get partials(): AsyncIterable<unknown> {
    return this.#partialsOf(this);
  }

  detach(): this {
    this.#detached = true;
    this.#queue.detach();
    return this;
  }

  [Symbol.asyncIterator](): AsyncIterableIterator<AgentEvent, undefined> {
    if (this.#taken)
      throw new AlliumError(
        'STREAM_TAKEN',
        'This stream already has a reader. Each event is delivered once, so a second reader would take events away from the first. Read it in one loop and pass the events on, or watch runs with `observers` of the agent.',
      );
    this.#taken = true;
    this.#queue.attach();
    return new EventReader(this.#queue, () => {
      if (this.#detached) return undefined;
      this.#scope.abort(new Aborted('The consumer stopped reading.'));
      return this.#result.catch(ignore);
    });
  }
}

/** The reader. A class, because functions made for every stream would cost more to call. */
class EventReader implements AsyncIterableIterator<AgentEvent, undefined> {
  readonly #queue: EventQueue;
  readonly #endRun: () => Promise<unknown> | undefined;

  constructor(queue: EventQueue, endRun: () => Promise<unknown> | undefined) {
    this.#queue = queue;
    this.#endRun = endRun;
  }

  /** Lets a caller read some events by hand and the rest in a loop. */
  [Symbol.asyncIterator](): this {
    return this;
  }

  next(): Promise<IteratorResult<AgentEvent, undefined>> {
    return this.#queue.next();
  }

  /** Ends the run of this stream, if it is still under way and not detached. */
  async return(): Promise<IteratorResult<AgentEvent, undefined>> {
    this.#queue.leave();
    await this.#endRun();
    return { done: true, value: undefined };
  }
}

function ignore(): void {}
