/** The options of a run and a resume. */

import type { Metadata } from '../messages/messages.js';
import type { Context, DeclaredOptions } from './contexts.js';
import type { Observer } from './events.js';
import type { Limits } from './limits.js';
import type { MiddlewareList } from './middleware.js';
import type { Decision, RequestHandler } from './store.js';
import type { TraceMode } from './trace.js';

/** How many waiting messages of a kind are taken in at a time: all of them, or one, which is answered before the next. */
export interface QueueModes {
  /** Steering, before each turn. @default 'all' */
  readonly steering?: 'all' | 'one';
  /** Follow-ups, each time the run would end. @default 'all' */
  readonly followUps?: 'all' | 'one';
}

/** The options of a run. Middleware add their own with `declare module 'allium'`. */
export interface RunOptions {
  /** More middleware for this run: inside the agent's for layers and after them for rules. */
  readonly middleware?: MiddlewareList;
  /** Observers of this run, in addition to the agent's. */
  readonly observers?: readonly Observer[];
  /** Aborts the run: it rejects with `ABORTED`, and everything inside it is cancelled. */
  readonly signal?: AbortSignal;
  /** Limits of this run. Each one replaces the agent's. */
  readonly limits?: Limits;
  /** The tenant of this run only, instead of the session's or the agent's. */
  readonly tenant?: string;
  /** How queued messages are taken in. Each mode replaces the agent's. A resume has to pass them again. */
  readonly queue?: QueueModes;
  /**
   * The id of the run. No other run of the session may have it. A resume continues only the run with this id.
   * @default random
   */
  readonly runId?: string;
  /** `changes`: records who changed what, in `result.trace` and with the journal. @default that of the agent */
  readonly trace?: TraceMode;
  /** Data for hooks: `ctx.runMetadata`. JSON. */
  readonly metadata?: Metadata;
  /** Answers questions, instead of the agent's handler. */
  readonly onRequest?: RequestHandler;
  /** Makes this run a child: it shares the parent's budgets, abort and tenant. */
  readonly parent?: Context;
  /** Whether the parent's guards also judge in this run, after its own guards. @default true */
  readonly inheritGuards?: boolean;
}

export interface ResumeOptions extends RunOptions {
  /** Answers to pending requests, by request id. */
  readonly answers?: Readonly<Record<string, Decision>>;
  /** Resumes even if a middleware of the run is missing now. */
  readonly allowPlanChange?: boolean;
}

/** Most runs have no options of middleware. */
export const NONE_DECLARED: DeclaredOptions = Object.freeze({});
