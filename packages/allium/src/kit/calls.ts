/** Calls: telling them apart, giving them time, and ending a run in somebody's name. */
import { internal } from '../kernel/context/context.js';
import type { Context, ModelContext } from '../kernel/protocol/contexts.js';
import { StopRun } from '../kernel/protocol/signals.js';
import type { StoppingReason } from '../kernel/protocol/stop.js';

/**
 * The same object for every context of one model or tool call, in all its layers and attempts: a key for a `WeakMap` or
 * `WeakSet`. Calls that somebody makes in between, with `ctx.generate()`, have a key of their own.
 */
export function callKey(ctx: Context): object {
  return internal(ctx)._call;
}

/**
 * Like `ctx.stop()`, in the name of the middleware `by`: for a context that belongs to somebody else, as in `admit`
 * of a meter. Throws. The run ends even if the exception is swallowed.
 */
export function stopRunAs(by: string, ctx: Context, reason: StoppingReason, why?: string): never {
  const signal = new StopRun(reason, why);
  internal(ctx)._latch(signal, by);
  throw signal;
}

/**
 * Lets the model of this call take longer than the kernel's defaults (`limits.modelIdleMs`, `limits.modelMs`): for a layer
 * with time limits of its own. Limits that the agent sets itself still hold.
 */
export function allowModelTime(
  ctx: ModelContext,
  { totalMs = 0, idleMs = 0 }: { readonly totalMs?: number; readonly idleMs?: number },
): void {
  const { _call: call } = internal(ctx);
  call.time = {
    totalMs: Math.max(totalMs, call.time?.totalMs ?? 0),
    idleMs: Math.max(idleMs, call.time?.idleMs ?? 0),
  };
}

/**
 * The name of the middleware that made this model call with `ctx.generate()`. Undefined for a call of the run itself, and for
 * one that a tool made.
 */
export function callerName(ctx: ModelContext): string | undefined {
  if (ctx.caller === undefined) return undefined;
  const { _run: run, _position: position } = internal(ctx.caller);
  return run.nameAt(position);
}

/**
 * Is the whole run aborted? The signal of a tool call says more: it also aborts behind a tool that has failed by itself,
 * once another call of the answer asks somebody or stops the run.
 */
export function isRunAborted(ctx: Context): boolean {
  return internal(ctx)._run.scope.aborted;
}
