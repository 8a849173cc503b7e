/** How a run ended. */

import { AlliumError } from '../lib/errors.js';
import type { Message, Usage } from '../messages/messages.js';
import type { GuardVerdict } from './guard.js';
import type { StateCell } from './state.js';
import type { RunStatus, Stop } from './stop.js';
import type { PendingRequest } from './store.js';
import type { RunTrace } from './trace.js';

export interface RunResult<Output = unknown> {
  readonly status: RunStatus;
  readonly stop: Stop;
  /** The text of the last assistant message of this run. */
  readonly text: string;
  /** The structured output, if a middleware produced one. */
  readonly output?: Output;
  /** The messages this run added to the history. */
  readonly messages: readonly Message[];
  readonly usage: Usage;
  /** Undefined if the price or the usage of some call is unknown. */
  readonly costUsd?: number;
  readonly turns: number;
  /** Questions waiting for a human, when suspended. */
  readonly pending: readonly PendingRequest[];
  /** Steering and follow-up messages that no run has taken yet, without what guards remove. They stay with the session. */
  readonly queued: readonly Message[];
  /** Which middleware changed what on the way: see `explain()`. */
  readonly changes: readonly Change[];
  readonly runId: string;
  readonly sessionId: string;
  /** Cells as they were when the run ended: `result.state.get(cell)`. Those of sub-agents: `result.state.of(agentId)`. */
  readonly state: StateReader;
  /** Who did what, in full; undefined if the run isn't traced. */
  readonly trace: RunTrace | undefined;
}

/** A middleware acted: it replaced a response, rewrote a request, blocked a call, … */
export interface Change {
  readonly turn: number;
  readonly by: string;
  readonly what: string;
  /** The verdict, if it was a guard. */
  readonly verdict?: GuardVerdict;
}

/** What `run()` rejects with: the code, the result so far, and the thrown value as `cause`. */
export class RunError extends AlliumError {
  override readonly name = 'RunError';
  readonly result: RunResult;

  constructor(code: string, message: string, result: RunResult, cause: unknown) {
    super(code, message, { cause });
    this.result = result;
  }
}

/** Reads cells as they were when a run ended. Call it, or use `get` as with `ctx.state`. */
export interface StateReader {
  <T>(cell: StateCell<T>): T;
  get<T>(cell: StateCell<T>): T;
  /** The cells of a sub-agent of this run, or of one of its sub-agents, by the id of its session (`details.agentId` of its call). */
  of(agentId: string): StateReader | undefined;
}
