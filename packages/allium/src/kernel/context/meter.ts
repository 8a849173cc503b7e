/** A meter: counts, and may limit, what the model calls of a run use. */

import type { Usage } from '../messages/messages.js';
import type { Model } from '../messages/model.js';
import type { ModelContext } from '../protocol/contexts.js';
import type { Awaitable } from '../protocol/store.js';

/** What one attempt of a model call used, whether it answered or failed. */
export interface Spent {
  readonly model: Model;
  readonly usage: Usage;
}

/** Counts, and may limit, what all model calls of a run use. */
export interface Meter {
  /** Receives every attempt of the run, once. */
  readonly list: Spent[];
  /** Called before every attempt. Throws to refuse it; returns what it reserves for it, if anything. */
  readonly admit?: (ctx: ModelContext) => Awaitable<Hold | undefined>;
}

/** What a meter reserves for an attempt. */
export interface Hold {
  /** How many tokens the model may write at most. */
  readonly maxOutputTokens: number;
  /** Called when the attempt is over and what it used is in the list. */
  release(): void;
}

/** By owner. */
export type Meters = ReadonlyMap<object, Meter>;
