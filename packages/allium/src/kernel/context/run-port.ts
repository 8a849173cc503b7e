/** What contexts, guards, layers and rules need from their run. Rooms above extend it with what they need. */

import type { History } from '../journal/history.js';
import type { OpenRun } from '../journal/journaled-run.js';
import type { Asking } from '../journal/merged-questions.js';
import type { SessionState } from '../journal/session-state.js';
import type { Clock } from '../lib/clock.js';
import type { Scope } from '../lib/scope.js';
import type { AssistantContent, Message, Metadata, ModelResponse, Usage } from '../messages/messages.js';
import type { Model, ModelSettings } from '../messages/model.js';
import type {
  Context,
  DeclaredOptions,
  GenerateRequest,
  ModelContext,
  RunContext,
  ToolContext,
} from '../protocol/contexts.js';
import type { GuardVerdict } from '../protocol/guard.js';
import type { Limits, SessionLimits } from '../protocol/limits.js';
import type { Plan } from '../protocol/middleware.js';
import type { Change } from '../protocol/result.js';
import type { StopRun } from '../protocol/signals.js';
import type { Awaitable } from '../protocol/store.js';
import type { Tool } from '../protocol/tool.js';
import type { TraceAct } from '../protocol/trace.js';
import type { Cells } from './cells.js';
import type { Meters } from './meter.js';
import type { SeamCall } from './seam-call.js';
import type { Recording } from './tracing.js';

/** What a context shows of its run. */
interface RunFacts {
  readonly plan: Plan;
  readonly runId: string;
  readonly parentRunId: string | undefined;
  readonly sessionId: string;
  readonly tenant: string | undefined;
  readonly depth: number;
  readonly turn: number;
  readonly metadata: Metadata;
  readonly options: DeclaredOptions;
  readonly history: History;
  readonly cells: Cells;
  /** Time the run was paused, including the current pause. */
  readonly pausedMs: number;
  /** The structured output, if a middleware has set it. */
  output: unknown;
  /** Sets it after removing what guards find in it. */
  setOutput(output: unknown): void;
  /** What middleware have done so far. */
  readonly changes: readonly Change[];
  /** The messages this run has added to the history. */
  newMessages(): readonly Message[];
  /** The name of the middleware at this position. */
  nameAt(position: number): string | undefined;
}

/** What the run has used so far, and which limit on it is reached. */
interface Spending {
  readonly usage: Usage;
  readonly costUsd: number | undefined;
  exceeded(): StopRun | undefined;
}

/** What decides whether a run has to end. */
export interface RunLimits {
  readonly scope: Scope;
  /** The latch of everything that is not inside a model or tool call. */
  readonly call: SeamCall;
  readonly budget: Spending;
  readonly limits: Limits;
  readonly sessionLimits: SessionLimits;
  readonly open: OpenRun;
  readonly state: SessionState;
  /** Active time, if it is limited. */
  readonly activeMs: number;
}

/** What layers and rules need from the guards of a run. */
interface Judging {
  /** Transformed responses, by their original content. */
  stages: WeakMap<readonly AssistantContent[], Stage> | undefined;
  /** A result as a layer gets it from further in: after its transforms, and for a sink after the guards. */
  view(ctx: Context, result: unknown, sink: boolean): Awaitable<unknown>;
  /** The response as the guards leave it. */
  response(
    response: ModelResponse,
    ctx: Context,
  ): Promise<{ readonly response: ModelResponse; readonly calls: CallVerdicts }>;
  /** Judges a result that a hook changed, before a sink gets it. Undefined if it has passed already. */
  judgePatched(ctx: ToolContext): Promise<void> | undefined;
  /** Has a layer assigned arguments that no guard has judged yet? A sink must not see those. */
  hasUnjudgedArguments(ctx: Context): ctx is ToolContext;
  /** Cleans assigned arguments before a sink sees them. */
  judgeAssigned(ctx: ToolContext): Promise<void>;
  /** What guards said about arguments before cleaning them. Asked again, they would find nothing. */
  saidOf(ctx: ToolContext, raw: unknown): Promise<CallVerdict | undefined>;
}

/** A run, as the hooks of its middleware use it. */
export interface RunPort extends RunFacts, RunLimits {
  readonly agent: { readonly teardownTimeoutMs: number };
  readonly clock: Clock;
  readonly judgements: Judging;
  /** Undefined if it isn't traced. */
  readonly trace: Recording | undefined;
  /** The input, while guards judge it in parallel to the first model call. */
  readonly pendingInput: { readonly messages: readonly Message[]; allowed(): Promise<void> } | undefined;
  /** Calls and sub-agent runs in progress. They hear when the run is stopped. */
  readonly inside: { halt(signal: unknown, by: string | undefined): void }[];
  /** Somebody watches its events. */
  readonly watched: boolean;
  /** Where the loop is. Run layers come before it, and may end the run without it. */
  loop: 'to come' | 'begun' | 'woken' | 'given up' | 'over';
  /** Who counts what is used. */
  meters: Meters | undefined;
  /** What the model calls of a turn start from. */
  readonly request: RequestParts;
  /** The run is paused: its time doesn't count. */
  readonly isPaused: boolean;

  /** A model call that a middleware makes for itself. */
  generate(caller: Context, model: Model, request: GenerateRequest): Promise<ModelResponse>;
  emitCustom(name: string, data: unknown, by: string | undefined): void;
  /** Notes that a middleware acted. `did`: for the trace, if no hook did it. */
  note(by: string, what: string, did?: TraceAct): void;
  /** Notes a guard's verdict and reports it to observers. */
  report(verdict: GuardVerdict, what: string, about?: Context): void;
  /** Notes what a middleware says, after removing what guards find in it. */
  noteSaid(by: string, what: string): void;
  /** Called when a stop is latched somewhere in the run. */
  halt(signal: unknown, by: string | undefined): void;
  /** Attaches the result so far to the error the run fails with. */
  carry(error: unknown, ctx: RunContext): void;
  /** `onError` may start a turn again once per middleware. */
  mayRestart(name: string): boolean;
}

/**
 * The parts of a request that layers may assign. Immutable: forks share it, an assignment makes a new one, and two contexts
 * with the same one make the same request.
 */
export interface RequestParts {
  readonly systemPrompt: string;
  readonly tools: readonly Tool[];
  readonly model: Model;
  readonly settings: ModelSettings;
  /** Undefined: the history. */
  readonly messages: readonly Message[] | undefined;
}

/** A response after the transforms of this context. */
export interface Stage {
  readonly ctx: ModelContext;
  readonly response: ModelResponse;
}

/** A guard refused a call because of its arguments, or wants a human to agree. */
export interface CallVerdict {
  readonly deny?: { readonly reason: string; readonly by: string };
  readonly ask?: Asking;
}

/** By index in the content. */
export type CallVerdicts = Map<number, CallVerdict>;
