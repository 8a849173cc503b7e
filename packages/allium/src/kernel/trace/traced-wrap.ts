/** A `wrapX` or `process` in a traced run: its own time, and what it does before, between and after its attempts. */

import type { LayerContext } from '../context/context.js';
import { isThenable } from '../lib/errors.js';
import { NOTHING } from '../messages/messages.js';
import { partsOf, recordAnswer, recordFailure, recordWrites } from './acts.js';
import type { Slot } from './kept-acts.js';
import type { Recorder } from './recorder.js';

type Next = (override?: Record<string, unknown>) => Promise<unknown>;

export class TracedWrap {
  /** When it was called, and when its own work last began. */
  private readonly started: number;
  private since: number;
  /** Its own time, and how much of it is in no record yet. */
  private own = 0;
  private untold = 0;
  private inside = 0;
  private attempts = 0;
  /** The result of the last attempt. */
  private lastResult: unknown = undefined;
  private lastError: unknown = undefined;
  private errors: readonly unknown[] = NOTHING;
  private readonly parts: unknown;

  constructor(
    private readonly recorder: Recorder,
    private readonly slot: Slot,
    private readonly ctx: LayerContext,
  ) {
    this.parts = partsOf(ctx);
    this.started = recorder.now();
    this.since = this.started;
  }

  run(wrap: (ctx: any, next: Next) => unknown, next: Next): unknown {
    let returned: unknown;
    try {
      returned = wrap(this.ctx, (override) => this.goIn(next, override));
    } catch (error) {
      return this.threw(error);
    }
    if (!isThenable(returned)) return this.over(returned);
    if (!(returned instanceof Promise))
      return returned.then(
        (result) => this.over(result),
        (error) => this.threw(error),
      );
    // The same promise: in a later one, an attempt that nobody awaited might settle unnoticed.
    returned.then(
      (result) => this.over(result),
      (error) => this.recordError(error),
    );
    return returned;
  }

  private goIn(next: Next, override: Record<string, unknown> | undefined): Promise<unknown> {
    this.pause();
    this.inside++;
    this.attempts++;
    try {
      this.recordEntry(override);
    } catch {
      // Recording never fails a run.
    }
    const work = next(override);
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
    const { recorder, slot, ctx, attempts } = this;
    if (attempts > 1) {
      const error = this.lastError;
      const why = error === undefined ? {} : { error: recorder.telling.error(error, ctx) };
      recorder.add(slot, 'retried', ctx, this.since, this.takeOwnTime(), { ...why, attempt: attempts });
    }
    const parts = overridden(partsOf(ctx), override);
    if (parts !== this.parts)
      recordWrites(recorder, slot, ctx, this.started, this.takeOwnTime(), this.parts, parts, attempts);
  }

  private comeOut(result: unknown, error: unknown): void {
    this.lastResult = result;
    this.lastError = error;
    if (--this.inside === 0) this.since = this.recorder.now();
  }

  /** Its own time stops while an attempt is under way. */
  private pause(): void {
    const now = this.recorder.now();
    if (this.inside > 0) return;
    const ms = now - this.since;
    this.own += ms;
    this.untold += ms;
  }

  private takeOwnTime(): number {
    const ms = this.untold;
    this.untold = 0;
    return ms;
  }

  private over(returned: unknown): unknown {
    this.pause();
    const { recorder, slot, ctx, lastResult } = this;
    recorder.spent(slot, this.own);
    const result = returned ?? ctx.result;
    if (result !== lastResult && result !== undefined)
      recorder.quietly(() =>
        recordAnswer(recorder, slot, ctx, this.started, this.takeOwnTime(), lastResult, result),
      );
    return returned;
  }

  private threw(error: unknown): never {
    this.recordError(error);
    throw error;
  }

  private recordError(error: unknown): void {
    const { recorder, slot, ctx } = this;
    this.pause();
    recorder.spent(slot, this.own);
    // An error that came through `next()` is not its own.
    if (!this.errors.includes(error))
      recorder.quietly(() => recordFailure(recorder, slot, ctx, this.started, this.takeOwnTime(), error));
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
