/** Breaks `crash`: confirms a post while it is still on its way to the disk. */
import { memoryStore, type Store } from '../../../index.js';
import type { SyncStore } from '../../../stores/kit/index.js';
import { broken } from './delegate.js';

const disks = new WeakMap<Store, SyncStore>();

export function bufferingStore(disk: SyncStore = memoryStore()): Store {
  let waiting: (() => void)[] = [];
  const flush = () => {
    for (const write of waiting.splice(0)) write();
  };
  const store = broken(disk, {
    post(id, item) {
      const kept = structuredClone(item);
      waiting.push(() => disk.post(id, kept));
    },
    take(id, after) {
      flush();
      return disk.take(id, after);
    },
    fork(id, seq, newId) {
      flush();
      disk.fork(id, seq, newId);
    },
    delete(id) {
      waiting = [];
      disk.delete(id);
    },
  });
  disks.set(store, disk);
  return store;
}

/** Another handle on the same data, opened while the first was not closed. */
export function bufferingStoreAgain(store: Store): Store {
  return bufferingStore(disks.get(store));
}
