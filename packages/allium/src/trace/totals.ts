/** Adds up how often hooks were called, and how long they took. */

import type { HookTotal } from '../index.js';

/** The totals of all parts of a run. */
export function summed(totals: readonly HookTotal[]): readonly HookTotal[] {
  const all = new Map<string, HookTotal>();
  for (const one of totals) {
    const key = `${one.by}\n${one.hook}\n${one.seam}`;
    const before = all.get(key);
    const sum = before && { ...one, calls: before.calls + one.calls, ms: rounded(before.ms + one.ms) };
    all.set(key, sum ?? one);
  }
  return [...all.values()];
}

/** Rounds to whole microseconds. */
export function rounded(ms: number): number {
  return Math.round(ms * 1000) / 1000;
}
