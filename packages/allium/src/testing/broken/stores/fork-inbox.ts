/** Breaks `fork-inbox`: the inbox of a fork counts from 1, though its journal says that more were taken. */
import { memoryStore, type Store } from '../../../index.js';
import { broken } from './delegate.js';

export function recountingForkStore(): Store {
  const inner = memoryStore();
  return broken(inner, {
    fork(id, seq, newId) {
      const copied = inner.read(id, 1).slice(0, seq);
      // Made by the sound store first, for the errors of a fork that cannot be made.
      inner.fork(id, seq, newId);
      inner.delete(newId);
      inner.append(
        newId,
        0,
        copied.map(({ seq: _, ...entry }) => entry),
      );
    },
  });
}

/** Breaks it in another way: items that were posted to the source are in the inbox of the fork as well. */
export function mailCopyingForkStore(): Store {
  const inner = memoryStore();
  const copied = new Map<string, ReturnType<typeof inner.take>>();
  return broken(inner, {
    fork(id, seq, newId) {
      inner.fork(id, seq, newId);
      copied.set(newId, inner.take(id, 0));
    },
    take: (id, after) => [...(copied.get(id) ?? []).filter(({ n }) => n > after), ...inner.take(id, after)],
  });
}
