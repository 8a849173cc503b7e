/** What middleware and tools put into events: who tells it and who is told share nothing that changes later. */
import { isFrozenJson, isPlain } from './json-copy.js';

/**
 * A copy of plain objects and lists, all the way down. Instances of classes are shared: only their makers know how to
 * copy them. So is JSON that nobody can change.
 */
export function eventData<T>(value: T): T {
  return isFrozenJson(value) ? value : copyOf(value);
}

/** Such a copy in any case, to be changed at will. */
export function copyOf<T>(value: T): T {
  return copied(value, new Map());
}

function copied<T>(value: T, copies: Map<object, unknown>): T {
  if (typeof value !== 'object' || value === null) return value;
  if (!Array.isArray(value) && !isPlain(value)) return value;
  const made = copies.get(value);
  if (made !== undefined) return made as T;
  const copy = (Array.isArray(value) ? [...value] : { ...value }) as Record<string, unknown>;
  copies.set(value, copy);
  for (const key in copy) copy[key] = copied(copy[key], copies);
  return copy as T;
}
