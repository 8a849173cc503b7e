/** Break `tail`: one returns the last entry of a snapshot again, one keeps the snapshot of a deleted session. */
import { memoryStore, type Snapshot, type Store } from '../../../index.js';
import { broken } from './delegate.js';

export function overlappingTailStore(): Store {
  const inner = memoryStore();
  return broken(inner, {
    tail(id) {
      const { snapshot } = inner.tail!(id);
      return snapshot ? { snapshot, entries: inner.read(id, snapshot.seq) } : { entries: inner.read(id, 1) };
    },
  });
}

export function snapshotKeepingStore(): Store {
  const inner = memoryStore();
  const snapshots = new Map<string, Snapshot>();
  return broken(inner, {
    append(id, seq, entries, snapshot) {
      const last = inner.append(id, seq, entries);
      if (snapshot && snapshot.seq <= last) snapshots.set(id, snapshot);
      return last;
    },
    tail(id) {
      const snapshot = snapshots.get(id);
      return snapshot
        ? { snapshot, entries: inner.read(id, snapshot.seq + 1) }
        : { entries: inner.read(id, 1) };
    },
  });
}
