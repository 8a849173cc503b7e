/** What a job is, and how it ends. */
import type { MessageInput, Metadata, PendingRequest, RunResult, Stop, Usage } from 'allium';

/** How a job is retried when a provider or a store is down. */
export interface RetryOptions {
  /** How often a job is tried in all. @default 8 */
  readonly attempts?: number;
  /** Milliseconds before the second try; doubled each time, with some jitter. @default 1000 */
  readonly delayMs?: number;
  /** The longest wait between two tries. @default 60000 */
  readonly maxDelayMs?: number;
}

/** What workers get. JSON. */
export interface JobData {
  /** A new run, one that continues a run that waited for answers, or a run without a new message. */
  readonly kind: 'run' | 'resume' | 'continue';
  readonly agent: string;
  readonly sessionId: string;
  readonly input?: MessageInput | readonly MessageInput[];
  readonly tenant?: string;
  readonly metadata?: Metadata;
  readonly priority?: number;
  /** Stands for its idempotency key. */
  readonly key?: string;
  /** It answers a message that was said to a run too late for it to hear. */
  readonly unheard?: true;
  /** The job whose run is continued. */
  readonly of?: string;
  /** Why that run has to end: somebody cancelled it while it waited for an answer. */
  readonly cancelled?: string;
  readonly retry: Required<RetryOptions>;
  /** Milliseconds since the epoch. */
  readonly enqueuedAt: number;
  /** How often it was sent back from the list of failures. */
  readonly redriven?: number;
}

/** How a job ended. All but `failed` are completed jobs, which are never retried. */
export interface Outcome {
  /**
   * The status of the run; a `suspended` one continues when its questions are answered. `failed`: no run, or one that
   * ended with an error.
   */
  readonly status: 'done' | 'stopped' | 'suspended' | 'aborted' | 'failed';
  /** The id of the run. A job that was retried has another one for each failed try. */
  readonly runId: string;
  readonly sessionId: string;
  readonly text: string;
  readonly stop?: Stop;
  readonly turns?: number;
  readonly usage?: Usage;
  readonly costUsd?: number;
  /** What a suspended run asks. */
  readonly pending?: readonly PendingRequest[];
  /** Why it failed. */
  readonly error?: { readonly code?: string; readonly message: string };
}

export function outcomeOf(result: RunResult): Outcome {
  const { runId, sessionId, text, stop, turns, usage, costUsd, pending } = result;
  return {
    // Results never have the status of an error.
    status: result.status as Exclude<Outcome['status'], 'failed'>,
    runId,
    sessionId,
    text,
    stop,
    turns,
    usage,
    ...(costUsd !== undefined && { costUsd }),
    ...(pending.length > 0 && { pending }),
  };
}

export function failure(runId: string, sessionId: string, error: unknown): Outcome {
  const { code, message } = error as { code?: unknown; message?: unknown };
  return {
    status: 'failed',
    runId,
    sessionId,
    text: '',
    error: {
      ...(typeof code === 'string' && { code }),
      message: typeof message === 'string' ? message : String(error),
    },
  };
}

/** The job that a run belongs to, by the id of the run or of a question it asks. */
export function jobOf(id: string): string {
  return /^[^.~]*/.exec(id)![0];
}

/** The id of the run that retries a failed run of the job. */
export function retryId(job: string, tries: number): string {
  return tries === 0 ? job : `${job}~${tries + 1}`;
}
