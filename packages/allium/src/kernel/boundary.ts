/** What is looked at between the steps of a run: a stop that was asked for, an abort, a limit. */
import { StopRun } from './errors.js';
import type { Run } from './run.js';

/** Throws the control signal that ends the run here, if there is one. */
export function boundary(run: Run): void {
  run.call.check();
  if (run.scope.aborted) throw run.scope.reason;
}

/** The same, and the limits of the kernel. */
export function checkLimits(run: Run): void {
  boundary(run);
  const stop = turnLimit(run) ?? run.budget.exceeded();
  if (!stop) return;
  run.call.latch(stop, 'kernel');
  throw stop;
}

function turnLimit(run: Run): StopRun | undefined {
  const { turns = 100 } = run.limits;
  if (run.open.turns >= turns) return new StopRun('max_turns', `The limit of ${turns} turns is reached.`);
  const { turns: session } = run.sessionLimits;
  if (session === undefined || run.state.turns < session) return undefined;
  return new StopRun('max_turns', `The session's limit of ${session} turns is reached.`);
}
