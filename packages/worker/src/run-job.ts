/** What a worker does with a job. The journal says what is left to do, whoever worked on it before. */
import {
  type Agent,
  AlliumError,
  type Awaitable,
  type Entry,
  type RunResult,
  type Session,
  type Store,
  textOf,
  withStoreTimeout,
} from 'allium';
import { type JobData, jobOf, type Outcome, outcomeOf, retryId } from './jobs.js';
import type { RunTap } from './tap.js';

export interface JobRun {
  readonly agent: Agent;
  readonly store: Store;
  readonly id: string;
  readonly data: JobData;
  /** Nobody has worked on it yet, as far as Redis knows. */
  readonly fresh: boolean;
  /** Somebody cancelled it meanwhile. */
  readonly cancelled: string | undefined;
  readonly signal: AbortSignal;
  /** Informs those who follow. */
  readonly tap: RunTap;
}

/** How a run begins: with `run`, `resume` or `continue` of a session. */
type Start = 'run' | 'resume' | 'continue';

/** Runs, continues, or finds out how it ended. Rejects like the run. */
export async function runJob(job: JobRun): Promise<Outcome> {
  const { agent, store, id, data, fresh, cancelled } = job;
  const { sessionId, tenant } = data;
  const session = agent.session(sessionId, { store, ...(tenant !== undefined && { tenant }) });
  // For a resume that names no job: the last run of the session.
  const base = data.of ?? (data.kind === 'resume' ? undefined : id);
  const asked = withStoreTimeout(store, { timeoutMs: agent.storeTimeoutMs, clock: agent.clock });
  const isNew = fresh && data.kind !== 'resume' && !(await stored(() => mayHaveBegun(asked, id, data)));
  const last = isNew ? undefined : await lastRun(asked, sessionId, base);
  if (last?.state === 'ended') return last.outcome;
  if (cancelled !== undefined) {
    if (last?.state !== 'open') return aborted(base ?? id, sessionId, cancelled);
    // The run takes it as soon as it continues, together with its end.
    await stored(() =>
      asked.post(sessionId, { type: 'cancel', ...(cancelled !== '' && { reason: cancelled }) }),
    );
  }
  if (last?.state === 'open') {
    job.tap.startAt(last.seq);
    return go(job, session, 'resume', last.runId);
  }
  if (data.kind === 'resume' && last === undefined)
    return aborted(base ?? id, sessionId, 'There is no run to resume.');
  const runId = last ? retryId(jobOf(last.runId), last.tries) : id;
  // If the run failed, and its messages are in the history, the model is asked about them again.
  return go(job, session, data.input === undefined || last?.heard ? 'continue' : 'run', runId);
}

/**
 * A Redis that has lost its last writes, as after a failover, hands out a job anew that had begun or even ended. Asks no
 * more than the run does when it opens its session, except just after a snapshot.
 */
async function mayHaveBegun(store: Store, id: string, { sessionId, enqueuedAt }: JobData): Promise<boolean> {
  if (!store.tail) return (await store.head(sessionId)) > 0;
  const { snapshot, entries } = await store.tail(sessionId);
  if (entries.some((entry) => entry.type === 'run_start' && jobOf(entry.runId) === id)) return true;
  if (!snapshot) return false;
  const oldest = entries[0] ?? (await store.read(sessionId, snapshot.seq))[0];
  return oldest === undefined || oldest.at >= enqueuedAt;
}

async function go(job: JobRun, session: Session, start: Start, runId: string): Promise<Outcome> {
  const { data, signal, tap } = job;
  const metadata = { ...data.metadata, agent: data.agent };
  const options = { runId, metadata, signal, observers: [tap.observer] };
  try {
    if (start === 'run') return outcomeOf(await session.run(data.input!, options));
    return outcomeOf(await (start === 'resume' ? session.resume(options) : session.continue(options)));
  } catch (error) {
    const { code, result } = error as { code?: string; result?: RunResult };
    if (code === 'ABORTED' && result) {
      const last = await lastRun(job.store, session.id, jobOf(result.runId));
      if (last?.state !== 'open') return { ...outcomeOf(result), status: 'aborted' };
      throw new AlliumError('STORE_FAILED', 'The run was aborted, and the store could not write its end.', {
        cause: error,
      });
    }
    // The message is in the history and has been answered.
    const done = { status: 'done', runId, sessionId: session.id, text: '' } as const;
    if (code === 'NOTHING_TO_CONTINUE') return done;
    // A run that waits for an answer hears the message when it continues.
    if (code === 'RUN_OPEN' && data.unheard && (await session.pending()).length > 0) return done;
    throw error;
  }
}

/** If the store fails here, it is down, as if it failed in a run: the job is retried. */
async function stored<T>(ask: () => Awaitable<T>): Promise<T> {
  try {
    return await ask();
  } catch (error) {
    if (error instanceof AlliumError) throw error;
    const { message } = (error ?? {}) as { message?: unknown };
    throw new AlliumError('STORE_FAILED', `The store failed: ${message ?? String(error)}`, { cause: error });
  }
}

function aborted(runId: string, sessionId: string, message: string): Outcome {
  return { status: 'aborted', runId, sessionId, text: '', stop: { reason: 'aborted', message } };
}

type LastRun =
  | { readonly state: 'open'; readonly runId: string; readonly tries: number; readonly seq: number }
  | {
      readonly state: 'failed';
      readonly runId: string;
      readonly tries: number;
      /** A guard or a middleware may have failed before its messages were in the history. */
      readonly heard: boolean;
    }
  | { readonly state: 'ended'; readonly outcome: Outcome; readonly tries: number };

/** The last run of a job, if it had any. */
export async function lastRun(
  store: Store,
  sessionId: string,
  named: string | undefined,
): Promise<LastRun | undefined> {
  const entries = await stored(() => store.read(sessionId, 1));
  const latest = entries.findLast((entry) => entry.type === 'run_start') as { runId: string } | undefined;
  const job = named ?? jobOf(latest?.runId ?? '');
  const mine = entries.filter(
    (entry): entry is Entry & { type: 'run_start' } =>
      entry.type === 'run_start' && jobOf(entry.runId) === job,
  );
  const start = mine.at(-1);
  if (start === undefined) return undefined;
  const { runId } = start;
  const tries = mine.length;
  const end = entries.find(
    (entry): entry is Entry & { type: 'run_end' } => entry.type === 'run_end' && entry.runId === runId,
  );
  if (end === undefined) return { state: 'open', runId, tries, seq: entries.at(-1)!.seq };
  if (end.status === 'error') {
    const heard = entries.some((entry) => entry.type === 'message' && jobOf(entry.runId) === job);
    return { state: 'failed', runId, tries, heard };
  }
  const said = entries.findLast(
    (entry): entry is Entry & { type: 'message' } =>
      entry.type === 'message' && entry.runId === runId && entry.message.role === 'assistant',
  );
  const outcome: Outcome = {
    status: end.status,
    runId,
    sessionId,
    text: said ? textOf(said.message) : '',
    stop: end.stop,
    turns: end.turns,
  };
  return { state: 'ended', outcome, tries };
}
