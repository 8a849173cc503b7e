/** What is told beside messages, without what guards find in it: why runs end, custom events, messages of errors. */

import { RunContext } from '../context/context.js';
import type { RunPort } from '../context/run-port.js';
import { isJson } from '../lib/frozen-json.js';
import { asJson, textsOfValue, withTexts } from '../lib/json-texts.js';
import { NOTHING } from '../messages/messages.js';
import type { Guard, GuardPoint } from '../protocol/guard.js';
import type { Stop } from '../protocol/result.js';
import { redactTexts } from './content-guards.js';

/**
 * What is told, without what guards of any point find in it; undefined where one
 * of them refuses. No judge is asked: these are told at once. `by`: a guard that said it itself.
 */
export function toldBeside<T>(
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
    // What is no JSON cannot be searched, so its JSON is told.
    if (value === given && !isJson(value)) value = asJson(value);
    const said = textsOfValue(value);
    const { texts, deny } = redactTexts(point, said.texts, ctx, true, more);
    if (deny) return undefined;
    if (texts !== said.texts) value = withTexts(value, said.flat(texts));
  }
  return value as T;
}

/** Structured output is an answer, whatever it was made from. What a schema made that is no JSON cannot be searched. */
export function toldOutput(output: unknown, run: RunPort): unknown {
  return isJson(output) ? toldBeside(output, run, undefined, ['output', 'final']) : output;
}

/** Why a run ended, as it is told and journaled. */
export function toldStop<S extends Stop>(stop: S, run: RunPort): S {
  if (stop.message === undefined) return stop;
  const message = toldBeside(stop.message, run, stop.by);
  return message === stop.message ? stop : { ...stop, message: message ?? `The run ended: ${stop.reason}.` };
}
