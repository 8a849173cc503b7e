/** A `wrapX` or `process` in a traced run: its own time, and what it does before, between and after its attempts. */

import { callParts, isThenable } from '../kit/index.js';
import { recordAnswer, recordFailure, recordWrites } from './acts.js';
import { HookCall, type LayerContext } from './hook-call.js';
import type { Slot } from './kept-acts.js';

const NONE: readonly never[] = [];

type Next = (override?: Record<string, unknown>) => Promise<unknown>;

export class TracedWrap extends HookCall {
  /** When its own work last began. */
  declare private since: number;
  /** All of its own time. */
  declare private own: number;
  declare private inside: number;
  declare private attempts: number;
  /** The result of the last attempt. */
  declare private lastResult: unknown;
  declare private lastError: unknown;
  declare private errors: readonly unknown[];

  constructor(slot: Slot, ctx: LayerContext) {
    super(slot, ctx);
    this.since = this.started;
    this.own = 0;
    this.inside = 0;
    this.attempts = 0;
    this.lastResult = undefined;
    this.lastError = undefined;
    this.errors = NONE;
  }

  static run(slot: Slot, ctx: LayerContext, wrap: (ctx: any, next: Next) => unknown, next: Next): unknown {
    const call = new TracedWrap(slot, ctx);
    let returned: unknown;
    try {
      returned = wrap(ctx, (override) => call.goIn(next, override));
    } catch (error) {
      return call.threw(error);
    }
    if (!isThenable(returned)) return call.over(returned);
    if (!(returned instanceof Promise))
      return returned.then(
        (result) => call.over(result),
        (error) => call.threw(error),
      );
    // The same promise: in a later one, an attempt that nobody awaited might settle unnoticed.
    returned.then(
      (result) => call.over(result),
      (error) => call.recordError(error),
    );
    return returned;
  }

  private goIn(next: Next, override: Record<string, unknown> | undefined): Promise<unknown> {
    const { recorder } = this;
    const now = this.pause();
    this.inside++;
    this.attempts++;
    try {
      this.recordEntry(override);
    } catch {
      // Recording never fails a run.
    }
    recorder.leftAt = now;
    const work = next(override);
    recorder.leftAt = 0;
    work.then(
      (result) => this.comeOut(result, undefined),
      (error) => {
        this.errors = [...this.errors, error];
        this.comeOut(undefined, error);
      },
    );
    return work;
  }

  private recordEntry(override: Record<string, unknown> | undefined): void {
    const { recorder, slot, ctx, attempts, lastError, ms } = this;
    if (attempts > 1) {
      const why = lastError === undefined ? {} : { error: recorder.telling.error(lastError, ctx) };
      recorder.add(slot, 'retried', ctx, this.since, ms, { ...why, attempt: attempts });
      this.ms = 0;
    }
    const parts = overridden(callParts(ctx), override);
    if (parts !== this.parts) recordWrites(this, parts, attempts);
  }

  private comeOut(result: unknown, error: unknown): void {
    this.lastResult = result;
    this.lastError = error;
    if (--this.inside === 0) this.since = this.recorder.now();
  }

  /** Its own time stops while an attempt is under way. */
  private pause(): number {
    const now = this.recorder.now();
    if (this.inside > 0) return now;
    this.own += now - this.since;
    this.ms += now - this.since;
    return now;
  }

  private over(returned: unknown): unknown {
    this.pause();
    const { recorder, slot, lastResult } = this;
    recorder.spent(slot, this.own);
    const result = returned ?? (this.ctx as LayerContext).result;
    if (result !== lastResult && result !== undefined)
      recorder.quietly(() => recordAnswer(this, lastResult, result));
    return returned;
  }

  private threw(error: unknown): never {
    this.recordError(error);
    throw error;
  }

  private recordError(error: unknown): void {
    const { recorder, slot } = this;
    this.pause();
    recorder.spent(slot, this.own);
    // An error that came through `next()` is not its own.
    if (!this.errors.includes(error)) recorder.quietly(() => recordFailure(this, error));
  }
}

/** The parts of the call as `next(override)` passes them in. Arguments given there are raw input again. */
function overridden(parts: unknown, override: Record<string, unknown> | undefined): unknown {
  if (override === undefined) return parts;
  const given = Object.entries(override).filter(([, value]) => value !== undefined);
  if (given.length === 0) return parts;
  const { args } = Object.fromEntries(given);
  return { ...(parts as object), ...Object.fromEntries(given), ...(args !== undefined && { raw: args }) };
}
