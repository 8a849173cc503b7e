/** A meter: counts, and may limit, what the model calls of a run use. */

import type { Usage } from '../messages/messages.js';
import type { Model } from '../messages/model.js';
import type { ModelContext } from './contexts.js';
import type { Awaitable } from './store.js';

/** What one attempt of a model call used, whether it answered or broke off. */
export interface Spent {
  readonly model: Model;
  readonly usage: Usage;
}

/** Counts, and may limit, what all model calls of a run use. */
export interface Meter {
  /** Every attempt of the run is put into it, once. */
  readonly list: Spent[];
  /** Asked before every attempt. Throws where there may be none; returns what is set aside for it, if anything. */
  readonly admit?: (ctx: ModelContext) => Awaitable<Hold | undefined>;
}

/** What a meter sets aside for an attempt. */
export interface Hold {
  /** The most the model may write. */
  readonly maxOutputTokens: number;
  /** The attempt is over, and what it used is in the list. */
  release(): void;
}

/** By whose they are. */
export type Meters = ReadonlyMap<object, Meter>;
