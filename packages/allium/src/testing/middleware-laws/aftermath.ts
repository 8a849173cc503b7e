/** Runs every scenario once, and every interruption once, and keeps what several laws look at. */
import type { Bench } from './bench.js';
import { allScenarios, during, fresh, type MiddlewareLawContext, runApproved } from './context.js';
import type { Observation } from './observation.js';
import { interruptions, type KitScenario } from './scenarios.js';
import { strayRejections } from './stray-rejections.js';

/** What a run left behind. */
export interface Aftermath {
  /** Every part of the run, in order: there are several if it asked something on the way. */
  readonly parts: readonly Observation[];
  /** Timers of the middleware that were still set after the first part, or after the abort. */
  readonly timers: number;
  /** Promises that rejected unhandled, during the run or afterwards. */
  readonly stray: readonly unknown[];
}

export interface AbortAftermath extends Aftermath {
  /** Whether the run ended without time having to pass. */
  readonly ended: boolean;
  /** Calls of the model or a tool that began after the abort, also later. */
  readonly calls: number;
}

interface Situation<A extends Aftermath> {
  readonly name: string;
  readonly aftermath: A;
}

const runs = new WeakMap<MiddlewareLawContext, Promise<readonly Situation<Aftermath>[]>>();
const aborts = new WeakMap<MiddlewareLawContext, Promise<readonly Situation<AbortAftermath>[]>>();

/** Passes what every scenario left behind to `look`, one by one. Each ran once, with a fresh instance. */
export async function eachRun(
  context: MiddlewareLawContext,
  look: (aftermath: Aftermath) => void,
): Promise<void> {
  const all = kept(runs, context, () => inTurn(allScenarios(context), (scenario) => run(context, scenario)));
  for (const { name, aftermath } of await all) await during(name, () => look(aftermath));
}

/** The same for every interruption: the run is aborted there. */
export async function eachInterruption(
  context: MiddlewareLawContext,
  look: (aftermath: AbortAftermath) => void,
): Promise<void> {
  const all = kept(aborts, context, () =>
    inTurn(interruptions(), (scenario) => interrupt(context, scenario)),
  );
  for (const { name, aftermath } of await all) await during(`aborted ${name}`, () => look(aftermath));
}

function kept<T>(
  known: WeakMap<MiddlewareLawContext, Promise<T>>,
  context: MiddlewareLawContext,
  make: () => Promise<T>,
): Promise<T> {
  const made = known.get(context) ?? make();
  known.set(context, made);
  return made;
}

async function inTurn<A extends Aftermath>(
  scenarios: readonly KitScenario[],
  aftermathOf: (scenario: KitScenario) => Promise<A>,
): Promise<readonly Situation<A>[]> {
  const all: Situation<A>[] = [];
  for (const scenario of scenarios)
    all.push({ name: scenario.name, aftermath: await during(scenario.name, () => aftermathOf(scenario)) });
  return all;
}

function run(context: MiddlewareLawContext, scenario: KitScenario): Promise<Aftermath> {
  return withStray(async () => {
    const bench = fresh(context);
    let timers = 0;
    const parts = await runApproved(bench, scenario, () => {
      timers = bench.timers;
    });
    return { parts, timers };
  });
}

function interrupt(context: MiddlewareLawContext, scenario: KitScenario): Promise<AbortAftermath> {
  return withStray(async () => {
    const bench: Bench = fresh(context);
    const running = bench.start(scenario);
    if (!scenario.abortsFirst) await bench.idle(running);
    // If a run has failed and is over, there is nothing to abort.
    running.abort();
    await bench.idle(running);
    const { ended } = running;
    const { timers } = bench;
    const parts = [await bench.finish(running)];
    await bench.quiet();
    return { parts, timers, ended, calls: bench.calls - running.callsAtAbort };
  });
}

async function withStray<T>(work: () => Promise<T>): Promise<T & { readonly stray: readonly unknown[] }> {
  let outcome: T;
  const stray = await strayRejections(async () => {
    outcome = await work();
  });
  return { ...outcome!, stray };
}
