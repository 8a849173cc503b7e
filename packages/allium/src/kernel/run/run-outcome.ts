/** How a run ended, by the signal or error that ended it. */

import type { RunContext } from '../context/context.js';
import { stopOf } from '../context/stop-checks.js';
import { safeErrorMessage } from '../guards/guards.js';
import { codeOf, messageOf } from '../lib/errors.js';
import type { RunResult } from '../protocol/result.js';
import { controlKind } from '../protocol/signals.js';
import type { Stop } from '../protocol/stop.js';
import { type ResultRun, resultOf } from './run-result.js';

/** How a run ended, and the error it failed with. */
export interface Ended {
  readonly result: RunResult;
  readonly failure?: { readonly error: unknown };
}

export function endedBy(run: ResultRun, error: unknown, ctx: RunContext): Ended {
  const { latched, latchedBy } = run.call;
  const stop = stopOf(error, latched === error ? latchedBy : undefined);
  if (stop) return { result: resultOf(run, 'stopped', stop) };
  const failure = { error };
  if (controlKind(error) === 'abort')
    return { result: resultOf(run, 'aborted', { reason: 'aborted', message: messageOf(error) }), failure };
  return { result: resultOf(run, 'error', failedWith(error, ctx)), failure };
}

/**
 * The stop of a failed run, for events and the journal, without what guards remove. The caller gets the error itself.
 */
export function failedWith(error: unknown, ctx: RunContext): Stop {
  // The message about a broken guard holds no secrets.
  const known = codeOf(error) === 'GUARD_FAILED';
  return { reason: 'error', message: known ? messageOf(error) : safeErrorMessage(error, ctx) };
}

/**
 * Attaches the result so far to the error that a run fails with, as `RunError` has it, so that a layer that catches
 * it can tell how far the run got. The property isn't enumerable, and is left out if the error isn't an object or has
 * a `result` already.
 */
export function carry(run: ResultRun, error: unknown, ctx: RunContext): void {
  if (typeof error !== 'object' || error === null || stopOf(error, undefined)) return;
  try {
    if (!carried.has(error) && 'result' in error) return;
    const { result } = endedBy(run, error, ctx);
    Object.defineProperty(error, 'result', { value: result, configurable: true });
    carried.add(error);
  } catch {
    // Frozen, or a proxy: it goes on as it is.
  }
}

/** Errors whose result is ours: the same one may end another run. */
const carried = new WeakSet<object>();
