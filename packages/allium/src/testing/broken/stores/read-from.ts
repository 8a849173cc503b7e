/** Breaks `read-from`: in the middle of a batch it begins with the next one. */
import { memoryStore, type Store } from '../../../index.js';
import { broken } from './delegate.js';

export function batchReadingStore(): Store {
  const inner = memoryStore();
  const starts = new Map<string, number[]>();
  return broken(inner, {
    append(id, expectedSeq, entries) {
      const seq = inner.append(id, expectedSeq, entries);
      starts.set(id, [...(starts.get(id) ?? []), expectedSeq + 1]);
      return seq;
    },
    read(id, from) {
      const start = starts.get(id)?.find((first) => first >= from);
      return inner.read(id, from > 3 ? (start ?? from + 1) : from);
    },
  });
}
