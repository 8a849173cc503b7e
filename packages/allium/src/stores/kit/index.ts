/** What implementations of the store port share, for those who write one. */
export {
  AlliumError,
  checkKeys,
  invalidOption,
  nearest,
  sessionConflict,
  shown,
} from '../../kernel/errors.js';
export { deepFreeze } from '../../kernel/messages.js';
export type {
  Awaitable,
  Entry,
  InboxItem,
  ListOptions,
  NewEntry,
  SessionInfo,
  Store,
} from '../../kernel/store.js';
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
  pathFailed,
  type SyncStore,
  takenBy,
} from '../../kernel/store-kit.js';
