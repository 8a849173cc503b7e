/** Breaks `fork-isolation`: a fork goes when its source is deleted. */
import { memoryStore, type Store } from '../../../index.js';
import { broken } from './delegate.js';

export function dependentForkStore(): Store {
  const inner = memoryStore();
  const forks = new Map<string, string>();
  return broken(inner, {
    fork(id, seq, newId) {
      inner.fork(id, seq, newId);
      forks.set(id, newId);
    },
    delete(id) {
      inner.delete(id);
      inner.delete(forks.get(id) ?? id);
    },
  });
}
