/** `onError`: catches the errors of everything further in, at the model and tool seams. */

import type { LayerContext } from '../context/context.js';
import { safeErrorMessage } from '../guards/guards.js';
import { AlliumError, attribute, shown } from '../lib/errors.js';
import { NOTHING } from '../messages/messages.js';
import type { Layer } from '../protocol/plan.js';
import { isControl, RestartTurn } from '../protocol/signals.js';
import { Attempt, refuseRepeat, type Trying } from './attempt.js';
import { type Inward, ignore, undone } from './layer.js';

/** Runs what is further in, and again as long as `onError` wants to. */
export async function runCatch(onion: Inward, layer: Layer, i: number, ctx: LayerContext): Promise<unknown> {
  const trying: Trying = { onion, layer, i, ctx, attempts: NOTHING };
  for (;;) {
    const attempt = new Attempt(trying);
    try {
      return await attempt.promise;
    } catch (error) {
      try {
        await again(layer, ctx as Exclude<LayerContext, { seam: 'run' }>, error, trying.attempts.length);
      } catch (final) {
        if (final === error) ctx._adoptFailed(attempt.ctx);
        throw final;
      }
    }
  }
}

/** Asks `onError`; returns when there should be another attempt, throws otherwise. */
async function again(
  layer: Layer,
  ctx: Exclude<LayerContext, { seam: 'run' }>,
  error: unknown,
  ordinal: number,
): Promise<void> {
  checkEnded(ctx, error);
  if (isControl(error) || ctx._call.final?.has(error)) throw error;
  ctx.attempt = ordinal;
  const asked = ctx.seam === 'model' ? ctx.model : undefined;
  if (ctx.seam === 'model') ctx._call.modelSet = false;
  const before = ctx._state?.mark();
  let action: unknown;
  try {
    action = await layer.onError!(ctx, error);
    checkAction(layer, ctx, action, error);
  } catch (thrown) {
    if (thrown === error) throw error;
    undone(layer, 'onError', thrown, ctx, layer.open ? ignore : undefined, { handling: error });
    throw error;
  }
  checkEnded(ctx, error);
  if (action === 'fail') {
    ctx._call.final ??= new Set();
    ctx._call.final.add(error);
    attribute(error, { hook: ctx.seam }, ctx, { final: true });
  }
  if (action === 'restart' && ctx._run.mayRestart(layer.name))
    throw new RestartTurn(error, ctx._state?.since(before));
  // It is still the model that has just failed: nothing is left to fall back to.
  const exhausted = action === 'fallback' && ctx.seam === 'model' && ctx.model === asked;
  if ((action !== 'retry' && action !== 'fallback') || exhausted) throw error;
  const refusal = refuseRepeat(layer, ctx, error);
  if (refusal) throw ctx._blame(layer.name, 'onError', refusal);
  ctx._run.note(layer.name, `${action} after: ${safeErrorMessage(error, ctx)}`);
}

/**
 * Nothing is tried again after a stop or an abort, even if a layer swallowed it. If another call of the answer asks somebody
 * or stops the run, the failure of this one stands, and layers further out get to see it.
 */
function checkEnded(ctx: LayerContext, error: unknown): void {
  ctx._call.check();
  const { reason } = ctx._scope;
  if (reason === undefined) return;
  throw reason === ctx._call.halted && !ctx._run.scope.aborted ? error : reason;
}

function checkAction(layer: Layer, ctx: LayerContext, action: unknown, cause: unknown): void {
  const wrong = (what: string) =>
    new AlliumError('INVALID_HOOK_RESULT', `onError of "${layer.name}" returned ${shown(action)}${what}`, {
      cause,
    });
  if (action === undefined || action === 'retry' || action === 'fail') return;
  if (action !== 'fallback' && action !== 'restart')
    throw wrong(". Return 'retry', 'fallback', 'restart', 'fail' or nothing.");
  if (ctx.seam !== 'model')
    throw wrong(` at the ${ctx.seam} seam. There it may return 'retry', 'fail' or nothing.`);
  if (action === 'fallback' && !ctx._call.modelSet)
    throw wrong(" without setting ctx.model. Set it, or return 'retry'.");
}
