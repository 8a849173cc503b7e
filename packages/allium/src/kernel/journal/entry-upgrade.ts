/** Upgrades entries of older journals, one step per version. */

import { AlliumError, isRecord, shown } from '../lib/errors.js';
import { ENTRY_VERSION, type Entry } from '../protocol/store.js';
import { checkEntry } from './entry-checks.js';

/** An entry of any version, of which only these fields are certain. */
export interface StoredEntry {
  readonly v: number;
  readonly seq: number;
  readonly [field: string]: unknown;
}

/**
 * `STEPS[n]` turns an entry of version `n` into one of version `n + 1`; it sets `v` itself and keeps `seq` and `at`.
 * If you raise `ENTRY_VERSION`, add a step here and keep the fixtures of the old version.
 */
const STEPS: Readonly<Record<number, (entry: StoredEntry) => StoredEntry>> = {
  // Version 2 adds `rewind` entries, which a reader of version 1 must not overlook.
  1: (entry) => ({ ...entry, v: 2 }),
};

/**
 * Entries from a store, in the current version. Only this file knows about versions. Throws `SESSION_CORRUPT` for an entry
 * that can't be upgraded.
 */
export function upgradeEntries(
  sessionId: string,
  entries: readonly StoredEntry[],
  steps: Readonly<Record<number, (entry: StoredEntry) => StoredEntry>> = STEPS,
  current: number = ENTRY_VERSION,
): readonly Entry[] {
  // Usually all entries are current.
  const old = entries.some((entry) => entry?.v !== current);
  const all = old ? entries.map((entry) => upgrade(sessionId, entry, steps, current)) : entries;
  for (let i = 0; i < all.length; i++) checkEntry(all[i], sessionId);
  return all as unknown as readonly Entry[];
}

function upgrade(
  sessionId: string,
  entry: StoredEntry,
  steps: Readonly<Record<number, (entry: StoredEntry) => StoredEntry>>,
  current: number,
): StoredEntry {
  if (!isRecord(entry)) checkEntry(entry, sessionId);
  let upgraded = entry;
  while (upgraded.v !== current) {
    const step = steps[upgraded.v];
    if (step === undefined) throw unreadable(sessionId, entry, current);
    const next = step(upgraded);
    if (next.v !== upgraded.v + 1) throw unreadable(sessionId, entry, current);
    upgraded = next;
  }
  return upgraded === entry ? entry : Object.freeze(upgraded);
}

function unreadable(sessionId: string, { v, seq }: StoredEntry, current: number): AlliumError {
  const advice =
    v > current
      ? 'It was written by a newer release: update this one.'
      : 'The journal was not written by this library, or is damaged.';
  return new AlliumError(
    'SESSION_CORRUPT',
    `Entry ${seq} of session ${shown(sessionId)} has version ${shown(v)}; this release reads versions up to ${current}. ${advice}`,
    { data: { sessionId, seq, version: v, readable: current } },
  );
}
