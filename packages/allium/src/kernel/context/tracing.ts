/**
 * The seam for tracing: all that the kernel knows of it. A run that is traced uses a plan whose hooks report, and tells its
 * recording what no hook sees. A run that isn't traced has neither, and pays nothing.
 */

import type { Clock } from '../lib/clock.js';
import type { Message, ModelResponse } from '../messages/messages.js';
import type { ModelRequest } from '../messages/model.js';
import type { ToolResult } from '../messages/tool-result.js';
import type { Context, ModelContext, ToolContext } from '../protocol/contexts.js';
import type { GuardVerdict } from '../protocol/guard.js';
import type { Plan } from '../protocol/middleware.js';
import type { Decision, EntryBody, EntryDraft, Store } from '../protocol/store.js';
import type { RunTrace, TraceAct } from '../protocol/trace.js';

/** Records runs, and reads what was recorded. */
export interface Tracer {
  /** The plan with hooks that report to the recording of their run. Called once for each plan. */
  plan(plan: Plan): Plan;
  /** A run begins or is resumed. `keeps`: its records go to the journal. `stored`: those that are there already. */
  record(run: RecordedRun, keeps: boolean, stored: readonly StoredTrace[]): Recording;
  /** The trace of a run, and of its sub-agents, from the journal. Without a `runId`: of the last run that was traced. */
  load(store: Store, sessionId: string, runId?: string): Promise<RunTrace | undefined>;
}

/** The entry of a journal that holds records. */
export type StoredTrace = EntryBody & { readonly type: 'trace' };

/** What is recorded of a run. Results hold it, so it must not hold the run, which would stay in memory with it. */
export interface Recorded {
  /** Called when somebody reads `result.trace`. */
  trace(run: TracedRun): RunTrace;
}

/** The run that a trace is about. */
export interface TracedRun {
  readonly runId: string;
  readonly sessionId: string;
  /** The history of the session, at least up to the end of the run. */
  readonly history: readonly Message[];
  /** Traces of sub-agents, by the id of their session. */
  readonly children?: ReadonlyMap<string, RunTrace> | undefined;
}

/** A run, as its recording sees it. */
export interface RecordedRun {
  readonly runId: string;
  readonly turn: number;
  readonly clock: Clock;
  /** The one that `Tracer.plan` made. */
  readonly plan: Plan;
  readonly history: {
    /** Everything so far, as a list that keeps growing. */
    view(): readonly Message[];
    first(count: number): readonly Message[];
  };
  /** What the model calls of a turn start from. */
  readonly request: { readonly systemPrompt: string };
  /** The input, while guards judge it in parallel to the first model call. */
  readonly pendingInput: { readonly messages: readonly Message[] } | undefined;
  /** The value without what guards find in it; undefined if one refuses it. Judges aren't asked. */
  safe(value: unknown): unknown;
}

/** What a run that is traced reports. */
export interface Recording {
  /** Its records go to the journal. */
  readonly keeps: boolean;
  readonly kept: Recorded;
  /** Something was noted in `changes`. */
  note(by: string, what: string, did: TraceAct): void;
  report(verdict: GuardVerdict, what: string, about: Context | undefined): void;
  /**
   * A model is called. `request`: what it is sent, with placeholders if a guard makes the call. `plain`: the messages are the
   * history as it is. The returned function says how it ended.
   */
  sends(ctx: ModelContext, request: ModelRequest, plain: boolean): Ending<ModelResponse>;
  /** A question about a call was answered. */
  decided(ctx: ToolContext, decision: Decision): void;
  /** A tool is executed. */
  executes(ctx: ToolContext): Ending<ToolResult>;
  /** Is anything left to write at the end of this part of the run? */
  readonly hasRest: boolean;
  /** The records that the journal doesn't have yet. `isEnd`: the run, or this part of it, ends with this. */
  entry(isEnd: boolean): EntryDraft | undefined;
}

export type Ending<T> = (result: T | undefined, error?: unknown) => void;
