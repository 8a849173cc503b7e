/** `createQueue`: for processes that hand out work, follow it and answer its questions, but run no agent. */
import { createHash } from 'node:crypto';
import { Agent, AlliumError, type Decision, type MessageInput, type Model, type Store } from 'allium';
import { type EventReader, eventHub, type FollowOptions, type SentEvent, type Show } from 'allium/http';
import { checkInteger, checkOptions, checkText, invalidOption, toMessages } from 'allium/kit';
import { getNextMillis } from 'bullmq';
import { cancelRun } from './cancel-run.js';
import { failedJobs, redriveJobs } from './dead-letters.js';
import { whenFinished } from './finished.js';
import { keyed, newId } from './job-ids.js';
import { type JobData, jobOf, type Outcome } from './jobs.js';
import { type JoinPlace, JoinReader } from './join.js';
import { LiveSessions } from './live.js';
import { metricsOf } from './metrics.js';
import { type Backend, checkRate, openBackend, SHARED } from './options.js';
import type {
  AgentQueue,
  Enqueued,
  EnqueueOptions,
  FailedJob,
  QueueOptions,
  ResumeOptions,
  Schedule,
} from './queue-options.js';
import { lastRun } from './run-job.js';
import type { QueueMetrics, RateLimit } from './turns.js';

/**
 * A queue of work for agents that run on workers.
 *
 * @example
 * const queue = createQueue({ connection: 'redis://localhost:6379', store });
 * const { runId, sessionId } = await queue.enqueue('support', 'Where is my parcel?', { tenant: 'acme' });
 * for await (const { event } of queue.join(sessionId)) console.log(event.type);
 */
export function createQueue(options: QueueOptions): AgentQueue {
  checkOptions('createQueue', options, [...SHARED, 'store', 'show', 'timeoutMs']);
  const { store, show, timeoutMs = 5000 } = options;
  checkInteger('timeoutMs', timeoutMs, 1);
  return new FleetQueue(openBackend(options, timeoutMs), store, show);
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

class FleetQueue implements AgentQueue {
  readonly #backend: Backend;
  readonly #show: Show | undefined;
  #join: JoinPlace | undefined;
  #reader: Agent | undefined;

  constructor(
    backend: Backend,
    readonly store: Store | undefined,
    show: Show | undefined,
  ) {
    this.#backend = backend;
    this.#show = show;
  }

  async enqueue(
    agent: string,
    input: MessageInput | readonly MessageInput[],
    options: EnqueueOptions = {},
  ): Promise<Enqueued> {
    return this.#add('run', agent, toInput(input), options);
  }

  continue(agent: string, options: EnqueueOptions & { readonly sessionId: string }): Promise<Enqueued> {
    return this.#add('continue', agent, undefined, options);
  }

  async #add(
    kind: JobData['kind'],
    agent: string,
    input: JobData['input'],
    options: EnqueueOptions,
  ): Promise<Enqueued> {
    checkText('agent', agent);
    checkOptions('enqueue', options, ENQUEUE);
    const {
      tenant,
      priority = 0,
      delayMs = 0,
      idempotencyKey,
      schedule,
      whenBusy = 'queue',
      metadata,
    } = options;
    const runId = idempotencyKey === undefined ? newId() : keyed(tenant, idempotencyKey);
    const { sessionId = `s_${runId.slice(2)}` } = options;
    checkText('sessionId', sessionId);
    checkInteger('priority', priority, 0, 1_000_000);
    checkInteger('delayMs', delayMs, 0);
    if (!WHEN_BUSY.includes(whenBusy))
      throw invalidOption('whenBusy', "'queue', 'steer' or 'follow-up'", whenBusy);
    const { turns, later, retry, clock } = this.#backend;
    const data: JobData = {
      kind,
      agent,
      sessionId,
      ...(input !== undefined && { input }),
      ...(tenant !== undefined && { tenant }),
      ...(metadata && { metadata }),
      ...(priority > 0 && { priority }),
      retry,
      enqueuedAt: clock.now(),
    };
    if (schedule) return this.#schedule(schedule, data, options.sessionId !== undefined);
    if (whenBusy !== 'queue' && input !== undefined) {
      const hears = await this.#say(data, whenBusy);
      if (hears !== undefined) return { runId: hears, sessionId, state: 'said' };
    }
    const known = idempotencyKey === undefined ? undefined : await turns.known(runId);
    if (known) return { runId, sessionId: known.sessionId, state: 'known' };
    if (delayMs > 0) {
      // Should this process end in between, the job is there all the same.
      await later.add(agent, data, { jobId: runId, delay: delayMs });
      await turns.delayed(runId, data);
      return { runId, sessionId, state: 'delayed' };
    }
    if (await turns.file(runId, data)) return { runId, sessionId, state: 'queued' };
    return { runId, sessionId: (await turns.known(runId))?.sessionId ?? sessionId, state: 'known' };
  }

  /** Sends a message into the run under way. Returns the id of the run that answers it, or undefined if there is none. */
  async #say(data: JobData, how: 'steer' | 'follow-up'): Promise<string | undefined> {
    const { turns } = this.#backend;
    const { sessionId } = data;
    const session = this.#session(sessionId, data.tenant);
    // Checked before and after: a run that ends in between would leave the message unanswered.
    const runId = await turns.speak(sessionId);
    if (runId === undefined) return undefined;
    for (const one of [data.input].flat() as MessageInput[])
      await (how === 'steer' ? session.steer(one) : session.followUp(one));
    if ((await turns.speak(sessionId)) !== undefined) return runId;
    const { input: _, ...rest } = data;
    const next = newId();
    await turns.file(next, { ...rest, kind: 'continue' });
    return next;
  }

  async #schedule(schedule: Schedule, data: JobData, named: boolean): Promise<Enqueued> {
    checkOptions('schedule', schedule, ['id', 'cron', 'everyMs', 'timeZone']);
    const { id, cron, everyMs, timeZone } = schedule;
    checkText('schedule.id', id);
    if ((cron === undefined) === (everyMs === undefined))
      throw invalidOption('schedule', 'one of `cron` and `everyMs`', schedule);
    if (everyMs !== undefined) checkInteger('schedule.everyMs', everyMs, 1);
    if (cron !== undefined) await checkCron(cron, timeZone);
    const { sessionId, ...rest } = data;
    await this.#backend.later.upsertJobScheduler(
      id,
      {
        ...(cron !== undefined && { pattern: cron }),
        ...(everyMs !== undefined && { every: everyMs }),
        ...(timeZone !== undefined && { tz: timeZone }),
      },
      { name: data.agent, data: { ...rest, sessionId: named ? sessionId : '' } },
    );
    return { runId: '', sessionId: named ? sessionId : '', state: 'scheduled' };
  }

  async *join(sessionId: string, options: FollowOptions = {}): AsyncIterableIterator<SentEvent> {
    const events = this.reader(sessionId, options);
    try {
      for (let batch = await events.next(); batch; batch = await events.next()) yield* batch;
    } finally {
      events.leave();
    }
  }

  reader(sessionId: string, options: FollowOptions = {}): EventReader {
    this.#join ??= this.#openJoin();
    return new JoinReader(this.#join, sessionId, options);
  }

  #openJoin(): JoinPlace {
    const { connections, turns, clock } = this.#backend;
    const hub = eventHub({
      store: this.#needsStore('join()'),
      ...(this.#show && { show: this.#show }),
      clock,
      watch: (id, wake) => live.follow(id, wake),
    });
    const live = new LiveSessions(hub, turns, connections);
    return { hub, live, turns, connections };
  }

  async answer(requestId: string, decision: Decision): Promise<void> {
    const { turns, retry, clock } = this.#backend;
    const of = jobOf(requestId);
    const known = await turns.known(of);
    if (!known)
      throw new AlliumError(
        'REQUEST_UNKNOWN',
        `There is no run that asked "${requestId}". Answer with an id of \`pending\`.`,
        { data: { requestId } },
      );
    const { sessionId, agent, tenant } = known;
    // Also if somebody else has answered, and died before the run could continue.
    const goOn = () =>
      turns.file(`a_${createHash('sha1').update(requestId).digest('hex').slice(0, 20)}`, {
        kind: 'resume',
        agent,
        sessionId,
        ...(tenant !== undefined && { tenant }),
        of,
        retry,
        enqueuedAt: clock.now(),
      });
    try {
      await this.#session(sessionId, tenant).answer(requestId, decision);
    } catch (error) {
      // The one who answered first may have died before the run was told to continue.
      if ((error as AlliumError).data?.late && (await this.#openRun(sessionId))) await goOn();
      throw error;
    }
    await goOn();
  }

  async resume(agent: string, options: ResumeOptions): Promise<Enqueued> {
    checkText('agent', agent);
    checkOptions('resume', options, ['sessionId', 'tenant', 'answers', 'metadata']);
    const { turns, retry, clock } = this.#backend;
    const { sessionId, tenant, answers = {}, metadata } = options;
    const session = this.#session(sessionId, tenant);
    for (const [id, decision] of Object.entries(answers)) await session.answer(id, decision);
    const runId = newId();
    await turns.file(runId, {
      kind: 'resume',
      agent,
      sessionId,
      ...(tenant !== undefined && { tenant }),
      ...(metadata && { metadata }),
      retry,
      enqueuedAt: clock.now(),
    });
    return { runId, sessionId, state: 'queued' };
  }

  async stop(sessionId: string, reason?: string): Promise<boolean> {
    const id = await this.#backend.turns.first(sessionId);
    if (id !== undefined) return this.cancel(id, reason);
    const open = await this.#openRun(sessionId);
    return open !== undefined && this.cancel(open, reason);
  }

  /** The id of the session's run that has not ended, by the journal. */
  async #openRun(sessionId: string): Promise<string | undefined> {
    const last = this.store && (await lastRun(this.store, sessionId, undefined));
    return last?.state === 'open' ? last.runId : undefined;
  }

  isBusy(sessionId: string): Promise<boolean> {
    return this.#backend.turns.isQueued(sessionId);
  }

  cancel(runId: string, reason?: string): Promise<boolean> {
    return cancelRun(this.#backend, this.store, runId, reason);
  }

  async outcome(runId: string): Promise<Outcome | undefined> {
    return (await this.#backend.turns.latest(jobOf(runId)))?.outcome;
  }

  async finished(runId: string, { signal }: { readonly signal?: AbortSignal } = {}): Promise<Outcome> {
    return whenFinished(this.#backend, runId, signal);
  }

  async failed({ limit = 100 }: { readonly limit?: number } = {}): Promise<readonly FailedJob[]> {
    checkInteger('limit', limit, 1);
    return failedJobs(this.#backend, limit);
  }

  redrive(...runIds: readonly string[]): Promise<number> {
    return redriveJobs(this.#backend, runIds);
  }

  unschedule(id: string): Promise<boolean> {
    return this.#backend.later.removeJobScheduler(id);
  }

  async setRateLimit(tenant: string, limit: RateLimit | undefined): Promise<void> {
    if (limit) checkRate('limit', limit);
    await this.#backend.turns.limit(tenant, limit);
  }

  async metrics(): Promise<QueueMetrics> {
    return metricsOf(this.#backend);
  }

  close(): Promise<void> {
    this.#join?.live.close();
    return this.#backend.close();
  }

  /** A session to look at and to write to. It is never run here. */
  #session(sessionId: string, tenant: string | undefined) {
    const store = this.#needsStore('answers and steering');
    this.#reader ??= new Agent({ name: 'queue', model: nobody, store });
    return this.#reader.session(sessionId, { ...(tenant !== undefined && { tenant }) });
  }

  #needsStore(what: string): Store {
    if (this.store) return this.store;
    throw new AlliumError(
      'INVALID_OPTION',
      `createQueue() has no \`store\`, but ${what} need one. Pass the store of the workers.`,
    );
  }
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

const nobody: Model = {
  provider: 'none',
  id: 'none',
  // biome-ignore lint/correctness/useYield: it never gets that far.
  async *stream(): AsyncGenerator<never> {
    throw new Error('The process of a queue runs no agent.');
  },
};

/** As JSON keeps it. Mistakes are reported here, and not by a worker hours later. */
function toInput(input: MessageInput | readonly MessageInput[]): JobData['input'] {
  return typeof input === 'string' ? input : toMessages(input);
}
