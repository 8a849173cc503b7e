/** Calls one decision hook, and checks what it returns and assigns. */

import type { Context } from '../context/context.js';
import { safeErrorMessage } from '../guards/guards.js';
import { save } from '../layers/layer.js';
import { attribute, isThenable } from '../lib/errors.js';
import { untilAborted } from '../lib/scope.js';
import type { PlannedHook } from '../protocol/plan.js';
import { isControl } from '../protocol/signals.js';
import { SHAPES, wrongAnswer } from './hook-shapes.js';

/** Checks what a hook assigned to its context; throws if it may not. */
export type Look = (planned: PlannedHook, ctx: any, before: any) => void;

/**
 * Attributes errors, skips a hook that fails open, and stops at a latched signal. An abort ends the wait for a hook; a later
 * answer is dropped.
 */
export async function askHook<T>(
  planned: PlannedHook,
  ctx: Context,
  subject: unknown = ctx,
  look?: Look,
  before?: unknown,
): Promise<T | undefined> {
  ctx._position = planned.position;
  const undo = save(planned, ctx);
  try {
    const given: unknown = subject === ctx ? planned.fn(ctx) : planned.fn(subject, ctx);
    const answer = isThenable(given) ? await untilAborted(given, ctx._scope) : given;
    const wrong = answer === undefined ? undefined : SHAPES[planned.hook].wrong(answer, subject);
    if (wrong !== undefined) throw wrongAnswer(planned, answer, wrong);
    ctx._call.check();
    look?.(planned, ctx, before);
    return answer as T | undefined;
  } catch (error) {
    skip(planned, ctx, error);
    undo?.();
    return undefined;
  }
}

/** Returns if the hook fails open; otherwise throws its error, or a signal that was latched before. */
function skip({ hook, name, open }: PlannedHook, ctx: Context, error: unknown): void {
  if (isControl(error)) ctx._latch(error, error === ctx._scope.reason ? 'kernel' : name);
  else attribute(error, { middleware: name, hook }, ctx);
  ctx._call.check();
  if (isControl(error) || !open) throw error;
  ctx._run.note(name, `${hook} failed and was skipped: ${safeErrorMessage(error, ctx)}`);
}
