/** What middleware and tools put into events: who tells it and who is told share nothing that changes later. */
import { isPlain } from './json-copy.js';

/**
 * A copy of plain objects and lists, all the way down. Instances of classes are shared: only their makers know how to
 * copy them. So is what is frozen, unless something in it is not.
 */
export function eventData<T>(value: T, copies: Map<object, unknown> = new Map()): T {
  if (typeof value !== 'object' || value === null) return value;
  if (!Array.isArray(value) && !isPlain(value)) return value;
  const made = copies.get(value);
  if (made !== undefined) return made as T;
  const copy = (Array.isArray(value) ? [...value] : { ...value }) as Record<string, unknown>;
  copies.set(value, copy);
  let isShared = Object.isFrozen(value);
  for (const key in copy) {
    const item = copy[key];
    copy[key] = eventData(item, copies);
    if (copy[key] !== item) isShared = false;
  }
  return isShared ? value : (copy as T);
}
