/** What a run starts with: the agent, where its session is kept, and what the caller asked for. */

import type { ToolsRun } from '../calls/tools-run.js';
import type { Tracer } from '../context/tracing.js';
import type { EventQueue } from '../events/event-queue.js';
import type { Feed } from '../events/run-events.js';
import type { BoundedStore } from '../journal/bounded-store.js';
import type { OpenRun } from '../journal/journaled-run.js';
import type { SessionState } from '../journal/session-state.js';
import type { ComposedPlan } from '../layers/onion.js';
import type { Scope } from '../lib/scope.js';
import type { Message } from '../messages/messages.js';
import type { ModelSettings, PriceOf } from '../messages/model.js';
import type { DeclaredOptions } from '../protocol/contexts.js';
import type { Observer } from '../protocol/events.js';
import type { Limits, SessionLimits } from '../protocol/limits.js';
import type { MiddlewareList, Plan } from '../protocol/middleware.js';
import type { QueueModes, ResumeOptions } from '../protocol/run-options.js';
import type { RequestHandler } from '../protocol/store.js';
import type { TraceMode } from '../protocol/trace.js';
import type { Run } from './run.js';

export interface Start {
  readonly agent: RunAgent;
  /** Where the session is kept. For a sub-agent, that is the store of its parent. */
  readonly store: BoundedStore;
  /** The session is deleted when the run has ended. */
  readonly forgets: boolean;
  readonly state: SessionState;
  readonly tenant: string | undefined;
  /** Undefined for a resume; empty to continue with the history and the messages that wait. */
  readonly input: readonly Message[] | undefined;
  /** It has no turns: it only compacts the history. */
  readonly compacts: boolean;
  readonly options: ResumeOptions;
  /** The options that belong to middleware. */
  readonly declared: DeclaredOptions;
  /** The run whose tool or hook starts this one. */
  readonly parent: Run | undefined;
  readonly queue: EventQueue | undefined;
  readonly scope: Scope;
}

type ForCalls = ToolsRun['agent'];

/** What a run needs from its agent. */
export interface RunAgent extends ForCalls {
  readonly settings: ModelSettings;
  readonly limits: Limits;
  readonly sessionLimits: SessionLimits;
  readonly queue: QueueModes;
  readonly priceOf: PriceOf;
  readonly _feeds: readonly Feed[];
  /** Feeds for the observers of one run. */
  _feedsFor(observers: readonly Observer[] | undefined): readonly Feed[] | undefined;
  readonly _onRequest: RequestHandler | undefined;
  readonly newId: () => string;
  readonly trace: TraceMode;
  readonly _tracer: Tracer;
  /** The plan with per-run middleware inside, and the guards of the plan above. */
  planFor(middleware: MiddlewareList | undefined, above?: Plan): ComposedPlan;
  /** The same for a run that is resumed. Throws if it isn't clear which middleware its state belongs to. */
  resumedPlan(open: OpenRun, plan: ComposedPlan, options: ResumeOptions, above?: Plan): ComposedPlan;
}
