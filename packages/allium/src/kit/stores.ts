/** What `allium/stores/kit` has for authors of stores. */

import { AlliumError, invalidOption, shown } from '../kernel/lib/errors.js';
import type { Entry } from '../kernel/protocol/store.js';
import { parentOf } from '../kernel/store/store-kit.js';

export {
  checkFork,
  firstRun,
  type ListQuery,
  listCursor,
  listPage,
  listQuery,
  parentOf,
  type SyncStore,
  takenBy,
} from '../kernel/store/store-kit.js';
export { pathError } from './path-error.js';

/**
 * Throws for text that columns, file names and keys can't hold. They refuse NUL and replace lone surrogates, and if
 * two ids or tenants became the same, somebody would get a session that isn't theirs.
 */
export function checkStorable(option: 'sessionId' | 'tenant', value: string): void {
  if (typeof value === 'string' && !value.includes('\0') && !LONE_SURROGATE.test(value)) return;
  throw invalidOption(option, 'well-formed text without NUL characters', value);
}

const LONE_SURROGATE = /\p{Surrogate}/u;

/** Is it the session of a sub-agent of the other one, or of a sub-agent of that? */
export function isBelow(sessionId: string, ancestor: string): boolean {
  for (let at = parentOf(sessionId); at !== undefined; at = parentOf(at)) if (at === ancestor) return true;
  return false;
}

/** The range of ids of such sessions, in the order of code units. */
export function idsBelow(sessionId: string): { readonly from: string; readonly to: string } {
  // '`' is the next character after '_'.
  return { from: `${sessionId}/r_`, to: `${sessionId}/r\`` };
}

/** The stored entries of one append. The first has number `seq`. */
export function parseEntries(json: string, seq: number, sessionId: string): Entry[] {
  let entries: unknown;
  try {
    entries = JSON.parse(json);
  } catch (cause) {
    throw damaged(sessionId, seq, cause);
  }
  if (!Array.isArray(entries)) throw damaged(sessionId, seq, undefined);
  return entries.map((entry, i) => ({ ...entry, seq: seq + i }) as Entry);
}

function damaged(sessionId: string, seq: number, cause: unknown): AlliumError {
  return new AlliumError(
    'SESSION_CORRUPT',
    `Entry ${seq} of session ${shown(sessionId)} cannot be read. Something else changed it, or it is damaged. Restore it from a backup, or delete the session.`,
    { cause, data: { sessionId, seq } },
  );
}
