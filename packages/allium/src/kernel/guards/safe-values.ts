/** Removes what guards find in everything besides messages: stop reasons, custom events, output, errors. */

import { RunContext } from '../context/context.js';
import type { RunPort } from '../context/run-port.js';
import { isRecord } from '../lib/errors.js';
import { isJson } from '../lib/frozen-json.js';
import { toStoredJson } from '../lib/json-texts.js';
import { NOTHING } from '../messages/messages.js';
import type { Context as PublicContext } from '../protocol/contexts.js';
import type { GuardPoint } from '../protocol/guard.js';
import type { Guard } from '../protocol/middleware.js';
import type { Stop } from '../protocol/stop.js';
import { redactValue } from './content-guards.js';
import { safeErrorMessage } from './guards.js';

/**
 * The value without what guards of these points find in it; undefined if one of them refuses it. Judges aren't asked, because
 * this is synchronous. `by`: the guard that wrote it, which isn't asked.
 */
export function safeValue<T>(
  given: T,
  run: RunPort,
  by?: string,
  at: readonly GuardPoint[] = Object.keys(run.plan.guards) as GuardPoint[],
): T | undefined {
  const { guards } = run.plan;
  const points = at.filter((point) => guards[point].length > 0);
  if (points.length === 0) return given;
  const ctx = new RunContext(run, run.scope, NOTHING);
  const asked = new Set<Guard>();
  let value: unknown = given;
  for (const point of points) {
    const more = guards[point].filter(({ guard, name }) => guard.find && name !== by && !asked.has(guard));
    if (more.length === 0) continue;
    for (const { guard } of more) asked.add(guard);
    // Only JSON can be searched.
    if (value === given && !isJson(value)) value = toStoredJson(value);
    const left = redactValue(point, value, ctx, true, more);
    if (left.deny) return undefined;
    value = left.value;
  }
  return value as T;
}

/** Structured output is an answer, so it is searched like one. Values that aren't JSON can't be searched. */
export function safeOutput(output: unknown, run: RunPort): unknown {
  return isJson(output) ? safeValue(output, run, undefined, ['output', 'final']) : output;
}

/** The stop of a run, as it is shown and journaled. */
export function safeStop<S extends Stop>(stop: S, run: RunPort): S {
  if (stop.message === undefined) return stop;
  const message = safeValue(stop.message, run, stop.by);
  return message === stop.message ? stop : { ...stop, message: message ?? `The run ended: ${stop.reason}.` };
}

// ── Errors ───────────────────────────────────────────────────────────────────────────────────────────────────

const MAX_CAUSES = 8;

/** May the error be shown as it is? Its stack, causes and fields may quote what guards remove. */
export function isTellable(error: unknown, ctx: PublicContext): boolean {
  const guarded = Object.values(ctx.plan.guards).some((guards) => guards.length > 0);
  if (!guarded) return true;
  try {
    return textsOf(error).every((text) => safeErrorMessage(text, ctx) === text);
  } catch {
    return false;
  }
}

function textsOf(error: unknown): readonly string[] {
  const texts: string[] = [];
  for (
    let at = error, n = 0;
    at !== undefined && n < MAX_CAUSES;
    at = (at as { cause?: unknown }).cause, n++
  ) {
    if (at instanceof Error) texts.push(at.message, at.stack ?? '', JSON.stringify({ ...at }));
    else texts.push(typeof at === 'string' ? at : (JSON.stringify(at) ?? ''));
    if (!isRecord(at)) break;
  }
  return texts;
}
