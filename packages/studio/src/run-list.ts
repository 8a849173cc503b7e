/** A page of runs, newest first, filtered. Reads journals until the page is full or it has taken long enough. */
import { type Entry, textOf } from 'allium';
import { fits, isNamed } from './run-filter.js';
import type { Sources } from './sources.js';
import { rowOf, type SessionFold, type Summaries } from './summaries.js';
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
  const rows = fold.runs.map((run) => rowOf(fold, run)).filter((row) => fits(row, filter));
  const text = filter.text?.trim().toLowerCase();
  const named = text ? rows.filter((row) => isNamed(row, filter)) : rows;
  if (!text || named.length === rows.length) return rows.reverse();
  // Read again, but not kept: the texts of all runs would fill the memory.
  const found = runsSaying(await sources.read(fold.sessionId, 1), text);
  return rows.filter((row) => named.includes(row) || found.has(row.runId)).reverse();
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
