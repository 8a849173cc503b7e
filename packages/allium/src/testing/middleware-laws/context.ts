/** What each law of middleware is given. */
import type { Tool } from '../../index.js';
import type { Law } from '../law-runner.js';
import { type Bench, type BenchOptions, bench, type MiddlewareFactory } from './bench.js';
import type { Facet, Observation } from './observation.js';
import type { Habits } from './real-work.js';
import { CALM, type KitScenario, type Scenario, TROUBLE, WORDY } from './scenarios.js';

export interface MiddlewareLawContext {
  readonly factory: MiddlewareFactory;
  /** Makes the middleware without anything to do. */
  readonly neutral: MiddlewareFactory;
  /** Makes the other middleware it needs. */
  readonly companions: BenchOptions['companions'];
  /** What it declares to change even if it has nothing to do. */
  readonly changes: readonly Facet[];
  /** The errors it declares to handle. */
  readonly handles: readonly ('model-errors' | 'tool-errors')[];
  /** The author's own scenarios. */
  readonly scenarios: readonly Scenario[];
  /** The seed of the random chunkings. */
  readonly seed: number;
  readonly timeoutMs: number;
  /** What is known so far of how it works. */
  readonly habits: Habits;
}

export type MiddlewareCheck<Name extends string> = Law<Name, MiddlewareLawContext>;

/** A bench with a fresh instance of the middleware. */
export function fresh(context: MiddlewareLawContext, options: Partial<BenchOptions> = {}): Bench {
  const { factory, companions, timeoutMs, habits } = context;
  return bench({ factory, companions, timeoutMs, habits, tools: ownTools(context), ...options });
}

/** The tools of the author's scenarios. Several scenarios may use the same one. */
export function ownTools({ scenarios }: MiddlewareLawContext): readonly Tool[] {
  return [...new Set(scenarios.flatMap(({ tools = [] }) => tools))];
}

/** Every conversation that ends by itself. */
export function allScenarios({ scenarios }: MiddlewareLawContext): readonly KitScenario[] {
  return [...CALM, ...WORDY, ...TROUBLE, ...scenarios];
}

/** Puts the situation before the message of an error that `check` throws. */
export async function during<T>(situation: string, work: () => T | Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    throw new Error(`In "${situation}": ${error instanceof Error ? error.message : String(error)}`, {
      cause: error,
    });
  }
}

/** How many times a run may ask before the kit gives up on it. */
const QUESTIONS = 20;

/**
 * Runs a scenario to its end, with a yes to whatever is asked on the way. Returns every part of the run, in order.
 * `afterFirst` is called before the first question is answered.
 */
export async function runApproved(
  on: Bench,
  scenario: KitScenario,
  afterFirst?: () => void,
): Promise<readonly Observation[]> {
  let running = on.start(scenario);
  const parts = [await on.finish(running)];
  afterFirst?.();
  while (parts.at(-1)!.result.status === 'suspended' && parts.length <= QUESTIONS) {
    running = on.resume(running, parts.at(-1)!);
    parts.push(await on.finish(running));
  }
  return parts;
}
