/** Calls inward: each `next()` is an attempt of its own, in its own fork of the context. */

import type { LayerContext } from '../context/context.js';
import { noteOverride } from '../context/request-changes.js';
import { AlliumError, isRecord, isThenable, shown } from '../lib/errors.js';
import * as kinds from '../lib/kinds.js';
import { Scope } from '../lib/scope.js';
import { type Fields, wrongField } from '../lib/shapes.js';
import type { Layer, Seam } from '../protocol/plan.js';
import { isControl } from '../protocol/signals.js';
import type { Awaitable } from '../protocol/store.js';
import { type Inward, ignore, seenBy } from './layer.js';

export const MAX_INWARD = 100;

export type Override = Record<string, unknown> | undefined;

/** A layer at work in a call: who makes attempts. */
export interface Trying {
  readonly onion: Inward;
  readonly layer: Layer;
  /** Its place in the onion. */
  readonly i: number;
  readonly ctx: LayerContext;
  /** Its attempts so far. */
  attempts: readonly Attempt[];
}

/** One call inward, with its own scope. Its outcome is stored in the context of the layer that made it. */
export class Attempt extends Scope {
  declare state: 'pending' | 'done' | 'failed';
  /** Its layer has ended without it, so its outcome doesn't count. */
  declare dropped: boolean;
  /** The result, or the error. */
  declare value: unknown;
  declare private readonly by: Trying;
  declare readonly outer: LayerContext;
  declare readonly ctx: LayerContext;
  declare readonly promise: Promise<unknown>;

  /** Calls inward at once. */
  constructor(by: Trying, override?: Override) {
    const { ctx: outer, attempts: before } = by;
    super(outer._scope);
    this.state = 'pending';
    this.dropped = false;
    this.value = undefined;
    this.by = by;
    this.outer = outer;
    const ctx = outer._fork(this);
    this.ctx = ctx;
    by.attempts = before.length === 0 ? [this] : [...before, this];
    if (before.length > 0 && ctx.seam !== 'run') ctx.attempt = before.length + 1;
    if (override !== undefined) applyOverride(ctx, override);
    this.promise = callInward(by.onion, by.i + 1, ctx).then(
      (result) => this.succeed(result),
      (error) => this.fail(error),
    );
  }

  /** The layer sees the result through its transforms and, if it is a sink, through the guards. */
  private succeed(result: unknown): Awaitable<unknown> {
    try {
      const seen = seenBy(this.by.layer, this.outer, result);
      if (!isThenable(seen)) return this.keep(seen);
      return seen.then(
        (one) => this.keep(one),
        (error) => this.fail(error),
      ) as Promise<unknown>;
    } catch (error) {
      return this.fail(error);
    }
  }

  private keep(given: unknown): unknown {
    const result = this.distinct(given);
    this.state = 'done';
    this.value = result;
    this.close();
    if (this.dropped) return result;
    this.outer.result = result as never;
    this.outer._adopt(this.ctx as never);
    return result;
  }

  /**
   * Several attempts may end with the same object. Each gets a copy, so that the layer can say which one it returns.
   */
  private distinct(result: unknown): unknown {
    const { attempts: all } = this.by;
    if (all.length === 1 || !all.some((one) => one.state === 'done' && one.value === result)) return result;
    // The content is copied too: a copy that a layer makes of a result is traced to its attempt by its content.
    const { content } = result as { readonly content?: unknown };
    const own = Array.isArray(content) && { content: Object.freeze([...content]) };
    return Object.freeze({ ...(result as object), ...own });
  }

  /** The error goes on as the same object. */
  private fail(error: unknown): never {
    this.state = 'failed';
    this.value = error;
    this.close();
    // If nobody awaits it, that is reported as MISSING_AWAIT, not as an unhandled rejection.
    this.promise.catch(ignore);
    const { _run: run, seam } = this.outer;
    if (isControl(error) && !this.dropped) this.ctx._cross(error);
    if (seam === 'run') run.carry(error, this.outer);
    throw error;
  }
}

function callInward(onion: Inward, i: number, ctx: LayerContext): Promise<unknown> {
  try {
    const work = onion.enter(i, ctx);
    // A promise even if the result is there at once, so that a missing await is noticed.
    return isThenable(work) ? (work as Promise<unknown>) : AT_ONCE.then(() => work);
  } catch (error) {
    return Promise.reject(error);
  }
}

const AT_ONCE = Promise.resolve();

/** Counts an inward call beyond the first. Returns the error if there may be no more. */
export function refuseRepeat(layer: Layer, ctx: LayerContext, cause?: unknown): unknown {
  if (ctx.seam === 'run')
    return new AlliumError(
      'NEXT_TWICE',
      `Middleware "${layer.name}" called next() twice around a run. A run can only happen once; retry model or tool calls instead.`,
    );
  if (++ctx._call.repeats < MAX_INWARD) return undefined;
  // Code that tries again after an abort or a stop gets that signal, not an error about too many tries.
  if (ctx._scope.aborted) return ctx._scope.reason;
  if (ctx._call.latched !== undefined) return ctx._call.latched;
  return new AlliumError(
    'TOO_MANY_ATTEMPTS',
    `Middleware "${layer.name}" tried to call next() for the ${MAX_INWARD + 1}st time in one ${ctx.seam} call. Limit its retries.`,
    cause === undefined ? {} : { cause },
  );
}

// ── What `next({ … })` may say about the call it makes ───────────────────────────────────────────────────────

/** Most of it is checked where the call is made. */
const later = kinds.anything;

const OVERRIDES: Readonly<Record<Seam, Fields>> = {
  run: {},
  model: { messages: later, systemPrompt: later, tools: later, model: later, settings: later },
  tool: { args: later, timeoutMs: kinds.timeout },
};

/** What is wrong with an override, if anything. */
export function badOverride(seam: Seam, override: unknown): unknown {
  const next = `next() at the ${seam} seam`;
  const refused = (why: string) => new AlliumError('INVALID_OPTION', `${next} ${why}`);
  try {
    if (!isRecord(override)) return refused(`takes an object of overrides, got ${shown(override)}.`);
    if ('_call' in override) return refused('was given a context, but makes its own. Write next().');
    if (seam === 'run' && Object.keys(override).length > 0)
      return refused(`takes nothing, got ${shown(override)}.`);
    return wrongField(next, OVERRIDES[seam], override);
  } catch (error) {
    return error;
  }
}

function applyOverride(fork: LayerContext, override: Record<string, unknown>): void {
  for (const [key, value] of Object.entries(override))
    if (value !== undefined) (fork as unknown as Record<string, unknown>)[key] = value;
  if (fork.seam === 'model') noteOverride(fork);
}
