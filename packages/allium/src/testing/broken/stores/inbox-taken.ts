/** Breaks `inbox-taken`: items that an entry took stay in the inbox, where anybody who reads the disk finds them. */
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
