/** A layer at work: what it asks for with `next()`, and what becomes of it once it has ended. */

import type { LayerContext } from '../context/context.js';
import { AlliumError } from '../lib/errors.js';
import { type Outcome, supervised } from '../lib/scope.js';
import type { Layer } from '../protocol/plan.js';
import { Aborted, isControl } from '../protocol/signals.js';
import { Attempt, MAX_INWARD, type Override, repeat } from './attempt.js';
import { ignore, save, takeResult, undone } from './layer.js';
import type { Onion } from './onion.js';
import { badOverride } from './overrides.js';

/** What most layers never have. */
interface Rare {
  /** Puts back what the layer assigned, where it fails open. */
  undo: (() => void) | undefined;
  /** Attempts beyond the first. */
  more: Attempt[] | undefined;
  refused: AlliumError | undefined;
}

/** One `wrapX` or `process` in one call. It is its own first attempt; most layers make no other. */
class Inward extends Attempt {
  declare private readonly onion: Onion;
  declare private readonly i: number;
  /** Whom the result of the layer is for. */
  declare private readonly attempt: Attempt | undefined;
  /** `tail`: it returned the promise of its attempt as it is; what becomes of the attempt becomes of the layer. */
  declare private phase: 'running' | 'tail' | 'over';
  declare private rare: Rare | undefined;

  constructor(onion: Onion, layer: Layer, i: number, ctx: LayerContext, attempt: Attempt | undefined) {
    super(layer, ctx);
    this.onion = onion;
    this.i = i;
    this.attempt = attempt;
    this.phase = 'running';
    this.rare = undefined;
    if (layer.open) this.rest.undo = save(layer, ctx);
  }

  private get rest(): Rare {
    this.rare ??= { undo: undefined, more: undefined, refused: undefined };
    return this.rare;
  }

  /**
   * The layer calls `next()`: mostly once, and just like that. `runFork` written out: taken together this is too much for the
   * compiler to put into the function of the layer, where contexts cost more to make.
   */
  start(override: Override): Promise<unknown> {
    if (this.state !== 'none' || this.phase !== 'running' || override !== undefined)
      return this.startOther(override);
    const ctx = this.outer._fork(this);
    this.state = 'pending';
    this.ctx = ctx;
    const promise = this.onion.enter(this.i + 1, ctx, this) as Promise<unknown>;
    this.promise = promise;
    if ((this.state as Attempt['state']) === 'failed') promise.then(undefined, ignore);
    return promise;
  }

  private startOther(override: Override): Promise<unknown> {
    const { outer } = this;
    const again = this.state !== 'none';
    if (this.phase !== 'running' || again) {
      const refusal = this.refusal();
      if (refusal !== undefined) return this.isStuck(refusal) ? NEVER : rejected(refusal);
    }
    const wrong = override === undefined ? undefined : badOverride(outer.seam, override);
    if (wrong) return rejected(wrong);
    if (!again) return this.runFork(this.onion, this.i + 1, 1, override);
    const attempt = new Another(this);
    const { rest } = this;
    rest.more ??= [];
    rest.more.push(attempt);
    return attempt.runFork(this.onion, this.i + 1, 1 + rest.more.length, override);
  }

  /** Attempts may come to the same object. By a copy the layer says which of them it returns. */
  distinct(result: unknown): unknown {
    if (this.rare?.more === undefined) return result;
    const known = this.all.some((one) => one.state === 'done' && one.value === result);
    if (!known) return result;
    // The content is its own too: by that a copy which a layer makes of a result is traced to its attempt.
    const { content } = result as { readonly content?: unknown };
    const own = Array.isArray(content) && { content: Object.freeze([...content]) };
    return Object.freeze({ ...(result as object), ...own });
  }

  /** It goes on asking whatever it is told, and would for ever: the run ends without it. */
  private isStuck(refusal: unknown): boolean {
    const ctx = this.outer;
    if (ctx.seam === 'run' || ctx._call.repeats < 2 * MAX_INWARD) return false;
    ctx._run.scope.abort(refusal);
    return true;
  }

  /** The layer has returned `next()`, as most do that have nothing to do. True: there is nothing left to wait for. */
  returned(work: unknown): boolean {
    if (work !== this.promise || this.state !== 'pending' || this.rare?.more !== undefined) return false;
    this.phase = 'tail';
    return true;
  }

  protected override keep(result: unknown): Promise<unknown> | unknown {
    const kept = super.keep(this.distinct(result));
    if (this.phase !== 'tail') return kept;
    this.phase = 'over';
    return this.leave();
  }

  override fail(error: unknown): unknown {
    super.fail(error);
    if (this.phase !== 'tail') return error;
    this.phase = 'over';
    this.outer._adoptFailed(this.ctx);
    const { latched = error } = this.outer._call;
    return this.attempt === undefined ? latched : this.attempt.fail(latched);
  }

  /** The layer has resolved. */
  ended(returned: unknown): Promise<unknown> | unknown {
    this.phase = 'over';
    if (returned !== undefined) this.outer.result = returned as never;
    return this.plain ? this.leave() : this.conclude();
  }

  /** The layer has thrown. */
  async threw(error: unknown): Promise<unknown> {
    this.phase = 'over';
    try {
      await this.recover(error);
    } catch (final) {
      throw this.attempt === undefined ? final : this.attempt.fail(final);
    }
    return this.leave();
  }

  private leave(): Promise<unknown> | unknown {
    const { outer: ctx, attempt } = this;
    try {
      // A run that stopped has a result, and every layer around it gets it; whoever swallowed a stop is found at its end.
      if (ctx.seam !== 'run') ctx._call.check();
      return attempt === undefined ? ctx.result : attempt.succeed(ctx.result);
    } catch (error) {
      throw attempt === undefined ? error : attempt.fail(error);
    }
  }

  private refusal(): unknown {
    const { layer, outer: ctx } = this;
    if (this.phase !== 'running')
      return new AlliumError(
        'MISSING_AWAIT',
        `Middleware "${layer.name}" called next() after its ${layer.hooks[0]} had ended. Await everything inside the hook.`,
      );
    const refusal = repeat(layer, ctx);
    if (ctx.seam === 'run') this.rest.refused = refusal as AlliumError;
    return refusal;
  }

  /** The common case: one attempt, whose result is taken as it is. */
  private get plain(): boolean {
    return (
      this.state === 'done' &&
      this.value === this.outer.result &&
      (this.rare === undefined || (this.rare.more === undefined && this.rare.refused === undefined))
    );
  }

  private get all(): readonly Attempt[] {
    return this.state === 'none' ? [] : [this, ...(this.rare?.more ?? [])];
  }

  private async conclude(): Promise<unknown> {
    try {
      await this.choose();
    } catch (error) {
      return this.threw(error);
    }
    return this.leave();
  }

  /** Whatever is still under way is dropped, and the attempt the layer chose commits. */
  private async choose(): Promise<void> {
    const { layer, outer: ctx, all } = this;
    if (this.rare?.refused) throw this.rare.refused;
    if (ctx.result === undefined) throw noResult(layer, all);
    await this.abandon();
    const chosen = all.find((one) => one.state === 'done' && one.value === ctx.result);
    if (!chosen) takeResult(layer, layer.hooks[0]!, ctx);
    // A result made from that of an attempt shares its content; one made from nothing follows the last attempt.
    const source =
      chosen ??
      all.findLast((one) => one.state === 'done' && contentOf(one.value) === contentOf(ctx.result)) ??
      all.findLast((one) => one.state === 'done');
    if (source) ctx._adopt(source.ctx as never);
    if (!chosen)
      ctx._run.note(
        layer.name,
        source ? `replaced the ${ctx.seam} result` : `answered the ${ctx.seam} call itself`,
      );
  }

  /** An error that came through `next()` goes on; one of the layer's own is undone if it may fail open. */
  private async recover(error: unknown): Promise<void> {
    const { layer, outer: ctx, all } = this;
    const undo = this.rare?.undo;
    const through = all.findLast((one) => one.state === 'failed' && one.value === error);
    if (through || undo === undefined || isControl(error)) {
      await this.abandon();
      if (through) {
        ctx._adoptFailed(through.ctx);
        ctx._call.check();
      } else {
        const failed = all.findLast((one) => one.state === 'failed');
        undone(layer, layer.hooks[0]!, error, ctx, undefined, failed && { handling: failed.value });
      }
      throw error;
    }
    undone(layer, layer.hooks[0]!, error, ctx, undo);
    // From here on as if it were not there: what it got from further in goes on.
    const good = all.findLast((one) => one.state === 'done') ?? all.find((one) => one.state === 'pending');
    await this.abandon(good);
    if (good) {
      ctx.result = (await good.promise) as never;
      ctx._adopt(good.ctx as never);
    } else if (all.length > 0) throw all.at(-1)!.value;
    else await new Attempt(layer, ctx).runFork(this.onion, this.i + 1, 1);
  }

  /** Aborts what is still under way through its own signal and waits for it, though not for code that ignores it. */
  private async abandon(kept?: Attempt): Promise<void> {
    const pending = this.all.filter((one) => one.state === 'pending' && one !== kept);
    if (pending.length === 0) return;
    const { clock, agent, scope } = this.outer._run;
    const reason = new Aborted('This attempt is no longer needed.');
    for (const one of pending) one.dropped = true;
    if (this.outer.seam === 'run') this.outer._run.loop = 'given up';
    for (const one of pending) (this.outer.seam === 'run' ? scope : one).abort(reason);
    await Promise.allSettled(
      pending.map((one) => supervised(one.promise!, one, clock.setTimer, agent.teardownTimeoutMs)),
    );
  }
}

/** An attempt beyond the first. */
class Another extends Attempt {
  constructor(private readonly inward: Inward) {
    super(inward.layer, inward.outer);
  }

  protected override keep(result: unknown): Promise<unknown> | unknown {
    return super.keep(this.inward.distinct(result));
  }
}

/**
 * Runs a `wrapX` or `process`. Written with `then`: an async function would cost a good part more. The outermost layer of a
 * call for which the run waits alone has an `outcome`, and one promise less to wait for.
 */
export function runWrap(
  onion: Onion,
  layer: Layer,
  i: number,
  ctx: LayerContext,
  attempt: Attempt | undefined,
  outcome?: Outcome<any, unknown>,
): Promise<unknown> {
  const inward = new Inward(onion, layer, i, ctx, attempt);
  let work: unknown;
  try {
    work = layer.wrap!(ctx, (override) => inward.start(override));
  } catch (error) {
    const failed = inward.threw(error);
    return outcome === undefined ? failed : ctx._run.superviseAlone(failed, outcome);
  }
  if (inward.returned(work)) {
    const tail = work as Promise<unknown>;
    return outcome === undefined ? tail : ctx._run.superviseAlone(tail, outcome);
  }
  const promise = work instanceof Promise ? work : Promise.resolve(work);
  if (outcome !== undefined) return ctx._run.superviseAlone(promise, outcome, inward);
  return promise.then(
    (returned) => inward.ended(returned),
    (error) => inward.threw(error),
  );
}

/** What a layer gets that never stops asking. */
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
  if (!swallowed) return new AlliumError('NO_RESULT', `${hook} neither called next() nor set a result.`);
  return new AlliumError(
    'NO_RESULT',
    `${hook} swallowed an error and set no result. Rethrow it, or assign a result.`,
    { cause: swallowed.value },
  );
}

function contentOf(result: unknown): unknown {
  return (result as { content?: unknown }).content ?? result;
}

/** A rejection that reaches whoever awaits it and nobody else. */
function rejected(error: unknown): Promise<never> {
  const promise = Promise.reject(error);
  promise.catch(ignore);
  return promise;
}
