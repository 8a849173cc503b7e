/** Cancels runs, wherever they are. */
import type { Store } from 'allium';
import { jobOf } from './jobs.js';
import type { Backend } from './options.js';
import type { Known } from './turns.js';

/** Ends a run, whether its job waits, is worked on, or waits for an answer. False if there is nothing to end. */
export async function cancelRun(
  backend: Backend,
  store: Store | undefined,
  runId: string,
  given: string | undefined,
): Promise<boolean> {
  const { turns, runs, later } = backend;
  const reason = given || 'The run was cancelled.';
  const first = jobOf(runId);
  // A job whose time has just come is on its way to the queue, and is found below.
  const delayed = await (await later.getJob(first))?.remove().then(
    () => true,
    () => false,
  );
  for (let id = first; ; ) {
    const { sessionId = '' } = (await turns.known(id)) ?? {};
    const stop = { reason: 'aborted', message: reason } as const;
    const [how, by] = await turns.cancel(id, reason, {
      status: 'aborted',
      runId: id,
      sessionId,
      text: '',
      stop,
    });
    const known = await turns.known(id);
    // A job that was removed may have been meant to continue a run that waits: that is still there.
    const waits = how === 'removed' ? id !== first : known?.outcome?.status === 'suspended';
    if (how === 'over' && by !== '') id = by;
    else if (known && waits) return endWaiting(backend, store, { of: first, known, reason });
    else if (how === 'unknown' || how === 'over') return delayed === true;
    else {
      // A job that waits for its next try need not wait any longer.
      if (how === 'told') await (await runs.getJob(id))?.promote().catch(() => undefined);
      return true;
    }
  }
}

/** Ends a run that waits for an answer: a worker continues it, only to end it. */
async function endWaiting(
  { turns, retry, clock }: Backend,
  store: Store | undefined,
  { of, known, reason }: { readonly of: string; readonly known: Known; readonly reason: string },
): Promise<true> {
  const { sessionId, agent, tenant } = known;
  // From here on answers come too late.
  await store?.post(sessionId, { type: 'cancel', reason });
  await turns.file(`c_${of}`, {
    kind: 'resume',
    agent,
    sessionId,
    ...(tenant !== undefined && { tenant }),
    of,
    cancelled: reason,
    retry,
    enqueuedAt: clock.now(),
  });
  return true;
}
