/** Decides whose turn it is: passes jobs of tenants to BullMQ, fairly and within their rates. */
import { createHash } from 'node:crypto';
import type { Job, Queue } from 'bullmq';
import type { Redis } from 'ioredis';
import { type JobData, jobOf, type Outcome } from './jobs.js';
import type { Reach } from './reach.js';
import {
  BEAT,
  CANCEL,
  DELAY,
  FILE,
  FINISH,
  LIMIT,
  LISTEN,
  LOOK,
  RELEASE,
  SAID,
  SPEAK,
  START,
  SWEEP,
  WAITED,
} from './scripts.js';

/** At most so many runs of a tenant begin in so many milliseconds, in the whole fleet. */
export interface RateLimit {
  readonly max: number;
  readonly perMs: number;
}

/** The queue at a moment. */
export interface QueueMetrics {
  /** Jobs that have not begun, including those of busy sessions and of tenants whose rate is used up. */
  readonly waiting: number;
  /** Jobs that a worker has, or is about to get. */
  readonly running: number;
  /** Jobs that failed because a provider or a store was down, and wait for another try. */
  readonly retrying: number;
  /** Jobs for later, and schedules. */
  readonly delayed: number;
  /** The dead-letter list. */
  readonly failed: number;
  /** Milliseconds since the oldest waiting job was enqueued. */
  readonly ageMs: number;
  readonly tenantsWaiting: number;
  readonly workers: number;
  /** Jobs that all workers together take at a time. */
  readonly capacity: number;
  /** Jobs whose worker died or lost its lock, taken over by another. */
  readonly takeovers: number;
  /** Jobs that ended, by status. */
  readonly ended: Readonly<Record<string, number>>;
}

type Turn = readonly [jobs: readonly string[], nextIn: number | ''];

export class Turns {
  /** In how many milliseconds a tenant whose rate is used up may continue. */
  nextIn: number | undefined;
  readonly base: string;

  constructor(
    private readonly redis: Redis,
    prefix: string,
    private readonly jobs: Queue<JobData, Outcome>,
    private readonly keepMs: number,
    private readonly onError: (error: unknown) => void,
    private readonly reach: Reach,
  ) {
    this.base = `{${prefix}}:q:`;
  }

  /** False if the job, or one with its key, exists already. `failed`: what BullMQ has of it from before it was sent back. */
  async file(id: string, data: JobData, failed?: Job): Promise<boolean> {
    const { sessionId, tenant = '', priority = 0, agent, of = '', redriven = 0, key = '' } = data;
    const [isNew, turn] = await this.run<[number, Turn]>(
      FILE,
      id,
      JSON.stringify(data),
      sessionId,
      tenant,
      priority,
      agent,
      of,
      redriven,
      key,
    );
    // BullMQ takes no second job with the same id. If this fails, `sweep` does it.
    if (isNew === 1) await failed?.remove();
    await this.give(turn);
    return isNew === 1;
  }

  /** Remembers a job that BullMQ files later, so that it can be waited for and cancelled. False if it, or its key, is known. */
  async delayed(id: string, { sessionId, tenant = '', agent, key = '' }: JobData): Promise<boolean> {
    return (await this.run<number>(DELAY, id, sessionId, tenant, agent, key)) === 1;
  }

  start(
    id: string,
    takeovers: number,
    worker: string,
  ): Promise<readonly [state: 'gone' | 'over' | 'go', told: string, followers?: number]> {
    return this.run(START, id, takeovers, worker);
  }

  /** Somebody follows the session: its worker sends everything so far, and what comes. */
  async listen(sessionId: string): Promise<void> {
    await this.run(LISTEN, sessionId);
  }

  async finish(
    id: string,
    outcome: Outcome,
    { of = '', redriven = 0 }: Pick<JobData, 'of' | 'redriven'>,
  ): Promise<Finished> {
    const [spoken, turn, waited] = await this.run<[number, Turn, string?]>(
      FINISH,
      id,
      JSON.stringify(outcome),
      outcome.status,
      this.keepMs,
      of,
      redriven,
      jobOf(outcome.runId),
    );
    await this.give(turn);
    return { spoken: spoken === 1, ...(waited && { waited }) };
  }

  /** The run of this job doesn't wait for an answer any more. */
  async waited(sessionId: string, job: string): Promise<void> {
    await this.run(WAITED, sessionId, job, this.keepMs);
  }

  async release(id: string): Promise<void> {
    await this.give((await this.run<[number, Turn]>(RELEASE, id))[1]);
  }

  async cancel(
    id: string,
    reason: string,
    outcome: Outcome,
  ): Promise<readonly ['unknown' | 'over' | 'removed' | 'told', by: string]> {
    const [how, by, turn] = await this.run<['unknown' | 'over' | 'removed' | 'told', string, Turn]>(
      CANCEL,
      id,
      reason,
      JSON.stringify(outcome),
      this.keepMs,
    );
    await this.give(turn);
    return [how, by];
  }

  /** The job whose run is under way in the session, if there is one. At its end somebody looks for messages. */
  async speak(sessionId: string): Promise<string | undefined> {
    return (await this.run<string>(SPEAK, sessionId, '')) || undefined;
  }

  /** The same, once for an id that stands for an idempotency key, which is then known until `said` or `forget`. */
  async speakOnce(id: string, { sessionId, tenant = '', agent }: JobData): Promise<string | undefined> {
    return (await this.run<string>(SPEAK, sessionId, id, tenant, agent, HOLD_MS)) || undefined;
  }

  /** It was said, and the job answers. */
  async said(id: string, job: string, { sessionId, tenant = '', agent }: JobData): Promise<void> {
    await this.run(SAID, id, job, this.keepMs, sessionId, tenant, agent);
  }

  /** Returns the jobs that were cancelled while a worker had them, and why. */
  async beat(worker: string, capacity: number, deadAfterMs: number): Promise<ReadonlyMap<string, string>> {
    const [told, turn] = await this.run<[string[], Turn]>(BEAT, worker, capacity, deadAfterMs);
    await this.give(turn);
    const cancelled = new Map<string, string>();
    for (let i = 0; i < told.length; i += 2) cancelled.set(told[i]!, told[i + 1]!);
    return cancelled;
  }

  /**
   * Gives BullMQ what it never got, and ends what it has lost: somebody died in between, or removed a job. Returns the
   * failed jobs among them that somebody spoke to.
   */
  async sweep(olderMs: number): Promise<readonly Job<JobData>[]> {
    const [lost, long] = await this.run<[string[], string[]]>(SWEEP, olderMs, 100);
    for (let i = 0; i < lost.length; i += 2) await this.removeEnded(lost[i]!);
    await this.give([lost, '']);
    const spokenTo: Job<JobData>[] = [];
    for (const id of long) {
      const state = await this.jobs.getJobState(id);
      if (state !== 'unknown' && state !== 'completed' && state !== 'failed') continue;
      const { sessionId = '', redriven = 0 } = (await this.known(id)) ?? {};
      const job = await this.jobs.getJob(id);
      const ended = job?.returnvalue ?? {
        status: 'failed',
        runId: id,
        sessionId,
        text: '',
        error: { message: job?.failedReason ?? 'The job was removed from BullMQ.' },
      };
      const { spoken } = await this.finish(id, ended as Outcome, { ...job?.data, redriven });
      if (spoken && job) spokenTo.push(job);
    }
    return spokenTo;
  }

  /** BullMQ takes no second job with the same id: somebody died who sent it back, or it ended longer ago than is known here. */
  private async removeEnded(id: string): Promise<void> {
    const job = await this.jobs.getJob(id);
    if ((await job?.isFailed()) || (await job?.isCompleted())) await job!.remove();
  }

  /** The channel for the ends of a session's jobs. */
  channel(sessionId: string): string {
    return `${this.base}ev:${sessionId}`;
  }

  /** The channel on which workers send what happens in the run of a session. */
  liveChannel(sessionId: string): string {
    return `${this.base}lv:${sessionId}`;
  }

  /** The channel on which a worker learns who follows. */
  workerChannel(worker: string): string {
    return `${this.base}w:${worker}`;
  }

  /** Is there a job of the session that has not ended? */
  async isQueued(sessionId: string): Promise<boolean> {
    return (await this.reach(() => this.redis.exists(`${this.base}s:${sessionId}`))) === 1;
  }

  /** The job of a session that runs, or is the next to. */
  async first(sessionId: string): Promise<string | undefined> {
    return (await this.reach(() => this.redis.lindex(`${this.base}s:${sessionId}`, 0))) ?? undefined;
  }

  /** What is known about a job. One that has ended is known for `keepMs`. */
  async known(id: string): Promise<Known | undefined> {
    const [sessionId, tenant, agent, state, result, by, redriven] = await this.reach(() =>
      this.redis.hmget(`${this.base}i:${id}`, 's', 't', 'a', 'st', 'res', 'by', 'g'),
    );
    if (typeof sessionId !== 'string') return undefined;
    return {
      sessionId,
      agent: agent ?? '',
      ...(tenant && { tenant }),
      running: state === 'a',
      redriven: Number(redriven ?? 0),
      ...(state === 's' && { reserved: true }),
      ...(state === 'm' && by && { said: by }),
      ...(by && { by }),
      ...(typeof result === 'string' && { outcome: JSON.parse(result) as Outcome }),
    };
  }

  /** What is known about a job, or about the last one that continued its run. */
  async latest(id: string): Promise<Known | undefined> {
    const known = await this.known(id);
    return known?.by === undefined ? known : ((await this.latest(known.by)) ?? known);
  }

  async forget(id: string): Promise<void> {
    await this.reach(() => this.redis.del(`${this.base}i:${id}`));
  }

  /** `*` is for every tenant without its own. */
  async limit(tenant: string, limit: RateLimit | undefined): Promise<void> {
    const rule = limit === undefined ? '' : `${limit.max}/${limit.perMs}`;
    // Not by its hash: Redis may not know that yet, and a job that is sent right after it would be first.
    const set = () => this.redis.eval(LIMIT, 1, this.base, tenant, rule);
    await this.give(((await this.reach(set)) as [number, Turn])[1]);
  }

  async look(): Promise<Omit<QueueMetrics, 'delayed' | 'failed'>> {
    const [waiting, running, tenantsWaiting, capacity, workers, ageMs, retrying, stats] =
      await this.run<[number, number, number, string, number, number, number, string[]]>(LOOK);
    const counts: Record<string, number> = {};
    for (let i = 0; i < stats.length; i += 2) counts[stats[i]!] = Number(stats[i + 1]);
    const { takeovers = 0, ...ended } = counts;
    return {
      waiting,
      running,
      retrying,
      tenantsWaiting,
      capacity: Number(capacity),
      workers,
      ageMs,
      takeovers,
      ended,
    };
  }

  /** `sweep` repairs what fails here. */
  private async give([jobs, nextIn]: Turn): Promise<void> {
    this.nextIn = nextIn === '' ? undefined : nextIn;
    if (jobs.length === 0) return;
    const bulk = [];
    for (let i = 0; i < jobs.length; i += 2) {
      if (jobs[i + 1] === '') continue;
      const data = JSON.parse(jobs[i + 1]!) as JobData;
      const { attempts, delayMs } = data.retry;
      bulk.push({
        name: data.agent,
        data,
        opts: { jobId: jobs[i]!, attempts, backoff: { type: 'allium', delay: delayMs }, stackTraceLimit: 3 },
      });
    }
    try {
      await this.jobs.addBulk(bulk);
    } catch (error) {
      this.onError(error);
    }
  }

  private async run<T>(script: string, ...values: (string | number)[]): Promise<T> {
    let hash = HASHES.get(script);
    if (hash === undefined) {
      hash = createHash('sha1').update(script).digest('hex');
      HASHES.set(script, hash);
    }
    const known = hash;
    return this.reach(async () => {
      try {
        return (await this.redis.evalsha(known, 1, this.base, ...values)) as T;
      } catch (error) {
        if (!(error instanceof Error) || !error.message.startsWith('NOSCRIPT')) throw error;
        return (await this.redis.eval(script, 1, this.base, ...values)) as T;
      }
    });
  }
}

/** What the end of a job leaves to do. */
export interface Finished {
  /** Somebody may have sent a message to the session that no run has heard. */
  readonly spoken: boolean;
  /** The job whose run waited for an answer before. A new run has ended that one, unless this job failed before it began. */
  readonly waited?: string;
}

/** A job by its record. */
export interface Known {
  readonly sessionId: string;
  readonly agent: string;
  readonly tenant?: string;
  readonly running: boolean;
  /** How often it was sent back from the dead-letter list. */
  readonly redriven: number;
  /** Nobody has said it yet. */
  readonly reserved?: true;
  /** It was not a job, but was said to this one. */
  readonly said?: string;
  /** The job that continues its run. */
  readonly by?: string;
  readonly outcome?: Outcome;
}

/** For how long somebody may take to say something. If they die meanwhile, somebody else may say it. */
const HOLD_MS = 10_000;

const HASHES = new Map<string, string>();
