/** Schedules: BullMQ keeps them, and makes a job at each of their times. */
import { checkInteger, checkOptions, checkText, invalidOption } from 'allium/kit';
import { getNextMillis } from 'bullmq';
import type { JobData } from './jobs.js';
import type { Backend } from './options.js';
import type { Enqueued, Schedule } from './queue-options.js';

/** `named`: every run goes into the session of `data`; otherwise each has its own. */
export async function scheduleJob(
  { later }: Backend,
  schedule: Schedule,
  data: JobData,
  named: boolean,
): Promise<Enqueued> {
  checkOptions('schedule', schedule, ['id', 'cron', 'everyMs', 'timeZone']);
  const { id, cron, everyMs, timeZone } = schedule;
  checkText('schedule.id', id);
  if ((cron === undefined) === (everyMs === undefined))
    throw invalidOption('schedule', 'one of `cron` and `everyMs`', schedule);
  if (everyMs !== undefined) checkInteger('schedule.everyMs', everyMs, 1);
  if (cron !== undefined) await checkCron(cron, timeZone);
  const sessionId = named ? data.sessionId : '';
  await later.upsertJobScheduler(
    id,
    {
      ...(cron !== undefined && { pattern: cron }),
      ...(everyMs !== undefined && { every: everyMs }),
      ...(timeZone !== undefined && { tz: timeZone }),
    },
    { name: data.agent, data: { ...data, sessionId } },
  );
  return { runId: '', sessionId, state: 'scheduled' };
}

/** BullMQ would say so with an error of its parser, which names neither the option nor the value. */
async function checkCron(cron: string, timeZone: string | undefined): Promise<void> {
  checkText('schedule.cron', cron);
  const next = (tz?: string) => getNextMillis(Date.now(), { pattern: cron, ...(tz !== undefined && { tz }) });
  try {
    await next();
  } catch (error) {
    const why = (error as Error).message;
    throw invalidOption('schedule.cron', `a cron pattern such as '0 9 * * 1-5' (${why})`, cron);
  }
  if (timeZone === undefined) return;
  checkText('schedule.timeZone', timeZone);
  try {
    await next(timeZone);
  } catch {
    throw invalidOption('schedule.timeZone', "an IANA name such as 'Europe/Oslo'", timeZone);
  }
}
