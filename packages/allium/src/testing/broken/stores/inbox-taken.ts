/** Breaks `inbox-taken`: what an entry took over stays in the inbox, for whoever reads the disk. */
import { type Entry, memoryStore, type NewEntry, type Store } from '../../../index.js';
import { broken } from './delegate.js';

export function hoardingInboxStore(): Store {
  const inner = memoryStore();
  const renamed = <E extends NewEntry>(entry: E, from: string, to: string): E =>
    entry.type === from ? { ...entry, type: to } : entry;
  return broken(inner, {
    append: (id, seq, entries) =>
      inner.append(
        id,
        seq,
        entries.map((entry) => renamed(entry, 'inbox', 'kept')),
      ),
    read: (id, from) => inner.read(id, from).map((entry): Entry => renamed(entry, 'kept', 'inbox')),
  });
}
