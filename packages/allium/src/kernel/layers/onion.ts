/** The onion. A middleware is compiled into up to four primitive layers: process, a before/after pair, wrap, and its catch. */

import { owned } from '../context/blame.js';
import type { LayerContext, ModelContext, RunContext, ToolContext } from '../context/context.js';
import { toldError } from '../guards/guards.js';
import { AlliumError, isThenable } from '../lib/errors.js';
import { type Outcome, Scope, untilAborted } from '../lib/scope.js';
import type { Layer, Plan } from '../protocol/plan.js';
import { isControl } from '../protocol/signals.js';
import type { Awaitable } from '../protocol/store.js';
import type { Attempt } from './attempt.js';
import { runHook, runPairs } from './before-after.js';
import { save, takeResult, wrongReturn } from './layer.js';
import { runCatch } from './on-error.js';
import { runWrap } from './run-wrap.js';

/** A plan with its onions, made with the first call. */
export interface ComposedPlan extends Plan {
  /** The layers, with what is inside them. */
  readonly onions: { model: Onion | undefined; tool: Onion | undefined };
}

/** What is inside all layers. Given an attempt, it may settle it itself and return what came of that. */
type Final = (ctx: any, attempt: Attempt | undefined) => Promise<unknown> | unknown;

/** Runs `final` inside the layers from index `i` on; resolves with the result, which is also in `ctx.result`. */
export function enter(
  layers: readonly Layer[],
  i: number,
  ctx: LayerContext,
  final: Final,
): Promise<unknown> | unknown {
  return new Onion(layers, final).enter(i, ctx, undefined);
}

/** The layers of a seam and what is inside them. It holds nothing of a call: one serves every call of a plan. */
export class Onion {
  constructor(
    readonly layers: readonly Layer[],
    readonly final: Final,
  ) {}

  /** Goes in at layer `i`; what comes out is the attempt's, if one is given. */
  enter(i: number, ctx: LayerContext, attempt: Attempt | undefined): Promise<unknown> | unknown {
    const { ended } = ctx._call;
    if (ended !== undefined && i > 0) return this.refuse(ended, ctx, attempt);
    const layer = this.layers[i];
    if (layer === undefined)
      return attempt === undefined ? this.final(ctx, undefined) : runFinal(this, ctx, attempt);
    ctx._position = layer.position;
    if (layer.sink && ctx._run.judgements.hides(ctx)) return this.cleaned(layer, i, ctx, attempt);
    return this.through(layer, i, ctx, attempt);
  }

  /** The run is to end, so no layer further in begins. A run that stopped has a result, which the loop makes. */
  private refuse(
    ended: unknown,
    ctx: LayerContext,
    attempt: Attempt | undefined,
  ): Promise<unknown> | unknown {
    if (ctx.seam !== 'run') {
      if (attempt !== undefined) return attempt.rejected(ended);
      throw ended;
    }
    return attempt === undefined ? this.final(ctx, undefined) : runFinal(this, ctx, attempt);
  }

  /** Goes in from the outside, while the run waits for nothing else. What comes of it is `outcome`'s to say. */
  enterAlone<R>(ctx: ModelContext | ToolContext, outcome: Outcome<any, R>): Awaitable<R> {
    const layer = this.layers[0];
    if (layer?.kind === 'wrap' && !layer.sink) {
      ctx._position = layer.position;
      return runWrap(this, layer, 0, ctx, undefined, outcome) as Promise<R>;
    }
    const work = this.enter(0, ctx, undefined);
    return work instanceof Promise
      ? ctx._run.superviseAlone(work, outcome)
      : (outcome.completed(work) as Awaitable<R>);
  }

  /** What a sink is given passes the guards first. */
  private cleaned(layer: Layer, i: number, ctx: ToolContext, attempt: Attempt | undefined): Promise<unknown> {
    const work = ctx._run.judgements.assigned(ctx).then(() => this.through(layer, i, ctx, undefined));
    return attempt === undefined ? work : attempt.settledBy(work);
  }

  private through(
    layer: Layer,
    i: number,
    ctx: LayerContext,
    attempt: Attempt | undefined,
  ): Promise<unknown> | unknown {
    if (layer.kind === 'wrap') return runWrap(this, layer, i, ctx, attempt);
    if (layer.kind === 'catch') return runCatch(this, layer, i, ctx, attempt);
    return ctx.seam === 'run' ? aroundRun(this, layer, i, ctx, attempt) : runPairs(this, i, ctx, attempt);
  }
}

function runFinal(onion: Onion, ctx: LayerContext, attempt: Attempt): Promise<unknown> {
  try {
    const work = onion.final(ctx, attempt);
    // The model settles the attempt itself.
    return ctx.seam === 'model' ? (work as Promise<unknown>) : attempt.settledBy(work);
  } catch (error) {
    return attempt.rejected(error);
  }
}

/** `afterRun` always follows `beforeRun`, also when the run failed. */
async function aroundRun(
  onion: Onion,
  layer: Layer,
  i: number,
  ctx: RunContext,
  attempt: Attempt | undefined,
): Promise<unknown> {
  let failure: { readonly error: unknown } | undefined;
  let inner: RunContext | undefined;
  try {
    const preset = layer.before !== undefined && (await runHook(layer, ctx, false));
    if (!preset) {
      inner = ctx._fork();
      ctx.result = (await onion.enter(i + 1, inner, undefined)) as never;
      ctx._adopt(inner);
    }
  } catch (error) {
    // A run happens once: what its layers wrote holds, also when it failed.
    if (inner) ctx._adopt(inner);
    failure = { error };
    ctx._run.carry(error, ctx);
    ctx.result = undefined;
    ctx.error = error;
  }
  if (layer.after !== undefined) failure = await tearDown(layer, ctx, failure);
  if (failure) throw attempt === undefined ? failure.error : attempt.fail(failure.error);
  return attempt === undefined ? ctx.result : attempt.succeed(ctx.result);
}

/** `afterRun` has a signal and a time of its own. A failing one must not hide why the run failed. */
async function tearDown(
  layer: Layer,
  ctx: RunContext,
  failure: { readonly error: unknown } | undefined,
): Promise<typeof failure> {
  const hook = layer.hooks.at(-1)!;
  const { clock, agent } = ctx._run;
  const undo = save(layer, ctx);
  const before = ctx.result;
  const scope = new Scope();
  ctx._scope = scope;
  const late = `${hook} of "${layer.name}" took longer than ${agent.teardownTimeoutMs} ms.`;
  let cancel: (() => void) | undefined;
  try {
    let returned = layer.after!(ctx);
    if (isThenable(returned)) {
      const abort = () => scope.abort(new AlliumError('MIDDLEWARE_ERROR', late));
      cancel = clock.setTimer(abort, agent.teardownTimeoutMs);
      returned = await untilAborted(returned, scope);
    }
    if (returned !== undefined) throw wrongReturn(layer, hook, returned);
    if (ctx.result !== before && !failure) takeResult(layer, hook, ctx);
    return failure;
  } catch (error) {
    if (failure || (undo && !isControl(error))) {
      undo?.();
      ctx._run.note(layer.name, `${hook} failed: ${toldError(error, ctx)}`);
      return failure;
    }
    return { error: owned(layer.name, hook, error, ctx) };
  } finally {
    cancel?.();
    scope.close();
  }
}
