/** Distinguishes middleware that share a name, so that run state finds its owner again after a resume. */

import { isPlainObject } from '../kernel/lib/errors.js';
import { canonicalJson, hash } from '../kernel/lib/hash.js';
import { randomId } from '../kernel/lib/random-id.js';
import type { Middleware, PlannedMiddleware } from '../kernel/protocol/middleware.js';

/** Identities by name in the plan, of middleware that share a name and own run state. */
export type Twins = Readonly<Record<string, string>>;

/** Stands before the id of an object in an identity. */
const BY_OBJECT = '@';

/** Is it identified by its object, which no other process has? */
export function isByObject(identity: string | undefined): boolean {
  return identity?.includes(BY_OBJECT) ?? false;
}

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
