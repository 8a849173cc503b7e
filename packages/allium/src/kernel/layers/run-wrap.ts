/** Runs a `wrapX` or `process`: its calls of `next()`, and which of their outcomes count once it has ended. */

import type { LayerContext } from '../context/context.js';
import { AlliumError, isThenable } from '../lib/errors.js';
import { supervised } from '../lib/scope.js';
import { NOTHING } from '../messages/messages.js';
import type { Layer } from '../protocol/plan.js';
import { Aborted, isControl } from '../protocol/signals.js';
import type { Awaitable } from '../protocol/store.js';
import { Attempt, badOverride, MAX_INWARD, type Override, refuseRepeat, type Trying } from './attempt.js';
import { type Inward, ignore, save, takeResult, undone } from './layer.js';

export function runWrap(onion: Inward, layer: Layer, i: number, ctx: LayerContext): Awaitable<unknown> {
  return new Wrap(onion, layer, i, ctx).run();
}

/** One `wrapX` or `process` in one call, and the attempts it makes. */
class Wrap implements Trying {
  attempts: readonly Attempt[] = NOTHING;
  private isOver = false;
  /** It called `next()` twice around a run. */
  private refused: unknown = undefined;
  /** Undoes what it assigned, if it fails open. */
  private readonly undo: (() => void) | undefined;

  constructor(
    readonly onion: Inward,
    readonly layer: Layer,
    readonly i: number,
    readonly ctx: LayerContext,
  ) {
    this.undo = save(layer, ctx);
  }

  run(): Awaitable<unknown> {
    let returned: unknown;
    try {
      returned = this.layer.wrap!(this.ctx, (override) => this.next(override));
    } catch (error) {
      return this.threw(error);
    }
    if (!isThenable(returned)) return this.returned(returned);
    return returned.then(
      (result) => this.returned(result),
      (error) => this.threw(error),
    ) as Promise<unknown>;
  }

  private returned(result: unknown): Awaitable<unknown> {
    this.isOver = true;
    if (result !== undefined) this.ctx.result = result as never;
    if (this.isPlain) return this.comeOut();
    return this.choose().then(
      () => this.comeOut(),
      (error) => this.threw(error),
    );
  }

  private threw(error: unknown): Promise<unknown> {
    this.isOver = true;
    return this.recover(error).then(() => this.comeOut());
  }

  private comeOut(): unknown {
    const { ctx } = this;
    // A stopped run has a result, which every layer around it gets. A swallowed stop is found at the end of the run.
    if (ctx.seam !== 'run') ctx._call.check();
    return ctx.result;
  }

  private next(override: Override): Promise<unknown> {
    const refusal = this.refusal(override);
    if (refusal === undefined) return new Attempt(this, override).promise;
    if (this.isStuck) {
      this.ctx._run.scope.abort(refusal);
      return NEVER;
    }
    const promise = Promise.reject(refusal);
    promise.catch(ignore);
    return promise;
  }

  /** Why there may be no further call inward, if so. */
  private refusal(override: Override): unknown {
    const { layer, ctx } = this;
    if (this.isOver)
      return new AlliumError(
        'MISSING_AWAIT',
        `Middleware "${layer.name}" called next() after its ${layer.hooks[0]} had ended. Await everything inside the hook.`,
      );
    const refusal = this.attempts.length === 0 ? undefined : refuseRepeat(layer, ctx);
    if (refusal !== undefined && ctx.seam === 'run') this.refused = refusal;
    return refusal ?? (override === undefined ? undefined : badOverride(ctx.seam, override));
  }

  /** It ignores refusals and would loop forever, so the run ends without it. */
  private get isStuck(): boolean {
    return this.ctx.seam !== 'run' && this.ctx._call.repeats >= 2 * MAX_INWARD;
  }

  /** The common case: one attempt, whose result is taken as it is. */
  private get isPlain(): boolean {
    const { attempts, ctx } = this;
    const [one] = attempts;
    return (
      attempts.length === 1 &&
      one!.state === 'done' &&
      one!.value === ctx.result &&
      this.refused === undefined
    );
  }

  /** Drops attempts that are still under way, and adopts what the chosen attempt wrote. */
  private async choose(): Promise<void> {
    const { layer, ctx, attempts } = this;
    if (this.refused !== undefined) throw this.refused;
    if (ctx.result === undefined) throw noResult(layer, attempts);
    await this.abandon();
    const chosen = attempts.find((one) => one.state === 'done' && one.value === ctx.result);
    if (!chosen) takeResult(layer, layer.hooks[0]!, ctx);
    // A result made from that of an attempt shares its content; one made from nothing follows the last attempt.
    const source =
      chosen ??
      attempts.findLast((one) => one.state === 'done' && contentOf(one.value) === contentOf(ctx.result)) ??
      attempts.findLast((one) => one.state === 'done');
    if (source) ctx._adopt(source.ctx as never);
    if (chosen) return;
    const what = source ? `replaced the ${ctx.seam} result` : `answered the ${ctx.seam} call itself`;
    ctx._run.note(layer.name, what);
  }

  /** An error that came through `next()` goes on; one of the layer's own is undone if it fails open. */
  private async recover(error: unknown): Promise<void> {
    const { layer, ctx, attempts, undo } = this;
    const hook = layer.hooks[0]!;
    const through = attempts.findLast((one) => one.state === 'failed' && one.value === error);
    if (through) {
      await this.abandon();
      ctx._adoptFailed(through.ctx);
      ctx._call.check();
      throw error;
    }
    if (undo === undefined || isControl(error)) {
      await this.abandon();
      const failed = attempts.findLast((one) => one.state === 'failed' && !one.dropped);
      undone(layer, hook, error, ctx, undefined, failed && { handling: failed.value });
    }
    undone(layer, hook, error, ctx, undo);
    // From here on it's as if the layer were not there: what it got from further in counts.
    const good =
      attempts.findLast((one) => one.state === 'done') ?? attempts.find((one) => one.state === 'pending');
    await this.abandon(good);
    if (good) {
      ctx.result = (await good.promise) as never;
      ctx._adopt(good.ctx as never);
    } else if (attempts.length > 0) throw attempts.at(-1)!.value;
    else await new Attempt(this).promise;
  }

  /** Aborts what is still under way through its own signal and waits for it, though not for code that ignores it. */
  private async abandon(kept?: Attempt): Promise<void> {
    const pending = this.attempts.filter((one) => one.state === 'pending' && one !== kept);
    if (pending.length === 0) return;
    const { _run: run, seam } = this.ctx;
    const reason = new Aborted('This attempt is no longer needed.');
    for (const one of pending) one.dropped = true;
    if (seam === 'run') run.loop = 'given up';
    for (const one of pending) (seam === 'run' ? run.scope : one).abort(reason);
    const { setTimer } = run.clock;
    await Promise.allSettled(
      pending.map((one) => supervised(one.promise, one, setTimer, run.agent.teardownTimeoutMs)),
    );
  }
}

/** For a layer that never stops calling `next()`. */
const NEVER: Promise<never> = new Promise(() => {});

function noResult(layer: Layer, attempts: readonly Attempt[]): AlliumError {
  const hook = `${layer.hooks[0]} of "${layer.name}"`;
  if (attempts.some((one) => one.state === 'pending')) {
    return new AlliumError(
      'MISSING_AWAIT',
      `${hook} ended while its next() was still pending. Write \`await next()\` or \`return next()\`.`,
    );
  }
  const swallowed = attempts.findLast((one) => one.state === 'failed');
  if (!swallowed)
    return new AlliumError('NO_RESULT', `${hook} neither called next() nor set a result. Do one of the two.`);
  return new AlliumError(
    'NO_RESULT',
    `${hook} swallowed an error and set no result. Rethrow it, or assign a result.`,
    { cause: swallowed.value },
  );
}

function contentOf(result: unknown): unknown {
  return (result as { content?: unknown }).content ?? result;
}
