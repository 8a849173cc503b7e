/** The plan of a run that is resumed: its state goes to the middleware it belongs to, or the resume is refused. */

import type { OpenRun } from '../kernel/journal/journaled-run.js';
import type { ComposedPlan } from '../kernel/layers/onion.js';
import { AlliumError } from '../kernel/lib/errors.js';
import type { Plan } from '../kernel/protocol/middleware.js';
import { isByObject, type Twins } from './twins.js';

/**
 * The plan to resume a run with: its middleware have the names that its state is stored under. Throws unless every
 * owner of state is there.
 */
export function resumedPlan(
  open: OpenRun,
  plan: ComposedPlan,
  allowed: boolean | undefined,
  withNames: (names: readonly string[]) => ComposedPlan,
): ComposedPlan {
  const missing = open.plan.filter((name) => !plan.names.includes(name));
  if (missing.length > 0 && !allowed) throw planMismatch(open.runId, missing);
  const { names, lost } = open.twins ? recognise(open.twins, plan) : { names: plan.names, lost: [] };
  const moved = lost.length === 0 && names.some((name, i) => name !== plan.names[i]);
  const named = moved ? withNames(names) : plan;
  if (allowed) return named;
  const unclear = ambiguous(open, named);
  if (unclear.length > 0)
    throw planAmbiguous(open.runId, unclear, 'the list has a different number of them, or another order');
  if (lost.length === 0) return named;
  const byObject = lost.some((name) => isByObject(open.twins?.[name]));
  throw planAmbiguous(
    open.runId,
    lost,
    byObject ? NOTHING_TELLS : 'none of that name has the options it had',
  );
}

const NOTHING_TELLS =
  'they share one name, have no options that tell them apart, and the run was started by another process or agent';

/**
 * Names of middleware whose run state might go to another one of the same name now. There have to be as many of a
 * name as before, and one without a name has to be in its old place. State that its new owner doesn't declare has
 * gone to the wrong one.
 */
function ambiguous(
  { plan: before, cells }: OpenRun,
  { middleware, cells: declared }: Plan,
): readonly string[] {
  const keys = new Set(declared.values());
  const twins = middleware.filter(({ middleware: { name } }) => isShared(middleware, name));
  const found = [...(cells?.keys() ?? [])]
    .filter((key) => !keys.has(key))
    .map((key) => key.slice(0, key.indexOf(':')))
    .filter((owner) => UNNAMED.test(owner) || twins.some(({ name }) => name === owner));
  for (const { name, middleware: one } of middleware) {
    // The first of several has the plain name.
    if (one.name !== name || !one.state?.some(({ scope }) => scope === 'run')) continue;
    const now = middleware.filter((other) => other.middleware.name === name).length;
    const then = before.filter((other) => other === name || other.startsWith(`${name}#`)).length;
    if (then > 0 && then !== now) found.push(name);
  }
  return [...new Set(found)];
}

function isShared(middleware: Plan['middleware'], name: string | undefined): boolean {
  return middleware.filter((one) => one.middleware.name === name).length > 1;
}

/** The name of a middleware that has none. */
const UNNAMED = /^middleware-\d+(:|$)/;

function planAmbiguous(runId: string, names: readonly string[], why: string): AlliumError {
  const which = names.map((name) => `"${name}"`).join(', ');
  return new AlliumError(
    'PLAN_MISMATCH',
    `Run "${runId}" has state of ${which}, but it is not clear which middleware that belongs to now: ${why}. Give each instance its own \`name\`, and keep the name that the run knows; or resume with allowPlanChange: true.`,
  );
}

function planMismatch(runId: string, missing: readonly string[]): AlliumError {
  const names = missing.map((name) => `"${name}"`).join(', ');
  const unnamed = missing.some((name) => UNNAMED.test(name));
  const place = unnamed ? ' One without a `name` is known by its place in the list.' : '';
  return new AlliumError(
    'PLAN_MISMATCH',
    `Run "${runId}" was started with ${names}, which is missing now.${place} Add it to the agent, or to resume({ middleware }) if it came with the run; or resume with allowPlanChange: true.`,
  );
}

// ── Middleware that share a name ─────────────────────────────────────────────────────────────────────────────

interface Recognised {
  /** The names that the middleware of the plan have in the run, in order. */
  readonly names: readonly string[];
  /** Names in the run that no middleware has now. */
  readonly lost: readonly string[];
}

/** Finds the twins that a run started with in a plan. Each keeps its name, wherever it stands now. */
function recognise(before: Twins, { middleware, names, twins: now = {} }: Plan): Recognised {
  const found = [...names];
  const lost: string[] = [];
  for (const kind of new Set(middleware.map((one) => one.middleware.name))) {
    const free = middleware.filter((one) => one.middleware.name === kind);
    if (kind === undefined) {
      // Without a name it is identified by its position, where it must be the same.
      lost.push(
        ...free.map(({ name }) => name).filter((name) => name in before && before[name] !== now[name]),
      );
      continue;
    }
    const called = names.filter((name) => free.some((one) => one.name === name));
    for (const name of called.filter((one) => one in before)) {
      const same = free.filter((one) => now[one.name] === before[name]);
      const owner = same.find((one) => one.name === name) ?? same[0];
      if (!owner) lost.push(name);
      else {
        found[owner.position] = name;
        free.splice(free.indexOf(owner), 1);
        called.splice(called.indexOf(name), 1);
      }
    }
    for (const [i, { position }] of free.entries()) found[position] = called[i]!;
  }
  return { names: found, lost };
}
