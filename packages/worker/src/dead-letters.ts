/** Jobs that failed for good, and how they are tried again. */
import { jobOf } from './jobs.js';
import type { Backend } from './options.js';
import type { FailedJob } from './queue-options.js';

export async function failedJobs({ runs }: Backend, limit: number): Promise<readonly FailedJob[]> {
  const jobs = await runs.getFailed(0, limit - 1);
  return jobs.filter(Boolean).map(({ id, data, failedReason, finishedOn, attemptsMade }) => ({
    runId: id!,
    sessionId: data.sessionId,
    agent: data.agent,
    ...(data.tenant !== undefined && { tenant: data.tenant }),
    reason: failedReason,
    failedAt: finishedOn ?? 0,
    attempts: attemptsMade,
  }));
}

/** Runs failed jobs again: these, or all of them. Returns how many. */
export async function redriveJobs({ runs, turns }: Backend, runIds: readonly string[]): Promise<number> {
  const jobs =
    runIds.length > 0
      ? await Promise.all(runIds.map((id) => runs.getJob(jobOf(id))))
      : await runs.getFailed(0, -1);
  let count = 0;
  for (const job of jobs) {
    if (!job || !(await job.isFailed())) continue;
    const { id, data } = job;
    // Filed before BullMQ forgets it, so that an interrupted call loses nothing.
    if (await turns.file(id!, { ...data, redriven: (data.redriven ?? 0) + 1 }, job)) count++;
  }
  return count;
}
