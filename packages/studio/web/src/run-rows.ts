/** The rows of the list of runs: how pages and live changes come together. */
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
  const byKey = new Map(changed.map((row) => [keyOf(row), row]));
  const rows = before.flatMap((row) => {
    const found = byKey.get(keyOf(row));
    byKey.delete(keyOf(row));
    return found ? (fits(found, query) ? [found] : []) : [row];
  });
  const fresh = [...byKey.values()]
    .filter((row) => fits(row, query) && says(row, query.text))
    .sort((a, b) => b.startedAt - a.startedAt);
  return fresh.length > 0 ? [...fresh, ...rows] : rows;
}

/** Filters like the server, apart from the search. */
function fits(row: RunRow, query: Readonly<Record<string, string>>): boolean {
  const { status, tenant, minCostUsd, minSeconds, guard, children } = query;
  if (row.child && children !== '1') return false;
  if (status && !status.split(',').includes(row.status)) return false;
  if (tenant && row.tenant !== tenant) return false;
  if (minCostUsd && (row.costUsd ?? 0) < Number(minCostUsd)) return false;
  if (minSeconds && row.updatedAt - row.startedAt < Number(minSeconds) * 1000) return false;
  return !guard || row.verdicts.some(({ by }) => guard === 'any' || by === guard);
}

/** Searches what is in the row itself. The server searches messages too. */
function says({ sessionId, runId, input, tenant, stop, models }: RunRow, text = ''): boolean {
  const wanted = text.trim().toLowerCase();
  return [sessionId, runId, input, tenant ?? '', stop?.message ?? '', stop?.by ?? '', ...models].some((one) =>
    one.toLowerCase().includes(wanted),
  );
}
