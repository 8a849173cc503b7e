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
  parentSession as parentOf,
  pathError,
} from '../../kit/index.js';
export { countIn, entriesIn, entriesText, type WrittenEntries } from './entry-text.js';
export { type ListQuery, listCursor, listPage, listQuery } from './listing.js';
export { endMoment, Looks, moment } from './moments.js';
export { Newest } from './newest.js';
export { type PruneOptions, prunable, pruneSession } from './prune.js';
export {
  checkFork,
  checkStorable,
  firstRun,
  idsBelow,
  isBelow,
  parseEntries,
  takenBy,
} from './sessions.js';
export type { SyncStore } from './sync-store.js';
