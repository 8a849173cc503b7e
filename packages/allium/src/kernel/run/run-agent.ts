/** What a run needs of the agent it belongs to. */

import type { Context as InternalContext } from '../context/context.js';
import type { ObserverFeed } from '../events/observer-feed.js';
import type { ComposedPlan } from '../layers/onion.js';
import type { ModelSettings } from '../messages/model.js';
import type { PriceOf } from '../messages/prices.js';
import type { Context } from '../protocol/contexts.js';
import type { Limits, SessionLimits } from '../protocol/limits.js';
import type { MiddlewareList } from '../protocol/middleware.js';
import type { Plan } from '../protocol/plan.js';
import type { QueueModes } from '../protocol/run-options.js';
import type { RequestHandler } from '../protocol/store.js';
import type { ToolsRun } from '../tools/tools-run.js';
import type { Run } from './run.js';

type ForCalls = ToolsRun['agent'];

export interface RunAgent extends ForCalls {
  readonly settings: ModelSettings;
  readonly limits: Limits;
  readonly sessionLimits: SessionLimits;
  readonly queue: QueueModes;
  readonly priceOf: PriceOf;
  readonly _feeds: readonly ObserverFeed[];
  readonly _onRequest: RequestHandler | undefined;
  readonly newId: () => string;
  /** The plan with per-run middleware inside, and the guards of the plan above. */
  planFor(middleware: MiddlewareList | undefined, above?: Plan): ComposedPlan;
}

/** The run that a context belongs to: of `parent`, the one whose tool starts another. */
export function runBehind(ctx: Context | undefined): Run | undefined {
  return (ctx as InternalContext | undefined)?._run as Run | undefined;
}
