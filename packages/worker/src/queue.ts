/** `createQueue`: for processes that hand out work, follow it and answer its questions, but run no agent. */
import { createHash } from 'node:crypto';
import { Agent, AlliumError, type Decision, type MessageInput, type Model, type Store } from 'allium';
import { type EventReader, eventHub, type FollowOptions, type SentEvent, type Show } from 'allium/http';
import {
  checkInteger,
  checkMethods,
  checkOptions,
  checkText,
  checkValue,
  kinds,
  toMessages,
} from 'allium/kit';
import { cancelRun } from './cancel-run.js';
import { failedJobs, redriveJobs } from './dead-letters.js';
import { type EnqueuePlace, enqueueJob } from './enqueue.js';
import { whenFinished } from './finished.js';
import { newId } from './job-ids.js';
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
  if (store !== undefined) checkMethods('store', store, ['append', 'read', 'head', 'post', 'take']);
  if (show !== undefined) checkValue('show', kinds.record, show);
  return new FleetQueue(openBackend(options, timeoutMs), store, show);
}

class FleetQueue implements AgentQueue {
  readonly #backend: Backend;
  readonly #show: Show | undefined;
  readonly #place: EnqueuePlace;
  /** By what their readers see. */
  readonly #joins = new Map<string, JoinPlace>();
  #reader: Agent | undefined;

  constructor(
    backend: Backend,
    readonly store: Store | undefined,
    show: Show | undefined,
  ) {
    this.#backend = backend;
    this.#show = show;
    this.#place = { backend, session: (id, tenant) => this.#session(id, tenant) };
  }

  async enqueue(
    agent: string,
    input: MessageInput | readonly MessageInput[],
    options: EnqueueOptions = {},
  ): Promise<Enqueued> {
    return enqueueJob(this.#place, { kind: 'run', agent, input: toInput(input) }, options);
  }

  continue(agent: string, options: EnqueueOptions & { readonly sessionId: string }): Promise<Enqueued> {
    return enqueueJob(this.#place, { kind: 'continue', agent }, options);
  }

  async *join(sessionId: string, options: FollowOptions = {}): AsyncIterableIterator<SentEvent> {
    const events = this.reader(sessionId, options);
    try {
      for (let batch = await events.next(); batch; batch = await events.next()) yield* batch;
    } finally {
      events.leave();
    }
  }

  reader(
    sessionId: string,
    { show = this.#show, ...options }: FollowOptions & { readonly show?: Show } = {},
  ): EventReader {
    const shown = JSON.stringify(show ?? {});
    const place = this.#joins.get(shown) ?? this.#openJoin(show);
    this.#joins.set(shown, place);
    return new JoinReader(place, sessionId, options);
  }

  #openJoin(show: Show | undefined): JoinPlace {
    const { connections, turns, clock } = this.#backend;
    const hub = eventHub({
      store: this.#needsStore('join()'),
      ...(show && { show }),
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
    for (const { live } of this.#joins.values()) live.close();
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
