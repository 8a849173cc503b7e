/** What implementations of the store port share, for the stores here and for yours. */
import { AlliumError, shown } from '../../kernel/errors.js';
import type { NewEntry } from '../../kernel/store.js';

export { AlliumError, checkKeys, invalidOption, sessionConflict, shown } from '../../kernel/errors.js';
export { checkFork, type ListQuery, listCursor, listPage, listQuery } from '../../kernel/memory-store.js';
export { deepFreeze } from '../../kernel/messages.js';
export type { Awaitable, Entry, InboxItem, ListOptions, NewEntry, SessionInfo, Store } from '../../kernel/store.js';

/**
 * Throws for ids that text columns, files and keys cannot hold: they refuse NUL and replace lone surrogates, and two
 * ids that become one would give a session to somebody else.
 */
export function checkSessionId(sessionId: string): void {
  if (typeof sessionId === 'string' && !sessionId.includes('\0') && !LONE_SURROGATE.test(sessionId)) return;
  throw new AlliumError(
    'INVALID_OPTION',
    `Expected \`sessionId\` to be well-formed text without NUL characters, got ${shown(sessionId)}.`,
    { data: { option: 'sessionId', value: sessionId } },
  );
}

const LONE_SURROGATE = /\p{Surrogate}/u;

/** What `list` needs to know of entries: a session has the tenant of its first `run_start`, with or without one. */
export function firstRun(entries: readonly NewEntry[]): { readonly tenant: string | undefined } | undefined {
  for (const entry of entries) if (entry.type === 'run_start') return { tenant: entry.tenant };
  return undefined;
}
