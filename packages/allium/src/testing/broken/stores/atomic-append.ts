/** Breaks `atomic-append`: it writes a batch entry by entry, so one that can't be written leaves those before it. */
import { memoryStore, type Store } from '../../../index.js';
import { broken } from './delegate.js';

export function piecemealStore(): Store {
  const inner = memoryStore();
  return broken(inner, {
    append(id, expectedSeq, entries) {
      let seq = inner.append(id, expectedSeq, []);
      for (const entry of entries) {
        JSON.stringify(entry);
        seq = inner.append(id, seq, [entry]);
      }
      return seq;
    },
  });
}
