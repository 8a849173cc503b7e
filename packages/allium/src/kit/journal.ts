/** Journals: what the entries of a session come to. */

import { upgradeEntries } from '../kernel/journal/entry-upgrade.js';
import { applyEntry } from '../kernel/journal/read-session.js';
import { SessionState } from '../kernel/journal/session-state.js';
import type { Message } from '../kernel/messages/messages.js';
import type { Entry } from '../kernel/protocol/store.js';

export { parentOf as parentSession } from '../kernel/protocol/store.js';

/** Entries that a store returned, in today's format. Throws `SESSION_CORRUPT` for one that nobody can read. */
export function currentEntries(sessionId: string, entries: readonly Entry[]): readonly Entry[] {
  return upgradeEntries(sessionId, entries);
}

/** The messages of a session at the end of a run, from all of its entries. */
export function historyUpTo(sessionId: string, entries: readonly Entry[], runId: string): readonly Message[] {
  const state = new SessionState(sessionId);
  for (const entry of currentEntries(sessionId, entries)) {
    applyEntry(state, entry);
    if (entry.type === 'run_end' && entry.runId === runId) break;
  }
  return state.history.all();
}
