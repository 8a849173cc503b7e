/** What implementations of the store port share, for those who write one. */

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
} from '../../kernel/journal/store-kit.js';
export {
  AlliumError,
  checkKeys,
  invalidOption,
  nearest,
  sessionConflict,
  shown,
} from '../../kernel/lib/errors.js';
export { deepFreeze } from '../../kernel/protocol/messages.js';
export type {
  Awaitable,
  Entry,
  InboxItem,
  ListOptions,
  NewEntry,
  SessionInfo,
  Store,
} from '../../kernel/protocol/store.js';
