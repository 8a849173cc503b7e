/** Distinguishes middleware that share a name, so that run state finds its owner again after a resume. */

import { isPlainObject } from '../lib/errors.js';
import { canonicalJson, hash } from '../lib/hash.js';
import { randomId } from '../lib/random-id.js';
import type { Middleware, Plan, PlannedMiddleware } from '../protocol/middleware.js';

/** Identities by name in the plan, of middleware that share a name and own run state. */
export type Twins = Readonly<Record<string, string>>;

/** Undefined if there are none. */
export function twinsOf(middleware: readonly PlannedMiddleware[]): Twins | undefined {
  const groups = new Map<string | undefined, PlannedMiddleware[]>();
  for (const one of middleware) {
    if (!ownsRunState(one.middleware)) continue;
    const { name } = one.middleware;
    groups.set(name, [...(groups.get(name) ?? []), one]);
  }
  const twins = [...groups.values()].filter((group) => group.length > 1).flatMap(identities);
  return twins.length > 0 ? Object.freeze(Object.fromEntries(twins)) : undefined;
}

/** Does it have cells that are journaled with a run? */
export function ownsRunState({ state }: Middleware): boolean {
  return state?.some(({ scope, durable }) => scope === 'run' && durable) ?? false;
}

/**
 * Options identify twins in every process; twins with the same options are interchangeable. But if some options aren't data,
 * or there are none, such twins may still differ, and only the objects themselves identify them.
 */
function identities(group: readonly PlannedMiddleware[]): [name: string, identity: string][] {
  const prints = group.map(({ middleware }) => fingerprint(middleware));
  return group.map(({ name, middleware }, i) => {
    const { text, isWhole } = prints[i]!;
    const isUnique = prints.filter((other) => other.text === text).length === 1;
    return [name, isUnique || isWhole ? text : `${text}${BY_OBJECT}${objectId(middleware)}`];
  });
}

const BY_OBJECT = '@';

/** Is it identified by its object, which no other process has? */
export function isByObject(identity: string | undefined): boolean {
  return identity?.includes(BY_OBJECT) ?? false;
}

const objectIds = new WeakMap<Middleware, string>();

function objectId(middleware: Middleware): string {
  let id = objectIds.get(middleware);
  if (id === undefined) {
    id = randomId();
    objectIds.set(middleware, id);
  }
  return id;
}

interface Fingerprint {
  readonly text: string;
  /** Two with this text are interchangeable. */
  readonly isWhole: boolean;
}

function fingerprint({ madeWith, state = [] }: Middleware): Fingerprint {
  const { data, isWhole } = optionsData(madeWith);
  const cells = state.filter(({ scope }) => scope === 'run').map(({ name }) => name);
  return { text: hash(canonicalJson([data ?? null, cells.sort()])), isWhole };
}

/** Options as JSON. Values that aren't data are replaced by a mark, such as `[function]`. */
export function optionsData(options: unknown): { readonly data: unknown; readonly isWhole: boolean } {
  let isWhole = options !== undefined;
  const mark = (what: string): string => {
    isWhole = false;
    return `[${what}]`;
  };
  const dataOf = (value: unknown, depth: number): unknown => {
    if (typeof value === 'number') return Number.isFinite(value) ? value : String(value);
    if (typeof value === 'bigint' || value instanceof RegExp) return String(value);
    if (typeof value === 'symbol') return mark(value.description ?? 'symbol');
    if (typeof value === 'function') return mark('function');
    if (typeof value !== 'object' || value === null) return value;
    if (depth > DEEPEST) return mark('more');
    if (Array.isArray(value)) return value.map((item) => dataOf(item, depth + 1));
    if (!isPlainObject(value)) return mark(value.constructor?.name || 'object');
    return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, dataOf(item, depth + 1)]));
  };
  const data = options === undefined ? undefined : dataOf(options, 0);
  return { data, isWhole };
}

/** How many levels of options to include. Deeper ones are usually foreign objects. */
const DEEPEST = 8;

export interface Recognised {
  /** The names that the middleware of the plan have in the run, in order. */
  readonly names: readonly string[];
  /** Names in the run that no middleware has now. */
  readonly lost: readonly string[];
}

/** Finds the twins that a run started with in a plan. Each keeps its name, wherever it stands now. */
export function recognise(before: Twins, { middleware, names, twins: now = {} }: Plan): Recognised {
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
