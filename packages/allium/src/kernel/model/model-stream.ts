/** Reads the stream of a model, whatever the model does. */

import type { ModelTime } from '../context/seam-call.js';
import { type Clock, monotonic, soon, systemClock } from '../lib/clock.js';
import { AlliumError, isThenable, shown } from '../lib/errors.js';
import { type Listener, type Scope, SignalCarrier } from '../lib/scope.js';
import { type Model, type ModelPart, type ModelRequest, modelName } from '../messages/model.js';
import type { ModelRun } from './model-run.js';
import { StallWatch } from './stalls.js';

type Step = IteratorResult<ModelPart>;

/** A model that never really waits would keep timers from firing, and nobody could stop it. */
const FAIR_MS = 20;
const FAIR_LOOKS = 8;
/** Whether there is a reason to wait is asked at the first part of a stream, then once per so many. */
const LOOK_EVERY = 32;

/**
 * Reads a stream to its end, part by part, never faster than the consumer. An abort ends it even if the model ignores
 * its signal. One of `done` and `failed` is called, once. Callbacks instead of an async function: this runs for every
 * part of every stream.
 */
export abstract class Reading implements Listener {
  private open = false;
  /** `finish` has come: the stream only has to end. */
  private finished = false;
  private parts = 0;
  private readonly watch = new StallWatch();
  /** Over all streams it has read: turns that never wait are like one long stream. */
  private looks = 0;
  private since = 0;
  private called: Model | undefined = undefined;
  private scope: Scope | undefined = undefined;
  private iterator: ModelIterator | undefined = undefined;
  private consumer: Pick<ModelRun, 'pressure'> | undefined = undefined;
  private carrier: SignalCarrier | undefined = undefined;
  private expected: Expected | undefined = undefined;
  private cancel: (() => void) | undefined = undefined;
  private readonly onStep = (step: Step): void => {
    if (this.open && !this.took(step)) this.pull();
  };
  private readonly onError = (error: unknown): void => this.fail(error);

  /** Run time that is not the model's. */
  abstract readonly pausedMs: number;
  abstract readonly clock: Clock;

  /** True: the answer is complete with it. */
  protected abstract take(part: ModelPart): boolean;
  /** `ended`: so has the stream; otherwise what it still does would meet whatever reads next. */
  protected abstract done(ended: boolean): void;
  protected abstract failed(error: unknown): void;
  /** Calls `fn` after as long as code is given to wind down; returns what cancels it. */
  protected abstract setGrace(fn: () => void): () => void;

  protected read(
    model: Model,
    request: ModelRequest,
    scope: Scope,
    consumer: Pick<ModelRun, 'pressure'> | undefined,
    time: ModelTime,
  ): void {
    if (scope.aborted) throw scope.reason;
    this.called = model;
    this.scope = scope;
    this.consumer = consumer;
    this.finished = false;
    this.parts = 0;
    this.carrier = new SignalCarrier(scope);
    this.iterator = iteratorOf(model.stream(request, this.carrier), model);
    this.open = true;
    if (scope.aborted) this.tell(scope.reason);
    else {
      scope.add(this);
      this.pull();
      if (this.open) this.watch.begin(this, time);
    }
  }

  get model(): Model {
    return this.called!;
  }

  get received(): number {
    return this.parts;
  }

  /** It is too slow. The model hears of it after those who wait for it. */
  stalled(error: AlliumError): void {
    if (!this.open) return;
    const iterator = this.iterator!;
    this.fail(error);
    this.carrier!.abort(error);
    queueMicrotask(() => void abandon(iterator));
  }

  /** The scope was aborted. */
  tell(reason: unknown): void {
    if (!this.open) return;
    this.close();
    const iterator = this.iterator!;
    this.failed(reason);
    // Not at once: a stream that hears of the abort itself may just be ending.
    queueMicrotask(() => void abandon(iterator));
  }

  private pull(): void {
    try {
      while (this.open) {
        const next = this.iterator!.next();
        if (isThenable(next)) {
          next.then(this.onStep, this.onError);
          if (this.finished && this.open) this.expectEnd();
          return;
        }
        // What aborts the run in its own next() has nothing more to say.
        if (!this.open || this.took(next)) return;
      }
    } catch (error) {
      this.fail(error);
    }
  }

  /** Takes a step. True when reading has ended, or goes on by itself later. What is rare is not in here. */
  private took(step: Step): boolean {
    try {
      if (step.done) return this.ended();
      if (this.take(step.value)) this.finished = true;
    } catch (error) {
      return this.refused(error, step);
    }
    return this.parts++ % LOOK_EVERY === 0 && this.waits();
  }

  private ended(): true {
    this.close();
    this.iterator = undefined;
    this.done(true);
    return true;
  }

  private refused(error: unknown, step: unknown): true {
    const iterator = this.iterator!;
    if (typeof step === 'object' && step !== null) {
      this.fail(error);
      void abandon(iterator);
    } else this.fail(noStep(step, this.model));
    return true;
  }

  /** Is there a reason to wait? Then reading goes on when it is gone. */
  private waits(): boolean {
    const wait = this.consumer?.pressure() ?? this.breather();
    wait?.then(() => this.pull(), this.onError);
    return wait !== undefined;
  }

  private breather(): Promise<void> | undefined {
    if (++this.looks % FAIR_LOOKS !== 0) return undefined;
    const now = monotonic(systemClock);
    if (this.since === 0) this.since = now;
    if (now - this.since <= FAIR_MS) return undefined;
    this.since = 0;
    // Timers and I/O have their turn.
    return new Promise(soon);
  }

  /**
   * The answer is complete, so a stream that does not end is let go in the end. Most end at once: whoever looks after
   * that sets a timer for the others only.
   */
  private expectEnd(): void {
    if (this.expected === undefined || this.expected.seen) {
      this.expected = { reading: this, seen: false };
      if (expected.push(this.expected) === 1) soon(lookForEnds);
    } else this.expected.reading = this;
  }

  /** It has not ended when it was looked for. */
  overdue(): void {
    this.watch.end();
    this.cancel ??= this.setGrace(() => this.letGo());
  }

  private letGo(): void {
    const iterator = this.iterator!;
    this.close();
    this.done(false);
    void abandon(iterator);
  }

  private fail(error: unknown): void {
    if (!this.open) return;
    this.close();
    this.failed(error);
  }

  private close(): void {
    this.open = false;
    this.scope!.remove(this);
    this.watch.end();
    if (this.expected !== undefined) this.expected.reading = undefined;
    if (this.cancel === undefined) return;
    this.cancel();
    this.cancel = undefined;
  }
}

function noStep(step: unknown, model: Model): AlliumError {
  return new AlliumError(
    'MODEL_STREAM_INVALID',
    `next() of ${modelName(model)} returned ${shown(step)}, which is not { done, value }.`,
  );
}

/** A stream that is to end. Who reads it is forgotten when it does: no run is kept in memory by being looked after. */
interface Expected {
  reading: Reading | undefined;
  seen: boolean;
}

let expected: Expected[] = [];

/** Once for all streams that were read meanwhile. */
function lookForEnds(): void {
  const due = expected;
  expected = [];
  for (const one of due) {
    one.seen = true;
    one.reading?.overdue();
  }
}

/** Nobody waits for what a stream does when it is told to stop, or hears of what that throws. */
async function abandon(iterator: ModelIterator): Promise<void> {
  try {
    await iterator.return?.();
  } catch {
    // As above.
  }
}

interface ModelIterator {
  next(): PromiseLike<Step> | Step;
  return?(): unknown;
}

function iteratorOf(stream: unknown, model: Model): ModelIterator {
  const source = stream as Partial<AsyncIterable<ModelPart> & Iterable<ModelPart>> | null | undefined;
  const iterator = source?.[Symbol.asyncIterator]?.() ?? source?.[Symbol.iterator]?.();
  if (typeof iterator?.next === 'function' && typeof stream === 'object') return iterator;
  if (isThenable(stream)) stream.then(undefined, ignore);
  throw new AlliumError(
    'MODEL_STREAM_INVALID',
    `stream() of ${modelName(model)} returned ${shown(stream)}, which cannot be iterated. Return an async iterable of parts; do not make stream() an async function.`,
  );
}

function ignore(): void {}
