/** A run without turns: middleware that can compact the history do so. */

import { ModelContext, ModelSeam } from '../context/context.js';
import { checkLimits } from '../context/stop-checks.js';
import { naturalEnd } from '../model/write-answer.js';
import { askHook } from '../plan/ask-hook.js';
import { controlKind } from '../protocol/signals.js';
import type { Stop } from '../protocol/stop.js';
import type { Run } from './run.js';

/** Nobody watches their model calls. */
export async function compactHistory(run: Run): Promise<Stop> {
  checkLimits(run);
  const seam = new ModelSeam(run, run.scope, undefined, run.history.length);
  const ctx = new ModelContext(run, run.scope, run.request, seam);
  try {
    for (const planned of run.plan.rules.compact) await askHook(planned, ctx);
  } catch (error) {
    if (controlKind(error) === 'stop') run.call.latch(error, seam.latchedBy);
    throw error;
  }
  if (ctx._state) run.cells.stage(ctx._state);
  return naturalEnd(undefined, undefined);
}
