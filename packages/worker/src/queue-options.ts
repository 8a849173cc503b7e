/** What a queue takes, and what it can do. */
import type { Decision, MessageInput, Metadata, Store } from 'allium';
import type { EventReader, FollowOptions, SentEvent, Show } from 'allium/http';
import type { Outcome } from './jobs.js';
import type { SharedOptions } from './options.js';
import type { QueueMetrics, RateLimit } from './turns.js';

export interface QueueOptions extends SharedOptions {
  /** Where the sessions are: the store of the workers. `join`, `answer` and steering need it. */
  readonly store?: Store;
  /** What readers see beside texts, the names and states of tools, questions and the end. */
  readonly show?: Show;
  /** Milliseconds that Redis may take to answer a call, which fails with `QUEUE_UNREACHABLE` then. @default 5000 */
  readonly timeoutMs?: number;
}

export interface EnqueueOptions {
  /** Whom the message is for. @default a new session */
  readonly sessionId?: string;
  /** Whose the session is. Tenants take turns, and have rates of their own. */
  readonly tenant?: string;
  /** Lower is sooner, among the jobs of a tenant. From 0 to 1,000,000. @default 0 */
  readonly priority?: number;
  /** Milliseconds before it may begin. @default 0 */
  readonly delayMs?: number;
  /** A second job with the same key and tenant is not made: the caller gets the first one. It holds for `keepMs`. */
  readonly idempotencyKey?: string;
  /** Again and again: by a cron pattern or every so many milliseconds, under an id that `unschedule` takes. */
  readonly schedule?: Schedule;
  /**
   * What happens when a run of the session is under way: `queue` begins another after it, `steer` tells the model before its
   * next turn, `follow-up` when it would end. @default 'queue'
   */
  readonly whenBusy?: 'queue' | 'steer' | 'follow-up';
  /** For hooks and tools: `ctx.runMetadata`. JSON. */
  readonly metadata?: Metadata;
}

export interface ResumeOptions {
  readonly sessionId: string;
  readonly tenant?: string;
  /** Answers to its questions, by their ids. */
  readonly answers?: Readonly<Record<string, Decision>>;
  readonly metadata?: Metadata;
}

export interface Schedule {
  readonly id: string;
  /** As of cron, with optional seconds first. */
  readonly cron?: string;
  readonly everyMs?: number;
  /** Of `cron`: an IANA name. @default the zone of the worker's machine */
  readonly timeZone?: string;
}

export interface Enqueued {
  /** The id of the run: for `cancel`, `outcome` and `finished`. */
  readonly runId: string;
  readonly sessionId: string;
  /** `known`: there was such a job already. `said`: the message went to the run under way. */
  readonly state: 'queued' | 'delayed' | 'scheduled' | 'known' | 'said';
}

/** A job of the dead-letter list. */
export interface FailedJob {
  readonly runId: string;
  readonly sessionId: string;
  readonly agent: string;
  readonly tenant?: string;
  readonly reason: string;
  readonly failedAt: number;
  readonly attempts: number;
}

export interface AgentQueue {
  /** Where the sessions are, if it was told. */
  readonly store: Store | undefined;
  /** Has an agent of the workers answer. Settles when Redis has the job. */
  enqueue(
    agent: string,
    input: MessageInput | readonly MessageInput[],
    options?: EnqueueOptions,
  ): Promise<Enqueued>;
  /** Has the agent go on without a new message: as `session.continue()`. */
  continue(agent: string, options: EnqueueOptions & { readonly sessionId: string }): Promise<Enqueued>;
  /** Has the agent go on with a run that waits for answers or broke off, whoever began it. */
  resume(agent: string, options: ResumeOptions): Promise<Enqueued>;
  /** The events of a session, each once, wherever its run is: what was, then what comes. Ends when its run has ended or waits. */
  join(sessionId: string, options?: FollowOptions): AsyncIterableIterator<SentEvent>;
  /** As `join`, many at a time: for servers. */
  reader(sessionId: string, options?: FollowOptions): EventReader;
  /** Answers a question. The run goes on: where it waits, or on any worker. Rejects as `session.answer()` does. */
  answer(requestId: string, decision: Decision): Promise<void>;
  /** Ends a run, or takes its job back before it begins. False if there is nothing to end. */
  cancel(runId: string, reason?: string): Promise<boolean>;
  /** Ends what is under way in a session. False if nothing is. */
  stop(sessionId: string, reason?: string): Promise<boolean>;
  /** Is there a job of the session that has not ended? */
  isBusy(sessionId: string): Promise<boolean>;
  /**
   * How a job ended; undefined while it has not, or when nobody knows any more. Of a run that asked and was answered, it
   * tells what came of it.
   */
  outcome(runId: string): Promise<Outcome | undefined>;
  /** Waits for the end of a job. A job that nobody knows is an error. */
  finished(runId: string, options?: { readonly signal?: AbortSignal }): Promise<Outcome>;
  /** The dead-letter list: jobs that failed for good, latest first. */
  failed(options?: { readonly limit?: number }): Promise<readonly FailedJob[]>;
  /** Sends failed jobs back into the queue: all, or those named. Returns how many. */
  redrive(...runIds: readonly string[]): Promise<number>;
  /** Ends a schedule. False if there is none of that id. */
  unschedule(id: string): Promise<boolean>;
  /** Sets the rate of a tenant in the whole fleet, or takes it away. `*` is for all that have none of their own. */
  setRateLimit(tenant: string, limit: RateLimit | undefined): Promise<void>;
  metrics(): Promise<QueueMetrics>;
  close(): Promise<void>;
}
