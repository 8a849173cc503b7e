/** Targets: a figure, its limit, and whether it was reached. */

/**
 * @param {string} target what is promised
 * @param {import('./stats.mjs').summary | undefined} figure undefined where it could not be measured
 * @param {number} limit
 * @param {string} unit
 */
export function atMost(target, figure, limit, unit) {
  const verdict = figure === undefined ? 'NOT MEASURED' : figure.median <= limit ? 'PASS' : 'FAIL';
  const unsure = figure !== undefined && figure.low <= limit && figure.high > limit;
  return { target, figure, limit, unit, verdict, unsure };
}

/** The same for a figure that is better the larger it is. */
export function atLeast(target, figure, limit, unit) {
  const verdict = figure === undefined ? 'NOT MEASURED' : figure.median >= limit ? 'PASS' : 'FAIL';
  const unsure = figure !== undefined && figure.low < limit && figure.high >= limit;
  return { target, figure, limit, unit, verdict, unsure, atLeast: true };
}

/** A figure worth reading that has no limit. */
export function reported(target, figure, unit) {
  return { target, figure, unit, verdict: figure === undefined ? 'NOT MEASURED' : 'report' };
}
