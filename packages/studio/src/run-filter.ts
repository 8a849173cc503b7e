/** Which runs a list shows. The server filters with it, and the page does when runs change live. */
import type { RunFilter, RunRow } from './wire.js';

/** A filter from the address of a request or of the page. */
export function filterOf(query: Readonly<Record<string, string>>): RunFilter {
  const number = (text: string | undefined) => {
    const value = text === undefined || text === '' ? Number.NaN : Number(text);
    return Number.isFinite(value) && value > 0 ? value : undefined;
  };
  const minCostUsd = number(query.minCostUsd);
  const minSeconds = number(query.minSeconds);
  return {
    ...(query.status && { status: query.status.split(',') }),
    ...(query.tenant && { tenant: query.tenant }),
    ...(minCostUsd !== undefined && { minCostUsd }),
    ...(minSeconds !== undefined && { minSeconds }),
    ...(query.guard && { guard: query.guard }),
    ...(query.text && { text: query.text }),
    ...(query.children === '1' && { children: true }),
  };
}

/** Does the filter let this run through, apart from its text? */
export function fits(row: RunRow, filter: RunFilter): boolean {
  const { status, tenant, minCostUsd, minSeconds, guard, children } = filter;
  if (row.child && !children) return false;
  if (status && status.length > 0 && !status.includes(row.status)) return false;
  if (tenant !== undefined && row.tenant !== tenant) return false;
  if (minCostUsd !== undefined && (row.costUsd ?? 0) < minCostUsd) return false;
  if (minSeconds !== undefined && row.updatedAt - row.startedAt < minSeconds * 1000) return false;
  if (guard === 'any') return row.verdicts.length > 0;
  return guard === undefined || guard === '' || row.verdicts.some(({ by }) => by === guard);
}

/** Is the text in the row itself? It may also be in the messages of the run, which only the server has. */
export function isNamed(row: RunRow, { text = '' }: RunFilter): boolean {
  const { sessionId, runId, input, tenant, stop, models } = row;
  const wanted = text.trim().toLowerCase();
  return [sessionId, runId, input, tenant ?? '', stop?.message ?? '', stop?.by ?? '', ...models].some((one) =>
    one.toLowerCase().includes(wanted),
  );
}
