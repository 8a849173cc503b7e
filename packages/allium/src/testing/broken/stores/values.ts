/** Breaks `values`: leaves out properties that are null. */
import { memoryStore } from '../../../kernel/memory-store.js';
import type { Entry, Store } from '../../../kernel/store.js';
import { broken } from './delegate.js';

export function nullDroppingStore(): Store {
  const inner = memoryStore();
  return broken(inner, {
    read: (id, from) => inner.read(id, from).map((entry) => withoutNull(entry) as Entry),
  });
}

function withoutNull(value: unknown): unknown {
  if (typeof value !== 'object' || value === null) return value;
  if (Array.isArray(value)) return value.map(withoutNull);
  const kept = Object.entries(value).filter(([, item]) => item !== null);
  return Object.fromEntries(kept.map(([key, item]) => [key, withoutNull(item)]));
}
