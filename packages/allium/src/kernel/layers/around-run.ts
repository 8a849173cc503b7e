/** `beforeRun` and `afterRun`: the pair around a whole run. `afterRun` always follows, also when the run failed. */

import type { RunContext } from '../context/context.js';
import { safeErrorMessage } from '../guards/guards.js';
import { AlliumError, isThenable } from '../lib/errors.js';
import { Scope, untilAborted } from '../lib/scope.js';
import type { Layer } from '../protocol/plan.js';
import { isControl } from '../protocol/signals.js';
import { runHook } from './before-after.js';
import { type Inward, save, takeResult, wrongReturn } from './layer.js';

type Failure = { readonly error: unknown } | undefined;

export async function aroundRun(onion: Inward, layer: Layer, i: number, ctx: RunContext): Promise<unknown> {
  let failure: Failure;
  let inner: RunContext | undefined;
  try {
    const preset = layer.before !== undefined && (await runHook(layer, ctx, 'before'));
    if (!preset) {
      inner = ctx._fork();
      ctx.result = (await onion.enter(i + 1, inner)) as never;
    }
  } catch (error) {
    failure = { error };
    ctx._run.carry(error, ctx);
    ctx.result = undefined;
    ctx.error = error;
  }
  // A run happens once, so what its layers wrote counts even if it failed.
  if (inner) ctx._adopt(inner);
  if (layer.after !== undefined) failure = await tearDown(layer, ctx, failure);
  if (failure) throw failure.error;
  return ctx.result;
}

/** `afterRun` has its own signal and time limit. If it fails too, that must not hide why the run failed. */
async function tearDown(layer: Layer, ctx: RunContext, failure: Failure): Promise<Failure> {
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
      ctx._run.note(layer.name, `${hook} failed: ${safeErrorMessage(error, ctx)}`);
      return failure;
    }
    return { error: ctx._blame(layer.name, hook, error) };
  } finally {
    cancel?.();
    scope.close();
  }
}
