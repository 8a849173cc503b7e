/** Where the middleware of a plan stand relative to each other, for the checks in `hazards`. */

import type { GuardPoint } from '../kernel/protocol/guard.js';
import type { Plan, PlannedMiddleware } from '../kernel/protocol/middleware.js';
import { type Layer, type RuleHook, SEAMS, type Seam } from '../kernel/protocol/plan.js';

export type Nested = (plan: Plan, outer: PlannedMiddleware, inner: PlannedMiddleware) => boolean;

export const has = (trait: string) => (one: PlannedMiddleware) =>
  one.middleware.traits?.includes(trait) ?? false;

export function at(plan: Plan, one: PlannedMiddleware, seam: Seam): boolean {
  return isAmong(plan.layers[seam], one);
}

function isAmong(
  members: readonly { readonly position: number }[],
  { position }: PlannedMiddleware,
): boolean {
  return members.some((member) => member.position === position);
}

/** One of them declares this order with `order`, so it is intended. */
export function intended(outer: PlannedMiddleware, inner: PlannedMiddleware): boolean {
  const names = ({ name, middleware }: PlannedMiddleware) => [name, middleware.name];
  const { outside = [] } = outer.middleware.order ?? {};
  const { inside = [] } = inner.middleware.order ?? {};
  return (
    outside.some((name) => names(inner).includes(name)) || inside.some((name) => names(outer).includes(name))
  );
}

export const nestedLayers: Nested = (plan, outer, inner) =>
  outer.position < inner.position && SEAMS.some((seam) => at(plan, outer, seam) && at(plan, inner, seam));

// ── Who changes, stores and writes responses ─────────────────────────────────────────────────────────────────

/** By seam: the rule that sees a response after all layers, and the guard points before anything is stored. */
const RESPONSES: Readonly<Record<Seam, { rule?: RuleHook; points: readonly GuardPoint[] }>> = {
  run: { points: ['output', 'final'] },
  model: { rule: 'afterModelResponse', points: ['output', 'thinking', 'final'] },
  tool: { rule: 'afterToolCall', points: ['tool-result'] },
};

/** Where a middleware meets the responses of a seam: a smaller number is further out. Rules run after all layers. */
export function placesAt(plan: Plan, one: PlannedMiddleware, seam: Seam, counts = seesResponses): number[] {
  const { rule } = RESPONSES[seam];
  const asked = rule !== undefined && isAmong(plan.rules[rule], one);
  const wraps = isAmong(plan.layers[seam].filter(counts), one);
  return [...(asked ? [-1 - one.position] : []), ...(wraps ? [one.position] : [])];
}

function seesResponses({ wrap, after }: Layer): boolean {
  return wrap !== undefined || after !== undefined;
}

export function changesAt(plan: Plan, one: PlannedMiddleware, seam: Seam): number[] {
  // Any layer may register a transform of the stream before the call.
  if (has('transforms')(one)) return placesAt(plan, one, seam, () => true);
  const guarded = one.middleware.guard?.on.some((point) => RESPONSES[seam].points.includes(point));
  return has('redacts')(one) && !guarded ? placesAt(plan, one, seam) : [];
}

export const changesOutside: Nested = (plan, outer, inner) =>
  SEAMS.some(
    (seam) => at(plan, inner, seam) && changesAt(plan, outer, seam).some((place) => place < inner.position),
  );

/** Does it keep or write what it gets? Caches have their own hazard. */
export function writes(one: PlannedMiddleware): boolean {
  if (has('caches')(one)) return false;
  return has('exports')(one) || has('keeps')(one) || (one.middleware.sink === true && !has('replays')(one));
}

/** Sinks only get text that passed the guards, so a guard is the fix. */
export function guardInstead(redacts: PlannedMiddleware, { name, middleware }: PlannedMiddleware): string {
  const declare = middleware.sink === true ? '' : `, and declare "${name}" a sink`;
  return `Make "${redacts.name}" a guard${declare}: what a guard removes reaches no sink, wherever they stand.`;
}

export function transformFix(plan: Plan, transform: PlannedMiddleware, cache: PlannedMiddleware): string {
  if (has('redacts')(transform)) return guardInstead(transform, cache);
  const change = nestedLayers(plan, transform, cache)
    ? `Put "${transform.name}" inside "${cache.name}"`
    : `Change the text in a layer inside "${cache.name}"`;
  return `${change} if the stored text should be changed too; for safety use a guard.`;
}

// ── Who waits for people ─────────────────────────────────────────────────────────────────────────────────────

/** Does part of it run inside the run layers? Rules, guards, tools, and layers around calls do. */
function runsFurtherIn(plan: Plan, one: PlannedMiddleware): boolean {
  const { guard, tools = [] } = one.middleware;
  const asked = Object.values(plan.rules).some((hooks) => isAmong(hooks, one));
  return guard !== undefined || tools.length > 0 || asked || at(plan, one, 'model') || at(plan, one, 'tool');
}

/** Can it only ask from its tools? Rules and guards ask before the layers of a call start. */
function asksInTools(plan: Plan, one: PlannedMiddleware): boolean {
  const { guard, tools = [] } = one.middleware;
  const asksBefore = isAmong(plan.rules.beforeToolCall, one);
  return tools.length > 0 && !asksBefore && !guard?.on.includes('tool-args') && !at(plan, one, 'tool');
}

/** How to stop a timeout from running while a person is asked; undefined if it doesn't. */
export function waitFix(
  plan: Plan,
  timeout: PlannedMiddleware,
  human: PlannedMiddleware,
): string | undefined {
  const swap = `Put "${timeout.name}" inside "${human.name}"`;
  const pause = 'leave ctx.pausedMs out of its time and declare the trait "pauses"';
  const inside = timeout.position < human.position;
  if (at(plan, timeout, 'run')) {
    if (runsFurtherIn(plan, human))
      return `Use limits.timeoutMs, which does not count the time people take. Moving "${timeout.name}" does not help.`;
    if (inside) return `${swap}, or use limits.timeoutMs, which does not count the time people take.`;
  }
  if (!at(plan, timeout, 'tool')) return undefined;
  if (asksInTools(plan, human)) return `Moving "${timeout.name}" does not help: ${pause}.`;
  return inside && at(plan, human, 'tool') ? `${swap}, or ${pause}.` : undefined;
}
