/** Breaks `values`: leaves out properties that are null. */
import { type Entry, memoryStore, type NewEntry, type Store } from '../../../index.js';
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

/** Breaks it in another way: it has columns for the fields it was made for, and none for later ones. */
export function columnsStore(): Store {
  return rewriting((entry) => {
    if (entry.type !== 'run_start') return entry;
    const { parent: _parent, limits: _limits, metadata: _metadata, ...rest } = entry;
    return rest;
  });
}

/** Likewise for items of the inbox. */
export function inboxColumnsStore(): Store {
  const inner = memoryStore();
  return broken(inner, {
    post(id, item) {
      if (item.type !== 'answer') return inner.post(id, item);
      const { at: _, ...rest } = item;
      inner.post(id, rest);
    },
  });
}

/** Breaks it in another way: its column for the time has 32 bits. */
export function narrowTimeStore(): Store {
  return rewriting((entry) => ({ ...entry, at: entry.at | 0 }));
}

/** Breaks it in another way: it takes every entry for one of the first version. */
export function versionlessStore(): Store {
  return rewriting((entry) => ({ ...entry, v: 1 }));
}

function rewriting(rewrite: (entry: NewEntry) => NewEntry): Store {
  const inner = memoryStore();
  return broken(inner, {
    append: (id, expectedSeq, entries) => inner.append(id, expectedSeq, entries.map(rewrite)),
  });
}
