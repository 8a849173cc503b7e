/** What `enqueue` does: files a job for now, for later or for a schedule, or says its message to the run under way. */
import { setTimeout as sleep } from 'node:timers/promises';
import type { MessageInput, Session } from 'allium';
import { checkInteger, checkOptions, checkText, invalidOption, isRecord } from 'allium/kit';
import { checkStorable } from 'allium/stores/kit';
import { keyed, newId } from './job-ids.js';
import type { JobData } from './jobs.js';
import type { Backend } from './options.js';
import type { Enqueued, EnqueueOptions } from './queue-options.js';
import { scheduleJob } from './schedule.js';
import type { Known, Turns } from './turns.js';

/** What enqueueing needs from its queue. */
export interface EnqueuePlace {
  readonly backend: Backend;
  /** A session to write to. */
  session(sessionId: string, tenant: string | undefined): Session;
}

export async function enqueueJob(
  { backend, session }: EnqueuePlace,
  what: Pick<JobData, 'kind' | 'agent' | 'input'>,
  options: EnqueueOptions,
): Promise<Enqueued> {
  check(what, options);
  const { tenant, priority = 0, delayMs = 0, idempotencyKey, whenBusy = 'queue', metadata } = options;
  const { turns, later, retry, clock } = backend;
  const key = idempotencyKey === undefined ? undefined : keyed(tenant, idempotencyKey);
  const runId = newId();
  const state = delayMs > 0 ? 'delayed' : 'queued';
  const { sessionId = `s_${runId.slice(2)}` } = options;
  const data: JobData = {
    ...what,
    sessionId,
    ...(tenant !== undefined && { tenant }),
    ...(metadata && { metadata }),
    ...(priority > 0 && { priority }),
    ...(key !== undefined && { key }),
    retry,
    enqueuedAt: clock.now(),
  };
  if (options.schedule) return scheduleJob(backend, options.schedule, data, options.sessionId !== undefined);
  for (;;) {
    const known = key === undefined ? undefined : await knownBy(turns, key);
    if (known) return { runId: known.said ?? runId, sessionId: known.sessionId, state: 'known' };
    if (whenBusy !== 'queue' && what.input !== undefined) {
      const heard = await say(turns, session(sessionId, tenant), data, whenBusy, key);
      if (heard !== undefined) return { runId: heard, sessionId, state: 'said' };
    }
    if (delayMs > 0) {
      // Should this process end in between, the job is there all the same.
      await later.add(what.agent, data, { jobId: runId, delay: delayMs });
      if (await turns.delayed(runId, data)) return { runId, sessionId, state };
      // If this fails, the job is not filed when its time has come.
      if (key !== undefined && (await knownBy(turns, key))?.said !== runId) await later.remove(runId);
    } else if (await turns.file(runId, data)) return { runId, sessionId, state };
    // Somebody else was quicker, or an earlier try of this call to Redis.
    if (key === undefined) return { runId, sessionId, state };
  }
}

/** What was made or said with the key. Waits for somebody who is just saying it. */
async function knownBy(turns: Turns, key: string): Promise<Known | undefined> {
  for (;;) {
    const known = await turns.known(key);
    if (!known?.reserved) return known;
    await sleep(AGAIN_MS);
  }
}
const AGAIN_MS = 100;

/** Sends a message into the run under way. Returns the id of the run that answers it, or undefined if there is none. */
async function say(
  turns: Turns,
  session: Session,
  data: JobData,
  how: 'steer' | 'follow-up',
  key: string | undefined,
): Promise<string | undefined> {
  const { sessionId } = data;
  // Checked before and after: a run that ends in between would leave the message unanswered.
  const heard = await (key === undefined ? turns.speak(sessionId) : turns.speakOnce(key, data));
  if (heard === undefined) return undefined;
  try {
    for (const one of [data.input].flat() as MessageInput[])
      await (how === 'steer' ? session.steer(one) : session.followUp(one));
  } catch (error) {
    if (key !== undefined) await turns.forget(key);
    throw error;
  }
  let answers = heard;
  const remember = async (): Promise<void> => {
    if (key !== undefined) await turns.said(key, answers, data);
  };
  try {
    if ((await turns.speak(sessionId)) === undefined) {
      const { input: _, key: __, ...rest } = data;
      answers = newId();
      await turns.file(answers, { ...rest, kind: 'continue', unheard: true });
    }
  } catch (error) {
    // Redis learns of it when it is back, before it is asked again.
    remember().catch(() => undefined);
    throw error;
  }
  await remember();
  return answers;
}

const ENQUEUE = [
  'sessionId',
  'tenant',
  'priority',
  'delayMs',
  'idempotencyKey',
  'schedule',
  'whenBusy',
  'metadata',
] as const satisfies readonly (keyof EnqueueOptions)[];

const WHEN_BUSY: readonly EnqueueOptions['whenBusy'][] = ['queue', 'steer', 'follow-up'];

/** Mistakes are reported here, and not by a worker hours later. */
function check({ agent, input }: Pick<JobData, 'agent' | 'input'>, options: EnqueueOptions): void {
  checkNonEmpty('agent', agent);
  checkOptions('enqueue', options, ENQUEUE);
  const { sessionId, tenant, priority, delayMs, idempotencyKey, schedule, whenBusy, metadata } = options;
  if (sessionId !== undefined) {
    checkText('sessionId', sessionId);
    checkStorable('sessionId', sessionId);
  }
  if (tenant !== undefined) {
    checkNonEmpty('tenant', tenant);
    checkStorable('tenant', tenant);
  }
  if (priority !== undefined) checkInteger('priority', priority, 0, 1_000_000);
  if (delayMs !== undefined) checkInteger('delayMs', delayMs, 0);
  if (idempotencyKey !== undefined) checkNonEmpty('idempotencyKey', idempotencyKey);
  if (whenBusy !== undefined && !WHEN_BUSY.includes(whenBusy))
    throw invalidOption('whenBusy', "'queue', 'steer' or 'follow-up'", whenBusy);
  if (metadata !== undefined && !isRecord(metadata)) throw invalidOption('metadata', 'an object', metadata);
  checkJson('metadata', metadata);
  checkJson('input', input);
  const speaks = whenBusy !== undefined && whenBusy !== 'queue';
  if (delayMs && speaks)
    throw invalidOption('delayMs', `0 with \`whenBusy: '${whenBusy}'\`, which speaks at once`, delayMs);
  if (!schedule) return;
  if (speaks) throw invalidOption('whenBusy', "'queue' with `schedule`", whenBusy);
  if (delayMs) throw invalidOption('delayMs', '0 with `schedule`, which has times of its own', delayMs);
  if (idempotencyKey !== undefined)
    throw invalidOption(
      'idempotencyKey',
      'undefined with `schedule`, whose `id` does the same',
      idempotencyKey,
    );
}

function checkNonEmpty(option: string, value: unknown): void {
  if (typeof value !== 'string' || value === '') throw invalidOption(option, 'non-empty text', value);
}

function checkJson(option: string, value: unknown): void {
  try {
    JSON.stringify(value);
  } catch (error) {
    throw invalidOption(option, `JSON (${(error as Error).message.split('\n')[0]})`, value);
  }
}
