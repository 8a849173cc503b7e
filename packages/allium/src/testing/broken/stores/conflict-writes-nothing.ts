/** Breaks `conflict-writes-nothing`: reports the conflict when the entries are in the journal already. */

import { memoryStore, type Store, sessionConflict } from '../../../index.js';
import { broken } from './delegate.js';

export function hastyStore(): Store {
  const inner = memoryStore();
  return broken(inner, {
    append(id, expectedSeq, entries) {
      const seq = inner.head(id);
      if (expectedSeq <= seq) inner.append(id, seq, entries);
      if (expectedSeq !== seq) throw sessionConflict(id, expectedSeq, seq);
      return seq + entries.length;
    },
  });
}
