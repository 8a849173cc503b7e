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
import type { ClientEnd, ClientEvent, SentEvent } from './events.js';
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
  reader(sessionId: string, options?: FollowOptions): EventReader;
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
  private begun: boolean;
  private left = false;

  constructor(
    private readonly inner: EventReader,
    private readonly job: QueuedJob,
  ) {
    this.begun = job.runId === undefined;
  }

  async next(): Promise<readonly SentEvent[] | undefined> {
    while (!this.left) {
      const batch = await this.inner.next();
      if (batch === undefined) return this.begun ? undefined : this.endAlone();
      const start = this.begun ? 0 : batch.findIndex(({ event }) => this.isStart(event));
      if (start < 0) continue;
      this.begun = true;
      return batch.slice(start);
    }
    return undefined;
  }

  hasMore(): Promise<boolean> {
    return this.inner.hasMore();
  }

  leave(): void {
    this.left = true;
    this.inner.leave();
  }

  private isStart(event: ClientEvent): boolean {
    return event.type === 'agent_start' && isTryOf(event.runId, this.job.runId!);
  }

  private async endAlone(): Promise<readonly SentEvent[]> {
    this.begun = true;
    return [{ id: this.job.endId, event: { type: 'agent_end', ...(await this.job.end()) } }];
  }
}

/** A run that repeats a failed one has its id and a number. */
export function isTryOf(runId: string, other: string): boolean {
  const job = (id: string): string => id.split('~')[0]!;
  return job(runId) === job(other);
}
