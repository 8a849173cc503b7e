/** What contexts, guards, layers and rules need of the run they belong to. The rooms above them add what they need more. */

import type { History } from '../journal/history.js';
import type { OpenRun } from '../journal/journaled-run.js';
import type { SessionState } from '../journal/session-state.js';
import type { Clock } from '../lib/clock.js';
import type { Scope } from '../lib/scope.js';
import type { AssistantContent, Message, Metadata, ModelResponse, Usage } from '../messages/messages.js';
import type { Model, ModelSettings } from '../messages/model.js';
import type { Asking } from '../protocol/asking.js';
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
import type { Meters } from '../protocol/meter.js';
import type { Plan } from '../protocol/middleware.js';
import type { StopRun } from '../protocol/signals.js';
import type { Awaitable } from '../protocol/store.js';
import type { Tool } from '../protocol/tool.js';
import type { Cells } from './cells.js';
import type { SeamCall } from './seam-call.js';

/** What a context tells of its run. */
export interface RunFacts {
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
  /** How long the run has not been active, a pause under way included. */
  readonly pausedMs: number;
  /** The structured output, as far as a middleware has set it. */
  output: unknown;
  /** Sets it, without what guards find in it. */
  setOutput(output: unknown): void;
  /** What the run has added to the history. */
  newMessages(): readonly Message[];
  /** The name of the middleware at this place of the list. */
  nameAt(position: number): string | undefined;
}

/** What the run has used so far, and which limit on it is reached. */
export interface Spending {
  readonly usage: Usage;
  readonly costUsd: number | undefined;
  exceeded(): StopRun | undefined;
}

/** What is looked at where a run may have to end. */
export interface RunLimits {
  readonly scope: Scope;
  /** The latch of everything that is not inside a model or tool call. */
  readonly call: SeamCall;
  readonly budget: Spending;
  readonly limits: Limits;
  readonly sessionLimits: SessionLimits;
  readonly open: OpenRun;
  readonly state: SessionState;
  /** How long it has been active, where its time is limited. */
  readonly activeMs: number;
}

/** What layers and rules ask of the guards of a run. */
export interface Judging {
  /** What transforms made of responses, by the content they were made from. */
  stages: WeakMap<readonly AssistantContent[], Stage> | undefined;
  /** What comes in to a layer from further in: through its transforms, and for a sink through the guards. */
  view(ctx: Context, result: unknown, sink: boolean): Awaitable<unknown>;
  /** The response as the guards leave it. */
  response(
    response: ModelResponse,
    ctx: Context,
  ): Promise<{ readonly response: ModelResponse; readonly calls: CallVerdicts }>;
  /** Judges what a hook made of a result, before a sink is given it; undefined where it has passed. */
  patched(ctx: ToolContext): Promise<void> | undefined;
  /** Has a layer assigned arguments that nobody has judged yet? Those are kept from a sink. */
  hides(ctx: Context): ctx is ToolContext;
  /** Cleans what a layer assigned before a sink sees it. */
  assigned(ctx: ToolContext): Promise<void>;
  /** What guards said of arguments before they were cleaned: they could not say it again. */
  saidOf(ctx: ToolContext, raw: unknown): Promise<CallVerdict | undefined>;
}

/** A run, as far as the hooks of its middleware have to do with it. */
export interface RunPort extends RunFacts, RunLimits {
  readonly agent: { readonly teardownTimeoutMs: number };
  readonly clock: Clock;
  readonly judgements: Judging;
  /** The input, while guards judge it beside the first model call. */
  readonly pendingInput: { allowed(): Promise<void> } | undefined;
  /** Calls under way, and runs of sub-agents: they are told when the run is stopped. */
  readonly inside: { halt(signal: unknown, by: string | undefined): void }[];
  /** Somebody sees its events. */
  readonly watched: boolean;
  /** Run layers come before the loop, and one may end without it. */
  loop: 'to come' | 'begun' | 'given up' | 'over';
  /** Who counts what is used. */
  meters: Meters | undefined;
  /** What the model calls of a turn start from. */
  readonly request: RequestParts;
  /** Time does not count at the moment. */
  readonly isPaused: boolean;

  /** A model call of a middleware's own. */
  generate(caller: Context, model: Model, request: GenerateRequest): Promise<ModelResponse>;
  emitCustom(name: string, data: unknown, by: string | undefined): void;
  /** Notes that a middleware acted. */
  note(by: string, what: string): void;
  /** Tells observers what a guard said, and notes it. */
  report(verdict: GuardVerdict, what: string): void;
  /** The same for words of a middleware: without what guards find in them. */
  noteSaid(by: string, what: string): void;
  /** A stop was latched somewhere in the run. */
  halt(signal: unknown, by: string | undefined): void;
  /** Puts what there is of a result on the error that the run fails with. */
  carry(error: unknown, ctx: RunContext): void;
  /** `onError` may start a turn again once per middleware. */
  mayRestart(name: string): boolean;
}

/**
 * What layers may assign of a request. A record is never changed: forks share it, an assignment makes another
 * one, and two contexts with the same one ask for the same.
 */
export interface RequestParts {
  readonly systemPrompt: string;
  readonly tools: readonly Tool[];
  readonly model: Model;
  readonly settings: ModelSettings;
  /** Undefined: the history. */
  readonly messages: readonly Message[] | undefined;
}

/** A response as the transforms of this context left it. */
export interface Stage {
  readonly ctx: ModelContext;
  readonly response: ModelResponse;
}

/** A guard refused a call because of its arguments, or wants a human to agree. */
export interface CallVerdict {
  readonly deny?: { readonly reason: string; readonly by: string };
  readonly ask?: Asking;
}

/** By place in the content. */
export type CallVerdicts = Map<number, CallVerdict>;
