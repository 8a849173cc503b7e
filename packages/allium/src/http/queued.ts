/** Runs in workers: this process only enqueues them, and follows. */
import {
  Agent,
  AlliumError,
  type Decision,
  type MessageInput,
  type Metadata,
  type Model,
  type PendingRequest,
  type RunStatus,
  type Stop,
  type Store,
  type Usage,
} from '../index.js';
import type { ClientEnd, SentEvent } from './events.js';
import { FromStart } from './from-start.js';
import type { Show } from './projection.js';
import type { EventReader, FollowOptions } from './reader.js';

/** A queue for agents that run elsewhere: `createQueue` of `@allium/worker`, or your own. */
export interface RunQueue {
  /** Where the sessions are. */
  readonly store?: Store | undefined;
  enqueue(
    agent: string,
    input: MessageInput | readonly MessageInput[],
    options: QueuedRun,
  ): Promise<{ readonly runId: string }>;
  /** A run without a new message. */
  continue(agent: string, options: QueuedRun): Promise<{ readonly runId: string }>;
  /** Continues a run that waits or broke off. Rejects like `session.answer()`. */
  resume(
    agent: string,
    options: QueuedRun & { readonly answers?: Readonly<Record<string, Decision>> },
  ): Promise<{ readonly runId: string }>;
  /** Ends a run, or takes it back before it begins. False if there is nothing to end. */
  cancel(runId: string, reason?: string): Promise<boolean>;
  /** Ends what is under way in a session. False if there is nothing. */
  stop(sessionId: string, reason?: string): Promise<boolean>;
  /** Has anything in the session not ended yet? */
  isBusy(sessionId: string): Promise<boolean>;
  /** `show`: what its readers see, whatever others see. */
  reader(sessionId: string, options?: FollowOptions & { readonly show?: Show }): EventReader;
  finished(runId: string, options?: { readonly signal?: AbortSignal }): Promise<QueuedOutcome>;
}

export interface QueuedRun {
  readonly sessionId: string;
  readonly tenant?: string;
  readonly metadata?: Metadata;
}

/** How a job ended. */
export interface QueuedOutcome {
  readonly status: Exclude<RunStatus, 'error'> | 'failed';
  readonly runId: string;
  readonly text: string;
  readonly stop?: Stop;
  readonly usage?: Usage;
  readonly pending?: readonly PendingRequest[];
}

/** How a run begins. */
export type Begin =
  | { readonly type: 'run'; readonly input: MessageInput }
  | { readonly type: 'continue' }
  | { readonly type: 'resume'; readonly answers?: Readonly<Record<string, Decision>> };

export async function enqueue(
  queue: RunQueue,
  agent: string,
  begin: Begin,
  options: QueuedRun,
): Promise<string> {
  if (begin.type === 'run') return (await queue.enqueue(agent, begin.input, options)).runId;
  if (begin.type === 'continue') return (await queue.continue(agent, options)).runId;
  const { answers } = begin;
  return (await queue.resume(agent, answers ? { ...options, answers } : options)).runId;
}

/** Agents by name, for looking at their sessions. They run nothing. */
export function standIns(names: readonly string[], store: Store): ReadonlyMap<string, Agent> {
  return new Map(names.map((name) => [name, new Agent({ name, model: nobody, store })]));
}

const nobody: Model = {
  provider: 'none',
  id: 'none',
  stream() {
    throw new AlliumError('MODEL_ERROR', 'This process only enqueues runs; it does not run agents.');
  },
};

/** What a reader needs to know about a job. */
export interface QueuedJob {
  /** Undefined if the job resumes the session's suspended run: then every event from now on belongs to it. */
  readonly runId: string | undefined;
  /** Waits for its end. */
  end(): Promise<ClientEnd>;
  /** The event id of an end without a run. */
  readonly endId: string;
}

/** Events of a session from the start of a job on. If the job never runs, its end alone. */
export class JobReader implements EventReader {
  private readonly started: FromStart | undefined;
  private readonly inner: EventReader;
  private told = false;
  private left = false;

  constructor(
    inner: EventReader,
    private readonly job: QueuedJob,
  ) {
    this.started = job.runId === undefined ? undefined : new FromStart(inner, job.runId);
    this.inner = this.started ?? inner;
  }

  async next(): Promise<readonly SentEvent[] | undefined> {
    const batch = await this.inner.next();
    if (batch || this.left || this.told || this.started?.begun !== false) return batch;
    // It was over before it began.
    this.told = true;
    return [{ id: this.job.endId, event: { type: 'agent_end', ...(await this.job.end()) } }];
  }

  hasMore(): Promise<boolean> {
    return this.inner.hasMore();
  }

  leave(): void {
    this.left = true;
    this.inner.leave();
  }
}
