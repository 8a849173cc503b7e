/** The options of a queue, and its methods. */
import type { Decision, MessageInput, Metadata, Store } from 'allium';
import type { EventReader, FollowOptions, SentEvent, Show } from 'allium/http';
import type { Outcome } from './jobs.js';
import type { SharedOptions } from './options.js';
import type { QueueMetrics, RateLimit } from './turns.js';

export interface QueueOptions extends SharedOptions {
  /** Where the sessions are: the store of the workers. `join`, `answer` and steering need it. */
  readonly store?: Store;
  /** What readers see in addition to texts, the names and states of tools, questions and the end. */
  readonly show?: Show;
  /**
   * Milliseconds that Redis may take to answer a call. After that it fails with `QUEUE_UNREACHABLE`. @default 5000
   */
  readonly timeoutMs?: number;
}

export interface EnqueueOptions {
  /** The session of the message. @default a new session */
  readonly sessionId?: string;
  /** The owner of the session. Tenants take turns, and have their own rates. */
  readonly tenant?: string;
  /** Lower is sooner, among the jobs of a tenant. From 0 to 1,000,000. @default 0 */
  readonly priority?: number;
  /** Milliseconds before it may begin. @default 0 */
  readonly delayMs?: number;
  /**
   * A second job with the same key and tenant is not made, and a message is not said twice: the caller gets the first one.
   * Holds for `keepMs`.
   */
  readonly idempotencyKey?: string;
  /**
   * Repeats the job: by a cron pattern or every so many milliseconds, under an id for `unschedule`. Not with `delayMs`,
   * `idempotencyKey` or `whenBusy`.
   */
  readonly schedule?: Schedule;
  /**
   * What happens if a run of the session is under way: `queue` begins another after it, `steer` sends the message
   * into it at once, `follow-up` sends it for when the run would end; not with `delayMs`. @default 'queue'
   */
  readonly whenBusy?: 'queue' | 'steer' | 'follow-up';
  /** Data for hooks and tools: `ctx.runMetadata`. JSON. */
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
  /** One that exists is replaced, even another tenant's. */
  readonly id: string;
  /** A cron pattern, with optional seconds first. */
  readonly cron?: string;
  readonly everyMs?: number;
  /** The time zone of `cron`: an IANA name. @default the zone of the worker's machine */
  readonly timeZone?: string;
}

export interface Enqueued {
  /**
   * The id of the run: for `cancel`, `outcome` and `finished`. With `said`, that of the run under way; if it ends before it
   * hears the message, another one answers. Empty for a schedule, whose runs come later.
   */
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
  /** Where the sessions are, if it was given. */
  readonly store: Store | undefined;
  /** Lets an agent of the workers answer. Settles when Redis has the job. */
  enqueue(
    agent: string,
    input: MessageInput | readonly MessageInput[],
    options?: EnqueueOptions,
  ): Promise<Enqueued>;
  /** Lets the agent continue without a new message, like `session.continue()`. */
  continue(agent: string, options: EnqueueOptions & { readonly sessionId: string }): Promise<Enqueued>;
  /** Lets the agent continue a run that waits for answers or broke off, no matter which process began it. */
  resume(agent: string, options: ResumeOptions): Promise<Enqueued>;
  /**
   * The events of a session, each once, wherever its run is: past ones, then new ones. Ends when its run has ended or
   * waits.
   */
  join(sessionId: string, options?: FollowOptions): AsyncIterableIterator<SentEvent>;
  /** Like `join`, but many events at a time: for servers, which may have a `show` of their own. */
  reader(sessionId: string, options?: FollowOptions & { readonly show?: Show }): EventReader;
  /** Answers a question. The run continues where it waits, or on any worker. Rejects like `session.answer()`. */
  answer(requestId: string, decision: Decision): Promise<void>;
  /** Ends a run, or removes its job before it begins. False if there is nothing to end. */
  cancel(runId: string, reason?: string): Promise<boolean>;
  /** Ends what is under way in a session. False if there is nothing. */
  stop(sessionId: string, reason?: string): Promise<boolean>;
  /** Is there a job of the session that has not ended? */
  isBusy(sessionId: string): Promise<boolean>;
  /**
   * How a job ended; undefined while it has not, or if nobody knows any more. If its run asked something and was
   * answered, the final outcome.
   */
  outcome(runId: string): Promise<Outcome | undefined>;
  /** Waits for the end of a job. An unknown job is an error. */
  finished(runId: string, options?: { readonly signal?: AbortSignal }): Promise<Outcome>;
  /** The dead-letter list: jobs that failed for good, latest first. */
  failed(options?: { readonly limit?: number }): Promise<readonly FailedJob[]>;
  /** Sends failed jobs back into the queue: all, or those named. Returns how many. */
  redrive(...runIds: readonly string[]): Promise<number>;
  /** Ends a schedule. False if there is none with that id. */
  unschedule(id: string): Promise<boolean>;
  /** Sets the rate of a tenant in the whole fleet, or removes it. `*` is for all tenants without their own. */
  setRateLimit(tenant: string, limit: RateLimit | undefined): Promise<void>;
  metrics(): Promise<QueueMetrics>;
  close(): Promise<void>;
}
