/** Checks the `order` of middleware. Nothing is re-sorted. */

import { AlliumError } from '../kernel/lib/errors.js';
import type { PlannedMiddleware } from '../kernel/protocol/middleware.js';

/** `by` declares that `outer` must stand before `inner` in the list. */
interface Constraint {
  readonly outer: PlannedMiddleware;
  readonly inner: PlannedMiddleware;
  readonly by: PlannedMiddleware;
}

export function checkOrder(list: readonly PlannedMiddleware[]): void {
  const constraints = list.flatMap((one) => constraintsOf(one, list));
  for (const constraint of constraints) {
    if (constraint.outer.position > constraint.inner.position) throw misplaced(constraint, constraints);
  }
}

function constraintsOf(one: PlannedMiddleware, list: readonly PlannedMiddleware[]): Constraint[] {
  const of = (name: string) =>
    list.filter((other) => other !== one && (other.middleware.name === name || other.name === name));
  const { outside = [], inside = [], requires = [] } = one.middleware.order ?? {};
  const missing = requires.find((name) => of(name).length === 0);
  if (missing !== undefined) {
    throw new AlliumError(
      'REQUIRED_MIDDLEWARE_MISSING',
      `"${one.name}" requires "${missing}", which is not in the list. Add it, or remove "${one.name}".`,
    );
  }
  return [
    ...outside.flatMap(of).map((inner) => ({ outer: one, inner, by: one })),
    ...inside.flatMap(of).map((outer) => ({ outer, inner: one, by: one })),
  ];
}

function misplaced(broken: Constraint, all: readonly Constraint[]): AlliumError {
  const { outer, inner } = broken;
  const back = chain(inner, outer, all, new Set());
  if (back) {
    const why = [broken, ...back].map(said).join(', ');
    return new AlliumError(
      'ORDER_IMPOSSIBLE',
      `${why}. No order satisfies all of this: remove one of the constraints or one of the middleware.`,
    );
  }
  const { position } = broken.by;
  const other = broken.by === outer ? inner : outer;
  return new AlliumError(
    'ORDER_IMPOSSIBLE',
    `${said(broken)}, but is at place ${position + 1} with "${other.name}" at ${other.position + 1}. Put "${outer.name}" before "${inner.name}" in the list.`,
  );
}

/** Constraints that together put `from` before `to`. */
function chain(
  from: PlannedMiddleware,
  to: PlannedMiddleware,
  all: readonly Constraint[],
  seen: Set<PlannedMiddleware>,
): Constraint[] | undefined {
  seen.add(from);
  for (const one of all) {
    if (one.outer !== from || seen.has(one.inner)) continue;
    const rest = one.inner === to ? [] : chain(one.inner, to, all, seen);
    if (rest) return [one, ...rest];
  }
  return undefined;
}

function said({ outer, inner, by }: Constraint): string {
  return by === outer
    ? `"${outer.name}" must stand outside "${inner.name}"`
    : `"${inner.name}" must stand inside "${outer.name}"`;
}
