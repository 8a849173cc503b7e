/**
 * Jobs for later and schedules: BullMQ keeps the time; once it has come, they wait for their turn like all others.
 */
import { createHash } from 'node:crypto';
import { Worker, type WorkerOptions } from 'bullmq';
import type { JobData } from './jobs.js';
import type { Turns } from './turns.js';

export function scheduleIntake(name: string, turns: Turns, options: WorkerOptions): Worker<JobData> {
  return new Worker<JobData>(
    name,
    async (job) => {
      const { data } = job;
      // Each time of a schedule is its own job; a second look at the same one isn't.
      const hash = createHash('sha1').update(job.id!).digest('hex').slice(0, 20);
      const id = job.repeatJobKey === undefined ? job.id! : `c_${hash}`;
      await turns.file(id, { ...data, sessionId: data.sessionId || `s_${hash}` });
    },
    options,
  );
}
