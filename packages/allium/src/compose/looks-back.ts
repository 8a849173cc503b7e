/** How far back the code of a plan looks, and who makes a run read a long session whole. */

import type { Middleware, Plan, PlannedMiddleware } from '../kernel/protocol/middleware.js';
import { HOOKS } from './check-middleware.js';

/** How many messages from before the run are looked at; infinite if all of them may be. */
export function looksBack(middleware: readonly PlannedMiddleware[], rules: Plan['rules']): number {
  if (ofAgent(rules)) return Number.POSITIVE_INFINITY;
  return Math.max(0, ...middleware.map((one) => reach(one.middleware)));
}

/** Code that doesn't say how far it looks back may look at everything. */
function reach(one: Middleware): number {
  const acts = one.guard !== undefined || HOOKS.some((hook) => hook in one);
  return one.looksBack ?? (acts && !one.enoughHistory ? Number.POSITIVE_INFINITY : 0);
}

/** Does the agent have hooks of its own? They can't say how far they look back. */
function ofAgent(rules: Plan['rules']): boolean {
  return Object.values(rules).some(([first]) => first?.position === -1);
}

/** Who leaves older messages out of requests, and who makes a run read them all the same, by name. */
export function longSessions({ middleware, rules }: Plan): {
  readonly shortenedBy: readonly string[];
  readonly readWholeFor: readonly string[];
} {
  const whole = middleware.filter(
    ({ middleware: one }) => one.traces || reach(one) === Number.POSITIVE_INFINITY,
  );
  return {
    shortenedBy: middleware.filter((one) => one.middleware.enoughHistory).map(({ name }) => name),
    readWholeFor: [...whole.map(({ name }) => name), ...(ofAgent(rules) ? ['the hooks of the agent'] : [])],
  };
}
