/** What `allium/stores/kit` has for authors of stores. */
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
  pathFailed as pathError,
  type SyncStore,
  takenBy,
} from '../kernel/journal/store-kit.js';
