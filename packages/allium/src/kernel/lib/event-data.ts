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
  const copies = new Map<object, unknown>();
  const made: Record<string, unknown>[] = [];
  const copied = (item: unknown): unknown => {
    if (typeof item !== 'object' || item === null) return item;
    if (!Array.isArray(item) && !isPlain(item)) return item;
    const known = copies.get(item);
    if (known !== undefined) return known;
    const copy = (Array.isArray(item) ? [...item] : { ...item }) as Record<string, unknown>;
    copies.set(item, copy);
    made.push(copy);
    return copy;
  };
  const copy = copied(value);
  // The list grows while it is gone through: no recursion, however deep the value is.
  for (const one of made) for (const key in one) one[key] = copied(one[key]);
  return copy as T;
}
