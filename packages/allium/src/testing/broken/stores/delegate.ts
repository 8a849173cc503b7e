/** A memory store with some of its methods replaced: what every broken store here is made from. */

import { type Entry, memoryStore, type Store } from '../../../index.js';
import type { SyncStore } from '../../../stores/kit/index.js';
export function broken(inner: SyncStore, replaced: Partial<Store>): Store {
  return {
    append: (...args) => inner.append(...args),
    read: (...args) => inner.read(...args),
    head: (...args) => inner.head(...args),
    list: (...args) => inner.list(...args),
    fork: (...args) => inner.fork(...args),
    delete: (...args) => inner.delete(...args),
    post: (...args) => inner.post(...args),
    take: (...args) => inner.take(...args),
    ...replaced,
  };
}

/** A memory store that changes the text in what it reads, as one with a lossy encoding does. */
export function brokenText(change: (text: string) => string): Store {
  const inner = memoryStore();
  const changed = (value: unknown): unknown => {
    if (typeof value === 'string') return change(value);
    if (Array.isArray(value)) return value.map(changed);
    if (typeof value !== 'object' || value === null) return value;
    return Object.fromEntries(Object.entries(value).map(([key, item]) => [change(key), changed(item)]));
  };
  return broken(inner, { read: (id, from) => inner.read(id, from).map((entry) => changed(entry) as Entry) });
}
