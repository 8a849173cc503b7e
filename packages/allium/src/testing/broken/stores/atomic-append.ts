/** Breaks `atomic-append`: writes a batch entry by entry, so one that cannot be written leaves those before it. */
import type { Store } from '../../../kernel/store.js';
import { broken, sound } from './delegate.js';

export function piecemealStore(): Store {
  const inner = sound();
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
