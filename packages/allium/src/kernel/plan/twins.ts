/** Tells middleware of one name apart, so that the state of a run finds its owner again after a resume. */

import { isPlain } from '../lib/frozen-json.js';
import { canonical, hash } from '../lib/hash.js';
import { randomId } from '../lib/random-id.js';
import type { Middleware, Plan, PlannedMiddleware } from '../protocol/middleware.js';

/** Who each of them is, by its name in the plan. Only middleware that share a name and own state of runs are in it. */
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

/** It has cells that are journaled with a run. */
export function ownsRunState({ state }: Middleware): boolean {
  return state?.some(({ scope, durable }) => scope === 'run' && durable) ?? false;
}

/**
 * Options tell twins apart in every process. Those with the same options are the same to a run. But where the options
 * are not all data, or there are none, such twins may still differ, and only the objects themselves tell which is which.
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

/** Is it known by its object alone, which no other process has? */
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
  /** Two with this text are the same. */
  readonly isWhole: boolean;
}

function fingerprint({ madeWith, state = [] }: Middleware): Fingerprint {
  const { data, isWhole } = optionsData(madeWith);
  const cells = state.filter(({ scope }) => scope === 'run').map(({ name }) => name);
  return { text: hash(canonical([data ?? null, cells.sort()])), isWhole };
}

/** Options as JSON. What only code can make stands there as a mark, such as `[function]`. */
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
    if (!isPlain(value)) return mark(value.constructor?.name || 'object');
    return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, dataOf(item, depth + 1)]));
  };
  const data = options === undefined ? undefined : dataOf(options, 0);
  return { data, isWhole };
}

/** Levels of options that are looked at. Deeper ones are parts of objects that belong to somebody else. */
const DEEPEST = 8;

export interface Recognised {
  /** What the middleware of the plan are called in the run, in their order. */
  readonly names: readonly string[];
  /** Names in the run that nobody has now. */
  readonly lost: readonly string[];
}

/** Finds the twins a run was begun with among those of a plan: each has the name it had then, wherever it stands now. */
export function recognise(before: Twins, { middleware, names, twins: now = {} }: Plan): Recognised {
  const found = [...names];
  const lost: string[] = [];
  for (const kind of new Set(middleware.map((one) => one.middleware.name))) {
    const free = middleware.filter((one) => one.middleware.name === kind);
    if (kind === undefined) {
      // One without a name is known by its place, where it has to be the same.
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
