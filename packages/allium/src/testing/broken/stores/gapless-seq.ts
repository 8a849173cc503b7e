/** Breaks `gapless-seq`: numbers entries from 0. */
import { memoryStore } from '../../../kernel/memory-store.js';
import type { Store } from '../../../kernel/store.js';
import { broken } from './delegate.js';

export function zeroBasedStore(): Store {
  const inner = memoryStore();
  return broken(inner, {
    read: (id, from) => inner.read(id, from).map((entry) => ({ ...entry, seq: entry.seq - 1 })),
  });
}
