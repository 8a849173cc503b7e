/** A page of runs, newest first, filtered. Reads journals until the page is full or it has taken long enough. */
import { type Entry, textOf } from 'allium';
import type { Sources } from './sources.js';
import { type RunFold, rowOf, type SessionFold, type Summaries } from './summaries.js';
import type { DamagedSession, RunFilter, RunPage, RunRow } from './wire.js';

/** Sessions asked of the store at a time, and rows of a page. The first one is small, to be there at once. */
const FIRST = 100;
/** Some stores look at every session for each page they give. */
const LATER = 500;
/** Milliseconds after which a page is sent as far as it is: the rest comes with the next one. */
const BUDGET_MS = 150;

export async function listRuns(
  sources: Sources,
  summaries: Summaries,
  filter: RunFilter,
  cursor: string | undefined,
): Promise<RunPage> {
  const began = performance.now();
  const size = cursor === undefined ? FIRST : LATER;
  const rows: RunRow[] = [];
  let scanned = 0;
  const damaged: DamagedSession[] = [];
  let next = cursor;
  do {
    const page = await sources.list({
      limit: size,
      ...(filter.tenant !== undefined && { tenant: filter.tenant }),
      ...(next !== undefined && { cursor: next }),
    });
    for (const info of page.sessions) {
      scanned++;
      try {
        rows.push(...(await rowsOf(sources, await summaries.of(info), filter)));
      } catch (error) {
        damaged.push({ sessionId: info.sessionId, problem: (error as Error).message });
      }
    }
    next = page.next;
  } while (next !== undefined && rows.length < size && performance.now() - began < BUDGET_MS);
  return { rows, scanned, damaged, ...(next !== undefined && { next }) };
}

/** The runs of a session that the filter lets through, newest first. */
async function rowsOf(sources: Sources, fold: SessionFold, filter: RunFilter): Promise<readonly RunRow[]> {
  if (fold.child && !filter.children) return [];
  const rows = fold.runs
    .map((run) => ({ run, row: rowOf(fold, run) }))
    .filter(({ row }) => fits(row, filter));
  const text = filter.text?.trim().toLowerCase();
  if (rows.length === 0 || !text) return rows.map(({ row }) => row).reverse();
  const plain = rows.filter(({ run, row }) => isNamed(run, row, text));
  if (plain.length === rows.length) return rows.map(({ row }) => row).reverse();
  // Read again, but not kept: the texts of all runs would fill the memory.
  const found = runsSaying(await sources.read(fold.sessionId, 1), text);
  return rows
    .filter((one) => plain.includes(one) || found.has(one.run.runId))
    .map(({ row }) => row)
    .reverse();
}

function fits(row: RunRow, filter: RunFilter): boolean {
  const { status, minCostUsd, minSeconds, guard } = filter;
  if (status && status.length > 0 && !status.includes(row.status)) return false;
  if (minCostUsd !== undefined && (row.costUsd ?? 0) < minCostUsd) return false;
  if (minSeconds !== undefined && row.updatedAt - row.startedAt < minSeconds * 1000) return false;
  if (guard === 'any') return row.verdicts.length > 0;
  return guard === undefined || guard === '' || row.verdicts.some(({ by }) => by === guard);
}

function isNamed(run: RunFold, { sessionId, stop, models, tenant }: RunRow, text: string): boolean {
  return [sessionId, run.runId, run.input, tenant ?? '', stop?.message ?? '', stop?.by ?? '', ...models].some(
    (one) => one.toLowerCase().includes(text),
  );
}

function runsSaying(entries: readonly Entry[], text: string): Set<string> {
  const found = new Set<string>();
  for (const entry of entries) {
    if (entry.type !== 'message' && entry.type !== 'tool_finished') continue;
    if (found.has(entry.runId)) continue;
    const { content } = entry.message;
    const calls = content.flatMap((part) =>
      part.type === 'tool-call' ? [`${part.name} ${part.arguments}`] : [],
    );
    if ([textOf(entry.message), ...calls].some((one) => one.toLowerCase().includes(text)))
      found.add(entry.runId);
  }
  return found;
}

/** A filter from the address of a request. */
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
