/** What a law of the store port is. */

import type { Store } from '../../index.js';
export interface LawContext {
  /** Begins every session id and tenant of this trial. */
  readonly prefix: string;
  open(): Promise<Store>;
  reopen(store: Store): Promise<Store>;
}

export interface StoreLawEntry {
  readonly law: string;
  readonly needs?: 'reopen';
  readonly check: (context: LawContext) => Promise<void>;
}
