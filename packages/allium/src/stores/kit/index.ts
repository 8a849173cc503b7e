/** What implementations of the store port share, for those who write one. */

export {
  AlliumError,
  type Awaitable,
  type Entry,
  type InboxItem,
  type ListOptions,
  type NewEntry,
  type SessionInfo,
  type Snapshot,
  type Store,
  sessionConflict,
  type Tail,
} from '../../index.js';
export {
  checkKeys,
  closestName,
  deepFreeze,
  describeValue,
  invalidOption,
  makeFolder,
} from '../../kit/index.js';
export {
  checkFork,
  checkStorable,
  firstRun,
  idsBelow,
  isBelow,
  type ListQuery,
  listCursor,
  listPage,
  listQuery,
  parentOf,
  parseEntries,
  pathError,
  type SyncStore,
  takenBy,
} from '../../kit/stores.js';
export { endMoment, Looks, moment } from './moments.js';
export { type PruneOptions, prunable, pruneSession } from './prune.js';
