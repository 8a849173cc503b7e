/** Breaks `order`: the second half of a journal comes back before the first, numbered as if nothing had happened. */
import { type Entry, memoryStore, type Store } from '../../../index.js';
import { broken } from './delegate.js';

export function disorderlyStore(): Store {
  const inner = memoryStore();
  return broken(inner, {
    read(id, from) {
      const entries = inner.read(id, from);
      // Six entries or more, like a store that fetches pages at once and joins them as they arrive.
      if (entries.length < 6 || entries.length > 100) return entries;
      const turned = [...entries.slice(3), ...entries.slice(0, 3)];
      return turned.map((entry, i) => ({ ...entry, seq: entries[i]!.seq }));
    },
  });
}

/** Breaks it in another way: it sorts by time, though two processes write whose clocks do not agree. */
export function timeSortingStore(): Store {
  const inner = memoryStore();
  return broken(inner, { read: (id, from) => [...inner.read(id, from)].sort((a, b) => a.at - b.at) });
}

/** Breaks it in another way: it sorts by number as if that were text, so that 10 stands before 2. */
export function textSortingStore(): Store {
  const inner = memoryStore();
  const byText = (a: Entry, b: Entry) => (`${a.seq}` < `${b.seq}` ? -1 : 1);
  return broken(inner, { read: (id, from) => [...inner.read(id, from)].sort(byText) });
}
