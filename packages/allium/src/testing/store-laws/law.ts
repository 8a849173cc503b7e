/** What a law of the store port is. */

import type { Store } from '../../index.js';

export interface LawContext {
  /** Every session id and tenant of this trial begins with it. */
  readonly prefix: string;
  open(): Promise<Store>;
  reopen(store: Store): Promise<Store>;
}

export interface StoreLawEntry {
  readonly law: string;
  readonly statement: string;
  readonly needs?: 'reopen';
  readonly check: (context: LawContext) => Promise<void>;
}
