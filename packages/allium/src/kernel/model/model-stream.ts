/** Reads the stream of a model, whatever the model does. */

import { type Clock, monotonic, soon, systemClock } from '../lib/clock.js';
import { AlliumError, isThenable, shown } from '../lib/errors.js';
import { type Listener, SignalCarrier } from '../lib/scope.js';
import type { ModelResponse } from '../messages/messages.js';
import { type Model, type ModelPart, type ModelRequest, modelName } from '../messages/model.js';
import type { Calling } from './model-run.js';
import { dontLook, lookSoon, modelTime, StreamWatch, type Watched } from './stalls.js';

type Step = IteratorResult<ModelPart>;

/** A model that never really waits would keep timers from firing, and nobody could stop it. */
const FAIR_MS = 20;
const FAIR_LOOKS = 8;
/** Checks for a reason to wait at the first part of a stream, then once per this many. */
const LOOK_EVERY = 32;

/** Gives timers and I/O a chance in a run that never waits for anything. */
export class Breather {
  private looks = 0;
  private since = 0;

  /** A promise if it is their turn. */
  due(): Promise<void> | undefined {
    if (++this.looks % FAIR_LOOKS !== 0) return undefined;
    const now = monotonic(systemClock);
    if (this.since === 0) {
      this.since = now;
      // The run has waited for something else, so they have had their turn.
      soon(() => {
        this.since = 0;
      });
    }
    return now - this.since <= FAIR_MS ? undefined : new Promise(soon);
  }
}

/**
 * Reads a stream to its end, part by part, never faster than the consumer. An abort ends it even if the model ignores
 * its signal. Callbacks instead of an async function: this runs for every part of every stream.
 */
export abstract class StreamReader implements Listener, Watched {
  at = undefined;
  before = undefined;
  after = undefined;
  place = -1;
  received = 0;
  private open = false;
  /** `finish` has come: the stream only has to end. */
  private finished = false;
  private watching: StreamWatch | undefined = undefined;
  private iterator: ModelIterator | undefined = undefined;
  private carrier: SignalCarrier | undefined = undefined;
  private cancelGrace: (() => void) | undefined = undefined;
  private resolve: (response: ModelResponse) => void = ignore;
  private reject: (error: unknown) => void = ignore;
  private readonly onStep = (step: Step): void => {
    if (this.open && !this.took(step)) this.pull();
  };
  private readonly onError = (error: unknown): void => this.fail(error);
  readonly model: Model;

  constructor(protected readonly ctx: Calling) {
    this.model = ctx.model;
  }

  /** Takes a part. True: the answer is complete with it. */
  protected abstract take(part: ModelPart): boolean;
  /** The answer, once the stream has ended. Throws if there is none. */
  protected abstract complete(): ModelResponse;
  protected abstract failed(error: unknown): void;

  /** Settles when the stream has ended, or the answer is complete and the stream goes on for too long. */
  protected readStream(request: ModelRequest): Promise<ModelResponse> {
    const { model } = this;
    const { _scope: scope } = this.ctx;
    if (scope.aborted) throw scope.reason;
    this.carrier = new SignalCarrier(scope);
    this.iterator = iteratorOf(model.stream(request, this.carrier.options), model);
    this.open = true;
    const answer = new Promise<ModelResponse>((resolve, reject) => {
      this.resolve = resolve;
      this.reject = reject;
    });
    scope.listen(this);
    this.pull();
    if (this.open) lookSoon(this);
    return answer;
  }

  /** The process waits, so a stream that doesn't go on needs a timer. One whose answer is complete is let go. */
  look(): void {
    if (!this.open) return;
    const { clock, agent, limits } = this.ctx._run;
    if (!this.finished) {
      this.watching ??= new StreamWatch(this, modelTime(limits, this.ctx._call.time));
      return;
    }
    this.watching?.end();
    this.cancelGrace = clock.setTimer(() => {
      this.end();
      void abandon(this.iterator!);
    }, agent.teardownTimeoutMs);
  }

  get clock(): Clock {
    return this.ctx._run.clock;
  }

  /** Run time that is not the model's. */
  get pausedMs(): number {
    return this.ctx._run.pausedMs;
  }

  /** The stream is too slow. Those who wait for it hear of that before the model does. */
  stalled(error: AlliumError): void {
    if (!this.open) return;
    const iterator = this.iterator!;
    this.fail(error);
    this.carrier!.abort(error);
    queueMicrotask(() => void abandon(iterator));
  }

  /** The scope was aborted. */
  onAborted(reason: unknown): void {
    if (!this.open) return;
    const iterator = this.iterator!;
    this.fail(reason);
    // Not at once: a stream that noticed the abort itself may just be ending.
    queueMicrotask(() => void abandon(iterator));
  }

  private pull(): void {
    try {
      while (this.open) {
        const next = this.iterator!.next();
        if (isThenable(next)) {
          next.then(this.onStep, this.onError);
          if (this.finished && this.open && this.cancelGrace === undefined) lookSoon(this);
          return;
        }
        // A model may abort the run in its own next(). Its part doesn't count then.
        if (!this.open || this.took(next)) return;
      }
    } catch (error) {
      this.fail(error);
    }
  }

  /** Takes a step. True if reading has ended, or goes on by itself later. */
  private took(step: Step): boolean {
    try {
      if (step.done) return this.end();
      if (this.take(step.value)) this.finished = true;
    } catch (error) {
      return this.refused(error, step);
    }
    return this.received++ % LOOK_EVERY === 0 && this.waits();
  }

  private end(): true {
    this.close();
    try {
      this.resolve(this.complete());
    } catch (error) {
      this.failed(error);
      this.reject(error);
    }
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

  /** Is there a reason to wait? Then reading continues when it is gone. */
  private waits(): boolean {
    const { _run: run, _call: call } = this.ctx;
    const wait = (call.live !== undefined && run.watched ? run.pressure() : undefined) ?? run.breather.due();
    wait?.then(() => this.pull(), this.onError);
    return wait !== undefined;
  }

  private fail(error: unknown): void {
    if (!this.open) return;
    this.close();
    this.failed(error);
    this.reject(error);
  }

  private close(): void {
    this.open = false;
    this.ctx._scope.remove(this);
    dontLook(this);
    this.watching?.end();
    this.cancelGrace?.();
  }
}

function noStep(step: unknown, model: Model): AlliumError {
  return new AlliumError(
    'MODEL_STREAM_INVALID',
    `next() of ${modelName(model)} returned ${shown(step)}, which is not { done, value }.`,
  );
}

/** Tells a stream to stop. Nobody waits for that, and what it throws is ignored. */
async function abandon(iterator: ModelIterator): Promise<void> {
  try {
    await iterator.return?.();
  } catch {
    // Ignored.
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
