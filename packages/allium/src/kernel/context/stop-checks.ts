/** Checks between the steps of a run: was a stop requested, was it aborted, is a limit reached? */

import { controlKind, isKernelStop, kernelStop, StopRun } from '../protocol/signals.js';
import type { Stop, StoppingReason } from '../protocol/stop.js';
import type { RunLimits } from './run-port.js';

/** The control signal that ends the run here, if there is one. */
export function endingSignal({ call, scope }: RunLimits): unknown {
  return call.latched ?? scope.reason;
}

/** Throws that signal. */
export function throwIfEnding(run: RunLimits): void {
  const signal = endingSignal(run);
  if (signal !== undefined) throw signal;
}

/** A run that was being stopped when it broke off is still being stopped when it is resumed. */
export function restoreStop(run: RunLimits): void {
  const { stop } = run.open;
  if (stop) run.call.latch(new StopRun(stop.reason, stop.message), stop.by);
}

/** Throws if the run ends here, or a limit is reached. */
export function checkLimits(run: RunLimits): void {
  throwIfEnding(run);
  const stop = turnLimit(run) ?? run.budget.exceeded() ?? timeLimit(run);
  if (!stop) return;
  run.call.latch(stop, 'kernel');
  throw stop;
}

/** The stop that a signal stands for; `by` is who raised it. Undefined for other signals. */
export function stopOf(signal: unknown, by: string | undefined): Stop<StoppingReason> | undefined {
  if (signal === undefined || controlKind(signal) !== 'stop') return undefined;
  const { reason, message } = signal as StopRun;
  const who = isKernelStop(signal) ? 'kernel' : by;
  return { reason, message, ...(who && { by: who }) };
}

/** The model called more tools than may run. */
export function toolCallLimit(): StopRun {
  return new StopRun('max_tool_calls', 'The limit on tool calls is used up.');
}

/** A run that never yields starves its timer, so check here too. */
function timeLimit(run: RunLimits): StopRun | undefined {
  const { timeoutMs } = run.limits;
  return timeoutMs !== undefined && run.activeMs >= timeoutMs ? outOfTime(timeoutMs) : undefined;
}

export function outOfTime(timeoutMs: number): StopRun {
  return kernelStop('timeout', `The run took longer than ${timeoutMs} ms.`);
}

function turnLimit(run: RunLimits): StopRun | undefined {
  const { turns = 100 } = run.limits;
  if (run.open.turns >= turns) return new StopRun('max_turns', `The limit of ${turns} turns is reached.`);
  const { turns: session } = run.sessionLimits;
  if (session === undefined || run.state.turns < session) return undefined;
  return new StopRun('max_turns', `The session's limit of ${session} turns is reached.`);
}
