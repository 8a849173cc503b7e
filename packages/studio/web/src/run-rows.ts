/** The rows of the list of runs: how pages and live changes come together. */
import { filterOf, fits, isNamed } from '../../src/run-filter.js';
import type { RunRow } from '../../src/wire.js';

export const keyOf = ({ sessionId, runId }: RunRow): string => `${sessionId} ${runId}`;

/** Rows of the next page, without those that came in live meanwhile. */
export function merged(before: readonly RunRow[], more: readonly RunRow[]): readonly RunRow[] {
  const known = new Set(before.map(keyOf));
  return [...before, ...more.filter((row) => !known.has(keyOf(row)))];
}

/**
 * Rows that have gone on are replaced where they are; new ones come first. The server has found the text of the search in the
 * rows that are there, perhaps in their messages, which rows don't have.
 */
export function updated(
  before: readonly RunRow[],
  changed: readonly RunRow[],
  query: Readonly<Record<string, string>>,
): readonly RunRow[] {
  const filter = filterOf(query);
  const byKey = new Map(changed.map((row) => [keyOf(row), row]));
  const rows = before.flatMap((row) => {
    const found = byKey.get(keyOf(row));
    byKey.delete(keyOf(row));
    return found ? (fits(found, filter) ? [found] : []) : [row];
  });
  const fresh = [...byKey.values()]
    .filter((row) => fits(row, filter) && isNamed(row, filter))
    .sort((a, b) => b.startedAt - a.startedAt);
  return fresh.length > 0 ? [...fresh, ...rows] : rows;
}
