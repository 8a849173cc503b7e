/** Finds middleware that share a name again when a run is resumed, so that run state has its owner. */

import type { Plan } from '../protocol/middleware.js';

/** Identities by name in the plan, of middleware that share a name and own run state. */
export type Twins = Readonly<Record<string, string>>;

/** Stands before the id of an object in an identity. */
export const BY_OBJECT = '@';

/** Is it identified by its object, which no other process has? */
export function isByObject(identity: string | undefined): boolean {
  return identity?.includes(BY_OBJECT) ?? false;
}

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
