/** Breaks `one-winner`: looks at the head, waits, and then writes without looking again. */

import { memoryStore, type Store, sessionConflict } from '../../../index.js';
import { broken } from './delegate.js';

export function lateStore(): Store {
  const inner = memoryStore();
  return broken(inner, {
    async append(id, expectedSeq, entries) {
      const seq = inner.head(id);
      if (seq !== expectedSeq) throw sessionConflict(id, expectedSeq, seq);
      await new Promise((resolve) => setImmediate(resolve));
      return inner.append(id, inner.head(id), entries);
    },
  });
}
