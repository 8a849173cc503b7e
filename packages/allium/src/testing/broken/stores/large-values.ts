/** Breaks `large-values`: cuts text after a million characters, as a column with a limit does. */
import type { Store } from '../../../kernel/store.js';
import { brokenText } from './delegate.js';

export function cuttingStore(): Store {
  return brokenText((text) => text.slice(0, 1_000_000));
}
