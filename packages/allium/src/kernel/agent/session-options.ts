/** The options of a session. */

import type { Store } from '../protocol/store.js';

export interface SessionOptions {
  /** The tenant that opens it. New runs belong to this tenant; every method of a session of another tenant fails with `TENANT_MISMATCH`. @default that of the agent */
  readonly tenant?: string;
  /** Where the session is. @default the store of the agent */
  readonly store?: Store;
}

export interface ForkOptions {
  /** Id of the new session, which must not exist yet. @default random */
  readonly id?: string;
}
