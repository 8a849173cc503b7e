/** Who counts what the model calls of a run use, those of its sub-agents and of middleware included. */
import type { RunContext } from './context.js';
import type { Usage } from './messages.js';
import type { Model } from './model.js';
import type { Run } from './run.js';

/** What an attempt used that answered or broke off. */
export interface Spent {
  readonly model: Model;
  readonly usage: Usage;
}

/** Lists that are added to, by whose they are. */
export type Meters = ReadonlyMap<object, Spent[]>;

/**
 * From now on every attempt of the run is put into `list`, once. So are those of its sub-agents, until one of them has
 * a list of the same owner.
 */
export function meter({ _run: run }: RunContext, owner: object, list: Spent[]): void {
  run.meters = new Map(run.meters).set(owner, list);
}

/** @internal */
export function note({ meters }: Run, model: Model, usage: Usage): void {
  if (meters === undefined || usage.totalTokens === 0) return;
  for (const list of meters.values()) list.push({ model, usage });
}
