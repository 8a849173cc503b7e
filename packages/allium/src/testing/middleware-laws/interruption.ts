/** Aborts a run in each situation and looks at what happens afterwards. */
import { during, fresh, type MiddlewareLawContext } from './context.js';
import { interruptions } from './scenarios.js';

export interface Aftermath {
  /** Whether the run ended without time having to pass. */
  readonly ended: boolean;
  /** Timers of the middleware that were still set then. */
  readonly timers: number;
  /** Calls of the model or a tool that began after the abort, also later. */
  readonly calls: number;
}

/** Hands the aftermath of every interruption to `look`, one by one, each with a fresh instance. */
export async function eachInterruption(
  context: MiddlewareLawContext,
  look: (aftermath: Aftermath) => void,
): Promise<void> {
  for (const scenario of interruptions()) {
    const bench = fresh(context);
    const running = bench.start(scenario);
    if (!scenario.abortsFirst) await bench.idle(running);
    // A run that failed and is over already leaves nothing to abort.
    running.abort();
    await bench.idle(running);
    const { ended } = running;
    const { timers } = bench;
    await bench.finish(running);
    await bench.quiet();
    const calls = bench.calls - running.callsAtAbort;
    await during(`aborted ${scenario.name}`, () => look({ ended, timers, calls }));
  }
}
