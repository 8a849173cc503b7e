/** What taking in messages and answers needs from a run. */

import type { LiveRun } from '../events/live-run.js';
import type { BoundedStore } from '../journal/bounded-store.js';
import type { DeclaredOptions } from '../protocol/contexts.js';
import type { QueueModes } from '../protocol/run-options.js';
import type { Awaitable, EntryDraft, Posted } from '../protocol/store.js';
import type { PendingInput } from './pending-input.js';

export interface InboxRun extends LiveRun {
  readonly queue: QueueModes;
  readonly store: BoundedStore;
  /** What was left in the inbox when it was last read. */
  posted: readonly Posted[];
  /** The options of middleware, as guards left them. */
  options: DeclaredOptions;
  /** The input, while guards judge it in parallel to the first model call. */
  pendingInput: PendingInput | undefined;
  messageId(number: number): string;
  /** Writes entries together with the state changes that wait. `how`: see `Journal`. */
  append(entries: readonly EntryDraft[], how?: 'append' | 'appendLate'): Awaitable<void>;
  /** The store failed, and nobody knows how far the run got: nothing more is written. */
  lose(error: unknown): Promise<never>;
}
