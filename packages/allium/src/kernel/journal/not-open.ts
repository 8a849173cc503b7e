/** Why a run can't be resumed: it isn't open. */

import { AlliumError } from '../lib/errors.js';
import type { SessionState } from './session-state.js';

/** There is no run to resume. */
export function nothingOpen({ sessionId, ended }: SessionState): AlliumError {
  if (!ended)
    return new AlliumError(
      'SESSION_UNKNOWN',
      `There is no run of session "${sessionId}" in this store, so nothing can be resumed. Check the id and the store, or start a run with run().`,
    );
  const { runId, status } = ended;
  return new AlliumError(
    'SESSION_UNKNOWN',
    `Session "${sessionId}" has no run to resume: the last one, "${runId}", has ended as '${status}'. Start another with run().`,
    { data: { runId, status } },
  );
}

/** Another run is the one to resume. */
export function anotherOpen({ sessionId, open, ended }: SessionState, runId: string): AlliumError {
  const status = ended?.runId === runId ? ` It has ended as '${ended.status}'.` : '';
  return new AlliumError(
    'SESSION_UNKNOWN',
    `Run "${runId}" of session "${sessionId}" is not open, so it cannot be resumed: "${open!.runId}" is.${status}`,
    { data: { runId, open: open!.runId } },
  );
}
