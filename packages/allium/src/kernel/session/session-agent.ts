/** What a session needs from the agent that runs it. */

import type { PartialsOf } from '../events/event-stream.js';
import type { ComposedPlan } from '../layers/onion.js';
import type { Store } from '../protocol/store.js';
import type { RunAgent } from '../run/start.js';
import type { Session } from './session.js';

export interface SessionAgent extends RunAgent {
  readonly plan: ComposedPlan;
  readonly store: Store;
  readonly storeTimeoutMs: number;
  readonly tenant: string | undefined;
  /** What `stream.partials` yields. */
  readonly _partialsOf: PartialsOf;
  /** The Session object whose run is in progress, by session id. */
  readonly _busy: Map<string, Session>;
}
