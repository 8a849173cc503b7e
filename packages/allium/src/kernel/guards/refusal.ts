/** What happens when a guard finds something: it is reported, and refused if the guard's action says so. */

import { type Context, ModelSeam } from '../context/context.js';
import type { Finding, GuardPoint, GuardVerdict, Span } from '../protocol/guard.js';
import type { Guard, PlannedGuard } from '../protocol/middleware.js';
import { type ControlSignal, RestartTurn, StopRun } from '../protocol/signals.js';

export interface Refusal {
  readonly reason: string;
  readonly by: string;
  /** Tell the model why and ask it again. */
  readonly feedback?: boolean;
}

/** Reports findings and returns the refusal, if the guard refuses. Throws for a stop. */
export function reportFindings(
  planned: PlannedGuard,
  point: GuardPoint,
  found: readonly Span[],
  ctx: Context,
  offset = 0,
): Refusal | undefined {
  if (refuses(planned) || planned.guard.action === 'warn') return refuse(planned, point, found, ctx, offset);
  for (const span of found) report(planned, point, 'redact', span, 'redacted', ctx, offset);
  return undefined;
}

/** Notes a verdict and reports it to observers. */
export function report(
  { name: guard }: PlannedGuard,
  point: GuardPoint,
  action: GuardVerdict['action'],
  { kind, severity, start, end }: Finding & Partial<Span>,
  what: string,
  ctx: Context,
  offset = 0,
): void {
  const verdict: GuardVerdict = {
    guard,
    point,
    action,
    ...(kind !== undefined && { kind }),
    ...(severity !== undefined && { severity }),
    ...(start !== undefined && { start: start + offset, end: end! + offset }),
  };
  ctx._run.report(verdict, `${what} ${point}`, ctx);
}

export function replaced({ guard: { replacement = '[redacted]' } }: PlannedGuard, span: Span): string {
  return span.replacement ?? replacement;
}

export function refuses({ guard: { action } }: PlannedGuard): boolean {
  return action === 'block' || action === 'stop' || action === 'feedback';
}

/** Reports findings and returns the refusal. A guard that only warns returns none; a stop is thrown. */
export function refuse(
  planned: PlannedGuard,
  point: GuardPoint,
  found: readonly (Finding & Partial<Span>)[],
  ctx: Context,
  offset: number,
): Refusal | undefined {
  const { name, guard } = planned;
  const action = actionOf(guard, ctx);
  const warns = action === 'warn';
  for (const one of found) {
    report(planned, point, action, one, warns ? 'warned about' : 'refused', ctx, offset);
    if (warns) ctx._run.emitCustom('guard_warning', { point }, name);
  }
  if (warns) return undefined;
  const kinds = [...new Set(found.flatMap(({ kind }) => kind ?? []))];
  const who = `by guard "${name}"${kinds.length > 0 ? ` (${kinds.join(', ')})` : ''}.`;
  const why = found.find(({ reason }) => reason !== undefined)?.reason;
  if (action === 'stop') throw stopFor({ reason: why ?? `Stopped ${who}`, by: name }, ctx);
  return { reason: why ?? `Refused ${who}`, by: name, feedback: action === 'feedback' };
}

/** What a refusal of this guard means here. `feedback` only works for the model's answer, and only `maxFeedback` times. */
function actionOf({ action = 'block', maxFeedback = 2 }: Guard, { _call: call, _run: run }: Context) {
  if (action === 'redact') return 'block';
  if (action !== 'feedback') return action;
  const isAnswer = call instanceof ModelSeam && call.live !== undefined;
  return isAnswer && run.open.feedback < maxFeedback ? 'feedback' : 'block';
}

/** Turns a refusal into the signal that ends the run, or asks the model again. It is latched, so no layer can swallow it. */
export function stopFor({ reason, by, feedback }: Refusal, ctx: Context): ControlSignal {
  const signal = feedback ? new RestartTurn(undefined, [], { reason, by }) : new StopRun('guardrail', reason);
  ctx._latch(signal, by);
  return signal;
}
