import { describe, expect, it } from 'vitest';
import { ENTRY_VERSION } from '../protocol/store.js';
import { type StoredEntry, upgradeEntries } from './entry-upgrade.js';

const entry = (v: number, seq: number): StoredEntry => ({ v, seq, at: 5, type: 'inbox', cursor: seq });

describe('upgradeEntries', () => {
  it('returns the same array if every entry has the current version', () => {
    const entries = [entry(ENTRY_VERSION, 1), entry(ENTRY_VERSION, 2)];
    expect(upgradeEntries('s', entries)).toBe(entries);
  });

  it('reads what the first version wrote, which lacks nothing', () => {
    expect(upgradeEntries('s', [entry(1, 1)])).toEqual([entry(2, 1)]);
  });

  it('takes every step from the version of the entry to the current one, and leaves current entries alone', () => {
    const steps = {
      1: (old: StoredEntry) => ({ ...old, v: 2, cursor: Number(old.cursor) * 10 }),
      2: (old: StoredEntry) => ({ ...old, v: 3, waits: [] }),
    };
    const current = { ...entry(3, 3), waits: [] };
    const upgraded = upgradeEntries('s', [entry(1, 1), entry(2, 2), current], steps, 3);
    expect(upgraded).toEqual([
      { v: 3, seq: 1, at: 5, type: 'inbox', cursor: 10, waits: [] },
      { v: 3, seq: 2, at: 5, type: 'inbox', cursor: 2, waits: [] },
      current,
    ]);
    expect(upgraded[2]).toBe(current);
  });

  it.each([
    [
      3,
      'Entry 7 of session "s" has version 3; this release reads versions up to 2. It was written by a newer release: update this one.',
    ],
    [
      0,
      'Entry 7 of session "s" has version 0; this release reads versions up to 2. The journal was not written by this library, or is damaged.',
    ],
    [
      undefined as unknown as number,
      'Entry 7 of session "s" has version undefined; this release reads versions up to 2. The journal was not',
    ],
  ])('refuses version %s with SESSION_CORRUPT', (version, message) => {
    expect(() => upgradeEntries('s', [entry(version, 7)])).toThrow(message);
    expect(() => upgradeEntries('s', [entry(version, 7)])).toThrow(
      expect.objectContaining({ code: 'SESSION_CORRUPT' }),
    );
  });

  it('refuses a step that does not lead to the next version instead of running for ever', () => {
    expect(() => upgradeEntries('s', [entry(1, 7)], { 1: (old) => old }, 2)).toThrow(
      'Entry 7 of session "s" has version 1',
    );
  });
});
