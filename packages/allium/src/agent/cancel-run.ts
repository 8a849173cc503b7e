/** Cancels a run from outside, where no run of this agent is in progress. */

import { onlyWaits } from '../kernel/calls/unanswered.js';
import { cancelled } from '../kernel/inbox/inbox.js';
import { post, reached } from '../kernel/inbox/posting.js';
import type { SessionState } from '../kernel/journal/session-state.js';
import { codeOf } from '../kernel/lib/errors.js';
import { Scope } from '../kernel/lib/scope.js';
import type { Store } from '../kernel/protocol/store.js';

/** Posts the cancel, for the process that works on the run. */
export function cancel(store: Store, sessionId: string, reason: string | undefined): Promise<void> {
  return reached(() => post(store, sessionId, { type: 'cancel', ...(reason !== undefined && { reason }) }));
}

/** Ends a run that waits for answers: nobody would find the cancel before the run is resumed. `end`: resumes it, aborted. */
export async function endWaiting(
  { open }: SessionState,
  reason: string | undefined,
  end: (aborted: Scope) => Promise<unknown>,
): Promise<void> {
  if (!open || !onlyWaits(open)) return;
  const scope = new Scope();
  scope.abort(cancelled(reason));
  try {
    await end(scope);
  } catch (error) {
    if (!EXPECTED.includes(codeOf(error)!)) throw error;
  }
}

/** It ended, or somebody else works on it and finds the cancel, or has ended it. */
const EXPECTED: readonly string[] = ['ABORTED', 'SESSION_BUSY', 'SESSION_CONFLICT', 'SESSION_UNKNOWN'];
