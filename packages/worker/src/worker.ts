/** `createWorker`: runs agents, in any number of processes. */
import { randomUUID } from 'node:crypto';
import os from 'node:os';
import { type Agent, AlliumError, type Session } from 'allium';
import { checkFunction, checkInteger, checkMethods, checkOptions, checkValue, kinds } from 'allium/kit';
import { type Job, UnrecoverableError, WaitingError, Worker } from 'bullmq';
import { type Appended, Fence, fencedStore, type Opening, openAhead } from './fenced-store.js';
import { notAnswering } from './health.js';
import { Heartbeat } from './heartbeat.js';
import { scheduleIntake } from './intake.js';
import { failure, type JobData, type Outcome } from './jobs.js';
import { metricsOf } from './metrics.js';
import { type Backend, LATER, openBackend, RUNS, SHARED } from './options.js';
import { isPassing, ofDeleted } from './passing.js';
import { prometheusOf } from './prometheus.js';
import { atMost } from './reach.js';
import { runJob } from './run-job.js';
import { leaveOn } from './signals.js';
import { RunTap } from './tap.js';
import type { QueueMetrics } from './turns.js';
import { answerUnheard } from './unheard.js';
import {
  type AgentWorker,
  agentsOf,
  type DrainOptions,
  type Health,
  OWN,
  type WorkerEvent,
  type WorkerOptions,
} from './worker-options.js';

/**
 * A worker: takes jobs of a queue and runs agents. Start as many processes of it as you like.
 *
 * @example
 * const worker = createWorker({ agents: { support }, store, connection: 'redis://localhost:6379' });
 * await worker.ready();
 */
export function createWorker(options: WorkerOptions): AgentWorker {
  checkOptions('createWorker', options, [...SHARED, ...OWN]);
  const { store, concurrency = 10, lockMs = 30_000, maxTakeovers = 10, drainMs = 25_000 } = options;
  const { drainOn = ['SIGTERM'], onEvent = () => {} } = options;
  checkMethods('store', store, ['append', 'read', 'head', 'post', 'take']);
  checkInteger('concurrency', concurrency, 1);
  checkInteger('lockMs', lockMs, 100);
  checkInteger('maxTakeovers', maxTakeovers, 0);
  checkInteger('drainMs', drainMs, 0);
  checkFunction('onEvent', onEvent);
  checkValue('drainOn', SIGNALS, drainOn);
  const agents = agentsOf(options.agents);
  const settings = { store, concurrency, lockMs, maxTakeovers, drainMs, drainOn, onEvent };
  return new FleetWorker(openBackend(options), agents, settings);
}

const SIGNALS = kinds.listOf(
  kinds.kind<NodeJS.Signals>('the name of a signal, such as SIGTERM', (name) =>
    Object.hasOwn(os.constants.signals, name),
  ),
);

type Settings = Required<Pick<WorkerOptions, Exclude<(typeof OWN)[number], 'agents'>>>;

/** A job that this worker has. */
interface Held {
  readonly sessionId: string;
  readonly fence: Fence;
  readonly tap: RunTap;
  readonly control: AbortController;
  /** Nobody had the job before. */
  readonly fresh: boolean;
  readonly opening: Opening;
}

class FleetWorker implements AgentWorker {
  readonly id = randomUUID().slice(0, 8);
  private readonly held = new Map<string, Held>();
  private readonly jobs: Worker<JobData, Outcome>;
  private readonly intake: Worker<JobData>;
  private readonly unlisten: () => void;
  private readonly ignoreSignals: () => void;
  private readonly heartbeat: Heartbeat;
  private leaving: Promise<void> | undefined;

  constructor(
    private readonly backend: Backend,
    private readonly agents: ReadonlyMap<string, Agent>,
    private readonly settings: Settings,
  ) {
    const { connections, prefix, turns, onError, retry } = backend;
    const { concurrency, lockMs, drainOn, drainMs } = settings;
    this.heartbeat = new Heartbeat(backend, { id: this.id, concurrency, lockMs }, (id, reason) =>
      this.cancel(id, reason),
    );
    const shared = {
      connection: connections.redis,
      prefix,
      runRetryDelay: 500,
      autorun: false,
      lockDuration: lockMs,
      // Checked often, so that a takeover waits for the lock and for hardly anything else.
      stalledInterval: Math.ceil(lockMs / 8),
      // Counted by `maxTakeovers`.
      maxStalledCount: 1_000_000,
    };
    this.jobs = new Worker<JobData, Outcome>(RUNS, (job, token) => this.work(job, token!), {
      ...shared,
      concurrency,
      settings: {
        backoffStrategy: (tries: number, _type, _error, job) => backoff(tries, job?.data.retry ?? retry),
      },
    });
    this.intake = scheduleIntake(LATER, turns, { ...shared, concurrency: 4 });
    for (const one of [this.jobs, this.intake]) one.on('error', onError);
    this.jobs.on('lockRenewalFailed', (ids) => {
      for (const id of ids) this.lose(id);
    });
    const unlisten = [
      connections.listen(`${turns.base}ctl`, (message) => this.told(message)),
      connections.listen(turns.workerChannel(this.id), (sessionId) => this.followed(sessionId)),
    ];
    this.unlisten = () => {
      for (const one of unlisten) one();
    };
    this.ignoreSignals = leaveOn(drainOn, () => atMost(drainMs + 3 * LAST_MS, this.close()));
    this.jobs.run().catch(onError);
    this.intake.run().catch(onError);
    void this.heartbeat.begin();
  }

  async ready(): Promise<void> {
    const { connections, turns } = this.backend;
    await Promise.all([
      this.jobs.waitUntilReady(),
      this.intake.waitUntilReady(),
      connections.listening(`${turns.base}ctl`),
      connections.listening(turns.workerChannel(this.id)),
    ]);
    await this.heartbeat.once();
  }

  async health(): Promise<Health> {
    const { connections } = this.backend;
    const down = await notAnswering({
      redis: () => connections.redis.ping(),
      store: () => this.settings.store.head('health'),
    });
    const draining = this.leaving !== undefined;
    const ready = !draining && down.length === 0 && this.jobs.isRunning();
    return { live: draining || this.jobs.isRunning(), ready, running: this.held.size, draining, down };
  }

  metrics(): Promise<QueueMetrics> {
    return metricsOf(this.backend);
  }

  async prometheus(): Promise<string> {
    return prometheusOf(await this.metrics());
  }

  drain(options: DrainOptions = {}): Promise<void> {
    const { deadlineMs = this.settings.drainMs, finishMs = deadlineMs / 2 } = options;
    this.leaving ??= this.leave(finishMs, deadlineMs);
    return this.leaving;
  }

  async close(): Promise<void> {
    await this.drain();
    await this.backend.close();
  }

  private async leave(finishMs: number, deadlineMs: number): Promise<void> {
    const { onError, connections } = this.backend;
    this.ignoreSignals();
    this.heartbeat.stop();
    const to = (state: Fence['state']): void => {
      for (const { fence, control } of this.held.values()) {
        fence.state = state;
        if (state === 'shut') control.abort(new Error('The worker leaves.'));
      }
    };
    if (finishMs === 0) to('draining');
    // First of all, so that it doesn't take what it hands over.
    const ended = Promise.all([this.jobs.close(), this.intake.close()]);
    ended.catch(onError);
    const timers = [setTimeout(to, finishMs, 'draining'), setTimeout(to, deadlineMs, 'shut')];
    // Code that ignores its signal keeps its job until the process ends; then another worker takes it over.
    const givenUp = new Promise<void>((resolve) => {
      timers.push(setTimeout(resolve, deadlineMs + LAST_MS));
      // There is nobody to say goodbye to.
      const look = (): void => void (this.held.size === 0 && connections.isDown && resolve());
      timers.push(setTimeout(look, LAST_MS / 4), setInterval(look, LAST_MS));
    });
    await atMost(LAST_MS, this.heartbeat.leave().catch(onError));
    await Promise.race([ended, givenUp]);
    for (const timer of timers) clearTimeout(timer);
    this.unlisten();
  }

  private told(message: string): void {
    const { cancel, reason } = JSON.parse(message) as { cancel?: string; reason?: string };
    if (cancel !== undefined) this.cancel(cancel, reason);
  }

  private cancel(id: string, reason: string | undefined): void {
    this.held.get(id)?.control.abort(reason || undefined);
  }

  private followed(sessionId: string): void {
    for (const held of this.held.values()) if (held.sessionId === sessionId) held.tap.listen();
  }

  /** Somebody else has the job: nothing of this run counts any more. */
  private lose(id: string): void {
    const held = this.held.get(id);
    if (!held) return;
    held.fence.state = 'shut';
    held.tap.lose();
    held.control.abort(new Error('Another worker has the run.'));
  }

  private async work(job: Job<JobData, Outcome>, token: string): Promise<Outcome> {
    const { turns, connections } = this.backend;
    const { data } = job;
    const id = job.id!;
    // BullMQ had asked for one before it was told to close.
    if (this.leaving) {
      await job.moveToWait(token);
      throw new WaitingError();
    }
    const fresh = job.attemptsStarted === 1 && !data.redriven;
    // Nobody else writes to the session of such a job.
    const opening = fresh ? openAhead(this.settings.store, data.sessionId) : undefined;
    const [state, told, followers = 0] = await turns.start(id, job.stalledCounter, this.id);
    if (state === 'over') return this.endedBefore(id, data, JSON.parse(told) as Outcome);
    if (state === 'gone') throw new UnrecoverableError(`Job "${id}" is no longer known.`);
    const { sessionId } = data;
    const takeover = job.stalledCounter > 0;
    this.tell({ type: takeover ? 'takeover' : 'started', runId: id, sessionId });
    const channel = turns.liveChannel(sessionId);
    const tap = new RunTap((message) => connections.redis.publish(channel, message));
    if (followers > 0) tap.listen();
    const held: Held = {
      sessionId,
      fence: new Fence(sessionId),
      control: new AbortController(),
      tap,
      fresh,
      opening,
    };
    // The same job, while this process doesn't know yet that it has lost it: the old run can't write any more.
    this.lose(id);
    this.held.set(id, held);
    let outcome: Outcome;
    try {
      outcome = await this.perform(job, held, told);
      // What this process says about the run doesn't count any more; its new owner reads the journal.
      if (held.fence.state === 'shut') throw new Error('The run was given up.');
      tap.end(outcome);
    } catch (error) {
      tap.lose();
      return await this.failed(job, token, held, error);
    } finally {
      if (this.held.get(id) === held) this.held.delete(id);
    }
    await this.end(id, data, outcome);
    this.tell({ type: 'ended', runId: id, sessionId, outcome });
    return outcome;
  }

  private async perform(
    job: Job<JobData, Outcome>,
    { fence, control, tap, fresh, opening }: Held,
    cancelled: string,
  ): Promise<Outcome> {
    const { data, stalledCounter } = job;
    const { maxTakeovers, store } = this.settings;
    const agent = this.agents.get(data.agent);
    if (!agent)
      throw new AlliumError(
        'AGENT_UNKNOWN',
        `There is no agent "${data.agent}" on this worker. It has: ${[...this.agents.keys()].join(', ')}. Redrive the job when every worker has it.`,
      );
    if (stalledCounter > maxTakeovers)
      throw new AlliumError(
        'TOO_MANY_TAKEOVERS',
        `${stalledCounter} workers died or hung while running this job, so it is not tried again.`,
      );
    const appended: Appended = (sessionId, seq, entries) => {
      if (sessionId === data.sessionId) tap.appended(seq, entries);
    };
    return runJob({
      agent,
      store: fencedStore(store, fence, appended, opening),
      id: job.id!,
      data,
      fresh,
      cancelled: cancelled || data.cancelled,
      signal: control.signal,
      tap,
    });
  }

  /**
   * Records the end of a job before BullMQ hears of it: if this process dies in between, the next one finds it here.
   */
  private async end(id: string, data: JobData, outcome: Outcome): Promise<void> {
    const { turns } = this.backend;
    const { spoken, waited } = await turns.finish(id, outcome, data);
    const waits = waited !== undefined && (await this.has(data, (session) => session.pending()));
    if (waited !== undefined && waits === false) await turns.waited(data.sessionId, waited);
    // Somebody spoke to the run. If it was too late for it, another one answers, or one that waits when it continues.
    if (spoken && waits !== true && (await this.has(data, (session) => session.queued())) !== false)
      await answerUnheard(this.backend, id, data);
  }

  /** Does the session have any of these? Undefined if nobody can say. */
  private async has(
    { agent, sessionId, tenant }: JobData,
    read: (session: Session) => Promise<readonly unknown[]>,
  ): Promise<boolean | undefined> {
    // Any of them can read it.
    const reader = this.agents.get(agent) ?? [...this.agents.values()][0]!;
    const { store } = this.settings;
    return read(reader.session(sessionId, { store, ...(tenant !== undefined && { tenant }) })).then(
      ({ length }) => length > 0,
      () => undefined,
    );
  }

  private async failed(
    job: Job<JobData, Outcome>,
    token: string,
    { fence }: Held,
    thrown: unknown,
  ): Promise<Outcome> {
    const { turns } = this.backend;
    const { data } = job;
    const error =
      fence.state === 'open' ? await ofDeleted(thrown, this.settings.store, data.sessionId) : thrown;
    const about = { runId: job.id!, sessionId: data.sessionId, error };
    if (this.leaving && (fence.refused || fence.state === 'shut')) {
      await turns.release(job.id!);
      await job.moveToWait(token);
      this.tell({ type: 'handed over', ...about });
      throw new WaitingError();
    }
    if (fence.state === 'shut') {
      this.tell({ type: 'lost', ...about });
      throw error;
    }
    if (isPassing(error) && job.attemptsMade + 1 < data.retry.attempts) {
      await turns.release(job.id!);
      this.tell({ type: 'retry', ...about });
      throw error;
    }
    // The dead-letter list first, so that those who hear of the end find the job there.
    await job.moveToFailed(new UnrecoverableError(messageOf(error)), token);
    await this.end(job.id!, data, failure(job.id!, data.sessionId, error));
    this.tell({ type: 'failed', ...about });
    // BullMQ need not move it again.
    throw new WaitingError();
  }

  /** A job that had ended when its worker died. What was said to it may not have been looked for. */
  private async endedBefore(id: string, data: JobData, outcome: Outcome): Promise<Outcome> {
    await this.end(id, data, outcome);
    if (outcome.status === 'failed') throw new UnrecoverableError(outcome.error?.message);
    return outcome;
  }

  private tell(event: WorkerEvent): void {
    try {
      this.settings.onEvent(event);
    } catch (error) {
      this.backend.onError(error);
    }
  }
}

/** How long runs may take to notice that they are over. */
const LAST_MS = 2000;
function backoff(tries: number, { delayMs, maxDelayMs }: JobData['retry']): number {
  const full = Math.min(maxDelayMs, delayMs * 2 ** (tries - 1));
  // Many jobs that failed together should not come back together.
  return Math.ceil(full / 2 + (Math.random() * full) / 2);
}

function messageOf(error: unknown): string {
  const { message } = (error ?? {}) as { message?: unknown };
  return typeof message === 'string' ? message : String(error);
}
