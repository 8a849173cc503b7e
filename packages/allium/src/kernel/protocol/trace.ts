/** Traces, as far as the kernel knows them. It writes records to the journal and never reads them: `trace/` says what they hold. */

/** `changes`: every hook and layer that changed something leaves a record. */
export type TraceMode = 'off' | 'changes';

/**
 * What was done. `called`: a model or tool was called; `noted`: another line of `result.changes`.
 */
export type TraceAct =
  | 'allowed'
  | 'rewrote'
  | 'added'
  | 'blocked'
  | 'asked'
  | 'retried'
  | 'answered'
  | 'stopped'
  | 'failed'
  | 'called'
  | 'noted';

/** One act in a run. JSON, and without anything that guards removed. */
export interface TraceRecord {
  /** Counts from 1 in its run, resumes included. */
  readonly n: number;
}

/** All calls of one hook in a run, also those that changed nothing. */
export interface HookTotal {
  readonly by: string;
  readonly hook: string;
}

/** The trace of one run, live or read from its journal. */
export interface RunTrace {
  readonly runId: string;
  readonly sessionId: string;
}
