/** What a layer sets going inward: each `next()` is an attempt of its own, in its own fork of the context. */

import type { LayerContext } from '../context/context.js';
import { AlliumError, isThenable } from '../lib/errors.js';
import { Scope } from '../lib/scope.js';
import type { Layer } from '../protocol/plan.js';
import { isControl } from '../protocol/signals.js';
import { ignore } from './layer.js';
import type { Onion } from './onion.js';
import { applyOverride } from './overrides.js';

export const MAX_INWARD = 100;

export type Override = Record<string, unknown> | undefined;

/*
 * Attempts are made for every wrap of every call, so their fields are declared without being defined twice and are
 * assigned once, in a fixed order.
 */

/** One call inward, with a scope of its own. What it came to is stored in the context of the layer that made it. */
export class Attempt extends Scope {
  declare readonly layer: Layer;
  declare readonly outer: LayerContext;
  declare ctx: LayerContext;
  declare state: 'none' | 'pending' | 'done' | 'failed';
  /** Its layer has ended without it: what it still brings counts for nothing. */
  declare dropped: boolean;
  /** The result, or the error. */
  declare value: unknown;
  declare promise: Promise<unknown> | undefined;

  constructor(layer: Layer, outer: LayerContext) {
    super(outer._scope);
    this.layer = layer;
    this.outer = outer;
    this.state = 'none';
    this.dropped = false;
    this.value = undefined;
    this.promise = undefined;
    this.ctx = outer;
  }

  /** Goes in at layer `i` with a fork of its own, as the call number `ordinal` of its layer. */
  runFork(onion: Onion, i: number, ordinal: number, override?: Override): Promise<unknown> {
    const ctx = this.outer._fork(this);
    if (ordinal > 1 && ctx.seam !== 'run') ctx.attempt = ordinal;
    if (override !== undefined) applyOverride(ctx, override);
    this.state = 'pending';
    this.ctx = ctx;
    const promise = onion.enter(i, ctx, this) as Promise<unknown>;
    this.promise = promise;
    // Whoever forgets to await it is told by MISSING_AWAIT, not by an unhandled rejection.
    if ((this.state as Attempt['state']) === 'failed') promise.then(undefined, ignore);
    return promise;
  }

  /** Called by whatever ran inside, with its result: transforms and, for a sink, the guards come first. */
  succeed(result: unknown): Promise<unknown> | unknown {
    const { layer, outer } = this;
    if (!layer.sink && (outer.seam !== 'model' || outer._transforms === undefined)) return this.keep(result);
    const seen = outer._run.judgements.view(outer, result, layer.sink);
    if (!isThenable(seen)) return this.keep(seen);
    return seen.then(
      (one) => this.keep(one),
      (error) => this.failed(error),
    );
  }

  completed(result: unknown): Promise<unknown> | unknown {
    try {
      return this.succeed(result);
    } catch (error) {
      throw this.fail(error);
    }
  }

  failed(error: unknown): never {
    throw this.fail(error);
  }

  /** What ran inside settles the attempt when it is done. */
  settledBy(work: Promise<unknown> | unknown): Promise<unknown> {
    if (isThenable(work))
      return work.then(
        (value) => this.completed(value),
        (error) => this.failed(error),
      ) as Promise<unknown>;
    // An answer that is there at once must not hide that somebody forgot to await it.
    return AT_ONCE.then(ignore).then(() => this.completed(work));
  }

  /** A rejection of the promise that `run` hands out. */
  rejected(error: unknown): Promise<never> {
    return Promise.reject(this.fail(error));
  }

  /** Called by whatever ran inside, with its error, which goes on as the same object. */
  fail(error: unknown): unknown {
    this.state = 'failed';
    this.value = error;
    this.close();
    this.promise?.then(undefined, ignore);
    if (isControl(error) && !this.dropped) this.outer._run.cross(error, this.ctx);
    if (this.outer.seam === 'run') this.outer._run.carry(error, this.outer);
    return error;
  }

  protected keep(result: unknown): Promise<unknown> | unknown {
    this.state = 'done';
    this.value = result;
    this.close();
    if (this.dropped) return result;
    this.outer.result = result as never;
    this.outer._adopt(this.ctx as never);
    return result;
  }
}

const AT_ONCE = Promise.resolve();

/** Counts an inward call beyond the first, or says why there may be no more. */
export function repeat(layer: Layer, ctx: LayerContext, cause?: unknown): unknown {
  if (ctx.seam === 'run')
    return new AlliumError(
      'NEXT_TWICE',
      `Middleware "${layer.name}" called next() twice around a run. A run happens once; retry model or tool calls instead.`,
    );
  if (++ctx._call.repeats < MAX_INWARD) return undefined;
  // Code that tries again after an abort or a stop hears of that, not of its tries.
  if (ctx._scope.aborted) return ctx._scope.reason;
  if (ctx._call.latched !== undefined) return ctx._call.latched;
  return new AlliumError(
    'TOO_MANY_ATTEMPTS',
    `Middleware "${layer.name}" would make inward call ${MAX_INWARD + 1} of this ${ctx.seam} call. Bound its retries.`,
    cause === undefined ? {} : { cause },
  );
}
