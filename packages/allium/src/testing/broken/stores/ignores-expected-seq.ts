/** Ignores `expectedSeq` altogether, and so breaks every law that stands on it. */
import type { Store } from '../../../kernel/store.js';
import { broken, sound } from './delegate.js';

export function carelessStore(): Store {
  const inner = sound();
  return broken(inner, { append: (id, _, entries) => inner.append(id, inner.head(id), entries) });
}
