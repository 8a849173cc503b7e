/** Breaks `large-values`: cuts text after a million characters, as a column with a limit does. */
import { type Entry, memoryStore, type Store } from '../../../index.js';
import { broken, brokenText } from './delegate.js';

export function cuttingStore(): Store {
  return brokenText((text) => text.slice(0, 1_000_000));
}

/** Breaks it in another way: the text of messages has a column of its own, which holds 64 kB. */
export function shortMessageStore(): Store {
  const inner = memoryStore();
  const cut = (entry: Entry): Entry => {
    if (entry.type !== 'message') return entry;
    return JSON.parse(JSON.stringify(entry), (key, value) =>
      key === 'text' ? value.slice(0, 65_535) : value,
    );
  };
  return broken(inner, { read: (id, from) => inner.read(id, from).map(cut) });
}
