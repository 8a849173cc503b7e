/** Checks and facts about sessions, for implementations of the store port. */

import { AlliumError, type Entry, type NewEntry, sessionConflict } from '../../index.js';
import { checkValue, describeValue, invalidOption, kinds, parentSession } from '../../kit/index.js';
import { countIn, entriesIn, type WrittenEntries } from './entry-text.js';

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
  for (let at = parentSession(sessionId); at !== undefined; at = parentSession(at))
    if (at === ancestor) return true;
  return false;
}

/** The range of ids of such sessions, in the order of code units. */
export function idsBelow(sessionId: string): { readonly from: string; readonly to: string } {
  // '`' is the next character after '_'.
  return { from: `${sessionId}/r_`, to: `${sessionId}/r\`` };
}

/** The stored entries of one append: as a JSON list, or as `entriesText` writes them. The first has number `seq`. */
export function parseEntries(json: string, seq: number, sessionId: string): Entry[] {
  let entries: unknown;
  try {
    entries = listed(JSON.parse(json));
  } catch (cause) {
    throw damaged(sessionId, seq, cause);
  }
  if (!Array.isArray(entries)) throw damaged(sessionId, seq, undefined);
  // In place: copying the entries of a long session took a sixth of the time to read it.
  for (const [i, entry] of entries.entries())
    if (typeof entry === 'object' && entry !== null) entry.seq = seq + i;
    else entries[i] = { seq: seq + i };
  return entries as Entry[];
}

function listed(parsed: unknown): unknown {
  if (typeof parsed !== 'object' || parsed === null || Array.isArray(parsed)) return parsed;
  return countIn(parsed as WrittenEntries) === undefined ? undefined : entriesIn(parsed as WrittenEntries);
}

function damaged(sessionId: string, seq: number, cause: unknown): AlliumError {
  return new AlliumError(
    'SESSION_CORRUPT',
    `Entry ${seq} of session ${describeValue(sessionId)} cannot be read. Something else changed it, or it is damaged. Restore it from a backup, or delete the session.`,
    { cause, data: { sessionId, seq } },
  );
}

/** The first `run_start` of the entries. Its tenant owns the session. */
export function firstRun(entries: readonly NewEntry[]): { readonly tenant: string | undefined } | undefined {
  for (const entry of entries) if (entry.type === 'run_start') return { tenant: entry.tenant };
  return undefined;
}

/** Throws if a fork isn't possible. `head` and `newHead`: how many entries the two sessions have. */
export function checkFork(
  sessionId: string,
  seq: number,
  head: number,
  newId: string,
  newHead: number,
): void {
  if (head === 0) {
    throw new AlliumError(
      'SESSION_UNKNOWN',
      `Session ${describeValue(sessionId)} does not exist, so it cannot be forked. Check the id.`,
      {
        data: { sessionId },
      },
    );
  }
  if (!Number.isInteger(seq) || seq < 1 || seq > head)
    throw invalidOption('seq', `an entry number from 1 to ${head}`, seq);
  checkValue('newId', kinds.nonEmptyText, newId);
  if (newHead !== 0) throw sessionConflict(newId, 0, newHead);
}

/**
 * Which inbox items these entries take out, if any: those up to `cursor` except `waits`. A store deletes them together with
 * the append.
 */
export function takenBy(
  entries: readonly NewEntry[],
): { readonly cursor: number; readonly waits: readonly number[] } | undefined {
  const last = entries.findLast(({ type }) => type === 'inbox');
  return last?.type === 'inbox' ? { cursor: last.cursor, waits: last.waits ?? [] } : undefined;
}
