/** Ignores `expectedSeq` altogether, and so breaks every law that stands on it. */
import { memoryStore, type Store } from '../../../index.js';
import { broken } from './delegate.js';

export function carelessStore(): Store {
  const inner = memoryStore();
  return broken(inner, { append: (id, _, entries) => inner.append(id, inner.head(id), entries) });
}
