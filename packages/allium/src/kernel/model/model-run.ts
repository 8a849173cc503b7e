/** What model calls need of a run. */

import type { ModelContext, ModelSeam } from '../context/context.js';
import type { RequestParts } from '../context/run-port.js';
import type { LiveMessage } from '../events/live-message.js';
import type { InboxRun } from '../inbox/inbox-run.js';
import type { ComposedPlan } from '../layers/onion.js';
import type { Expense, Usage } from '../messages/messages.js';
import type { Price } from '../messages/model.js';
import type { Plan } from '../protocol/middleware.js';
import type { Tool } from '../protocol/tool.js';
import type { Budget, Reservation } from './budget.js';
import type { Breather } from './model-stream.js';

export interface ModelRun extends InboxRun {
  readonly budget: Budget;
  readonly plan: ComposedPlan;
  readonly agent: InboxRun['agent'] & {
    readonly toolExecution: 'parallel' | 'sequential';
    /** The request that model calls of a turn start from. `before`: that of the previous turn. */
    request(plan: Plan, turn: number, before?: RequestParts): RequestParts;
  };
  /** Its end has been reported: no event follows. */
  readonly over: boolean;
  turn: number;
  request: RequestParts;
  /** Gives timers a chance if the run never waits. */
  readonly breather: Breather;
  findTool(name: string, tools: readonly Tool[]): Tool | undefined;
  /** How many calls of the batch that begins now may run. */
  toolCallsLeft(): number;
  /** Replaces a reservation by what a call really used. */
  bookUsage(price: Price | undefined, reservation: Reservation | undefined, usage: Usage): void;
  /** The cost of the usage a message carries. Removes it from the usage that belongs to no message. */
  claimUsage(usage: Usage | undefined): Expense | undefined;
  /** Lets work wind down when the run is aborted; does not wait for code that ignores its signal. */
  supervise<T>(work: PromiseLike<T>, graceMs?: number): Promise<T>;
  /** A promise while the consumer is behind. */
  pressure(): Promise<void> | undefined;
}

/** The context of a model call where the call itself is made: with the run and the live message as they are here. */
export type Calling = ModelContext & {
  readonly _run: ModelRun;
  readonly _call: ModelSeam & { readonly live: LiveMessage | undefined };
};
