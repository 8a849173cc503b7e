/** What middleware and tools put into events: who tells it and who is told share nothing that changes later. */
import { isPlain } from './json-copy.js';

/**
 * A copy of plain objects and lists, all the way down. What is frozen is shared, and so are instances of classes: only
 * their makers know how to copy them.
 */
export function eventData<T>(value: T, copies: Map<object, unknown> = new Map()): T {
  if (typeof value !== 'object' || value === null || Object.isFrozen(value)) return value;
  if (!Array.isArray(value) && !isPlain(value)) return value;
  const made = copies.get(value);
  if (made !== undefined) return made as T;
  const copy = (Array.isArray(value) ? [...value] : { ...value }) as Record<string, unknown>;
  copies.set(value, copy);
  for (const key in copy) copy[key] = eventData(copy[key], copies);
  return copy as T;
}
