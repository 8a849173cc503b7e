/** Breaks `gapless-seq`: numbers entries from 0. */
import type { Store } from '../../../kernel/store.js';
import { broken, sound } from './delegate.js';

export function zeroBasedStore(): Store {
  const inner = sound();
  return broken(inner, { read: (id, from) => inner.read(id, from).map((entry) => ({ ...entry, seq: entry.seq - 1 })) });
}
