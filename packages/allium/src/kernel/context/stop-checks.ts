/** What is looked at between the steps of a run: a stop that was asked for, an abort, a limit. */

import { controlKind, isKernelStop, kernelStop, StopRun } from '../protocol/signals.js';
import type { Stop, StoppingReason } from '../protocol/stop.js';
import type { RunLimits } from './run-port.js';

/** The control signal that ends the run here, if there is one. */
export function endOf({ call, scope }: RunLimits): unknown {
  return call.latched ?? scope.reason;
}

/** Throws it. */
export function boundary(run: RunLimits): void {
  const signal = endOf(run);
  if (signal !== undefined) throw signal;
}

/** What had stopped the run before it broke off still does. */
export function restoreStop(run: RunLimits): void {
  const { stop } = run.open;
  if (stop) run.call.latch(new StopRun(stop.reason, stop.message), stop.by);
}

/** The same, and the limits of the kernel. */
export function checkLimits(run: RunLimits): void {
  boundary(run);
  const stop = turnLimit(run) ?? run.budget.exceeded() ?? timeLimit(run);
  if (!stop) return;
  run.call.latch(stop, 'kernel');
  throw stop;
}

/** What a signal that stops the run comes to; `by` is who raised it. Undefined for anything else. */
export function stopOf(signal: unknown, by: string | undefined): Stop<StoppingReason> | undefined {
  if (signal === undefined || controlKind(signal) !== 'stop') return undefined;
  const { reason, message } = signal as StopRun;
  const who = isKernelStop(signal) ? 'kernel' : by;
  return { reason, message, ...(who && { by: who }) };
}

/** More tools were asked for than may run. */
export function toolCallLimit(): StopRun {
  return new StopRun('max_tool_calls', 'The limit of tool calls is used up.');
}

/** The timer that cuts a run off has no say while nothing in it ever waits. */
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
