/** Meters count, and may limit, what the model calls of a run use, including sub-agents and middleware. */

import { isThenable } from '../lib/errors.js';
import type { Usage } from '../messages/messages.js';
import type { Model } from '../messages/model.js';
import type { ModelContext, RunContext } from '../protocol/contexts.js';
import type { Awaitable } from '../protocol/store.js';
import { internal } from './context.js';
import type { Hold, Meter, Meters } from './meter.js';

/**
 * Gives the run a meter. It also counts model calls of sub-agents and of other middleware. A sub-agent with its own meter of
 * the same `owner` uses that one instead.
 *
 * @example
 * const used: MeteredUsage[] = [];
 * meterUsage(ctx, owner, { list: used });
 */
export function meterUsage(ctx: RunContext, owner: object, one: Meter): void {
  const { _run: run } = internal(ctx);
  run.meters = new Map(run.meters).set(owner, one);
}

/** @internal */
export function noteUsage(meters: Meters, model: Model, usage: Usage): void {
  if (usage.totalTokens === 0) return;
  for (const { list } of meters.values()) list.push({ model, usage });
}

/** @internal What all meters reserve for an attempt, if any does. Synchronous if all meters are. */
export function admitByMeters(ctx: ModelContext): Awaitable<Hold | undefined> {
  const { meters } = internal(ctx)._run;
  if (meters === undefined) return undefined;
  const holds: Awaitable<Hold | undefined>[] = [];
  try {
    for (const one of meters.values()) {
      const hold = one.admit?.(ctx);
      if (hold !== undefined) holds.push(hold);
    }
  } catch (error) {
    for (const hold of holds) Promise.resolve(hold).then(release, ignore);
    throw error;
  }
  if (holds.length === 0) return undefined;
  return holds.some(isThenable) ? allOf(holds) : together(holds as Hold[]);
}

async function allOf(holds: readonly Awaitable<Hold | undefined>[]): Promise<Hold | undefined> {
  const outcomes = await Promise.allSettled(holds);
  const made = outcomes.flatMap((one) => (one.status === 'fulfilled' ? (one.value ?? []) : []));
  const failure = outcomes.find((one) => one.status === 'rejected');
  if (failure === undefined) return made.length === 0 ? undefined : together(made);
  for (const hold of made) hold.release();
  throw failure.reason;
}

function together(holds: readonly Hold[]): Hold {
  const maxOutputTokens = Math.min(...holds.map((hold) => hold.maxOutputTokens));
  return { maxOutputTokens, release: () => holds.forEach(release) };
}

function release(hold: Hold | undefined): void {
  hold?.release();
}

function ignore(): void {}
