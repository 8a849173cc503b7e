/** The onion: the plan of an agent, and what each ring did in one run or in the last ones. */
import type { Agent, Entry } from 'allium';
import type { Sources } from './sources.js';
import type { Summaries } from './summaries.js';
import type { OnionView, RingFigures } from './wire.js';

type Figures = { -readonly [K in keyof Omit<RingFigures, 'verdicts'>]: RingFigures[K] } & {
  readonly verdicts: Record<string, number>;
};

export interface OnionQuery {
  /** One run. */
  readonly sessionId?: string;
  readonly runId?: string;
  /** Otherwise the last ones, of whatever session. */
  readonly last: number;
  readonly agent?: string;
}

export async function viewOnion(
  sources: Sources,
  summaries: Summaries,
  agents: readonly Agent[],
  { sessionId, runId, last, agent: wanted }: OnionQuery,
): Promise<OnionView> {
  const figures = new Map<string, Figures>();
  let runs = 0;
  let traced = 0;
  let plan: readonly string[] | undefined;
  const count = (entries: readonly Entry[], only?: string) => {
    const start = entries.findLast(
      (one) => one.type === 'run_start' && (only === undefined || one.runId === only),
    );
    if (start?.type !== 'run_start') return;
    plan ??= start.plan;
    runs++;
    const own = entries.filter((one) => one.type === 'trace' && one.runId === start.runId);
    if (own.length > 0) traced++;
    for (const entry of own) addTrace(figures, entry);
  };
  if (sessionId !== undefined) count(await sources.read(sessionId, 1), runId);
  else for (const id of await lastSessions(sources, summaries, last)) count(await sources.read(id, 1));
  const agent =
    agents.find(({ name }) => name === wanted) ??
    (sessionId === undefined
      ? agents[0]
      : agents.find((one) => one.plan.names.join('\n') === (plan ?? []).join('\n')));
  const { toString: _, ...explanation } = agent?.explain() ?? { toString: '' };
  return {
    ...(agent && { agent: agent.name, explanation: explanation as NonNullable<OnionView['explanation']> }),
    plan: agent?.plan.names ?? plan ?? [],
    figures: [...figures.values()],
    runs,
    traced,
  };
}

async function lastSessions(
  sources: Sources,
  summaries: Summaries,
  last: number,
): Promise<readonly string[]> {
  const { sessions } = await sources.list({ limit: Math.min(last, 500) });
  const ids: string[] = [];
  for (const info of sessions) {
    const fold = await summaries.of(info).catch(() => undefined);
    if (fold && !fold.child && fold.runs.length > 0) ids.push(info.sessionId);
  }
  return ids.slice(0, last);
}

const BLOCKS: ReadonlySet<string> = new Set(['blocked', 'stopped']);
const CHANGES: ReadonlySet<string> = new Set(['rewrote', 'added', 'answered', 'retried']);

function addTrace(figures: Map<string, Figures>, entry: Entry): void {
  if (entry.type !== 'trace') return;
  const of = (name: string): Figures => {
    const known = figures.get(name) ?? {
      name,
      calls: 0,
      ms: 0,
      changes: 0,
      blocks: 0,
      asks: 0,
      verdicts: {},
    };
    figures.set(name, known);
    return known;
  };
  for (const { by, calls, ms } of entry.totals ?? []) {
    const ring = of(by);
    ring.calls += calls;
    ring.ms += ms;
  }
  for (const { by, did, verdict } of entry.records) {
    if (verdict) {
      const { verdicts } = of(by);
      verdicts[verdict.point] = (verdicts[verdict.point] ?? 0) + 1;
    }
    if (BLOCKS.has(did)) of(by).blocks++;
    else if (did === 'asked') of(by).asks++;
    else if (CHANGES.has(did)) of(by).changes++;
  }
}
