/** What each law of middleware is given. */
import type { Tool } from '../../index.js';
import type { Law } from '../law-runner.js';
import { type Bench, type BenchOptions, bench, type MiddlewareFactory } from './bench.js';
import type { Facet, Observation } from './observation.js';
import type { Habits } from './real-work.js';
import { CALM, type KitScenario, type Scenario, TROUBLE, WORDY } from './scenarios.js';

export interface MiddlewareLawContext {
  readonly factory: MiddlewareFactory;
  /** Makes it with nothing to do. */
  readonly neutral: MiddlewareFactory;
  /** Makes what it needs beside it. */
  readonly companions: BenchOptions['companions'];
  /** What it declares to change even then. */
  readonly changes: readonly Facet[];
  /** Whose errors it declares to handle. */
  readonly handles: readonly ('model-errors' | 'tool-errors')[];
  /** Those of its author. */
  readonly scenarios: readonly Scenario[];
  /** For the random parts. */
  readonly seed: number;
  readonly timeoutMs: number;
  /** What was learnt of it so far. */
  readonly habits: Habits;
}

export type MiddlewareCheck<Name extends string> = Law<Name, MiddlewareLawContext>;

/** A bench with a fresh instance of the middleware. */
export function fresh(context: MiddlewareLawContext, options: Partial<BenchOptions> = {}): Bench {
  const { factory, companions, timeoutMs, habits } = context;
  return bench({ factory, companions, timeoutMs, habits, tools: ownTools(context), ...options });
}

/** The tools of its author's scenarios; several may use the same one. */
export function ownTools({ scenarios }: MiddlewareLawContext): readonly Tool[] {
  return [...new Set(scenarios.flatMap(({ tools = [] }) => tools))];
}

/** Every conversation that ends by itself. */
export function allScenarios({ scenarios }: MiddlewareLawContext): readonly KitScenario[] {
  return [...CALM, ...WORDY, ...TROUBLE, ...scenarios];
}

/** Names the situation in what a check throws. */
export async function during<T>(situation: string, work: () => T | Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    throw new Error(`In "${situation}": ${error instanceof Error ? error.message : String(error)}`, {
      cause: error,
    });
  }
}

/** How often one run may ask before it is let be. */
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
