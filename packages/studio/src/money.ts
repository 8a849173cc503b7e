/** What was spent, by day and by model, tenant or session. */
import { parentOf } from 'allium/stores/kit';
import type { Sources } from './sources.js';
import { dayOf, SUB_AGENTS, type Summaries } from './summaries.js';
import type { SpendBy, SpendPage, SpendPoint } from './wire.js';

type Point = { -readonly [K in keyof SpendPoint]: SpendPoint[K] };

/** Milliseconds after which a page is sent as far as it is. */
const BUDGET_MS = 250;

/** A page of sums, newest sessions first. The page adds them up. */
export async function listSpending(
  sources: Sources,
  summaries: Summaries,
  by: SpendBy,
  cursor: string | undefined,
): Promise<SpendPage> {
  const began = performance.now();
  const points = new Map<string, Point>();
  let sessions = 0;
  let next = cursor;
  do {
    const page = await sources.list({ limit: 200, ...(next !== undefined && { cursor: next }) });
    for (const info of page.sessions) {
      const fold = await summaries.of(info).catch(() => undefined);
      if (!fold) continue;
      if (!fold.child) sessions++;
      for (const run of fold.runs)
        for (const { at, model, usage, costUsd } of run.spent) {
          // It is counted in the session of the sub-agent, where its model is known.
          if (model === SUB_AGENTS) continue;
          const key =
            by === 'model' ? model : by === 'tenant' ? (run.tenant ?? 'no tenant') : rootOf(fold.sessionId);
          add(points, dayOf(at), key, usage, costUsd);
        }
    }
    next = page.next;
  } while (next !== undefined && performance.now() - began < BUDGET_MS);
  return { points: [...points.values()], sessions, ...(next !== undefined && { next }) };
}

function add(
  points: Map<string, Point>,
  day: number,
  key: string,
  usage: { inputTokens: number; outputTokens: number; cacheRead: number },
  costUsd: number | undefined,
): void {
  const id = `${day} ${key}`;
  const point = points.get(id) ?? {
    ...{ day, key, inputTokens: 0, outputTokens: 0, cacheRead: 0, costUsd: 0, unpriced: 0 },
  };
  point.inputTokens += usage.inputTokens;
  point.outputTokens += usage.outputTokens;
  point.cacheRead += usage.cacheRead;
  if (costUsd === undefined) point.unpriced++;
  else point.costUsd += costUsd;
  points.set(id, point);
}

/** The session that somebody started: sub-agents count for it. */
function rootOf(sessionId: string): string {
  let id = sessionId;
  for (let above = parentOf(id); above !== undefined; above = parentOf(id)) id = above;
  return id;
}
