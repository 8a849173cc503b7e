/**
 * What a list needs to know about each run, folded from its journal once: later only new entries are read.
 */
import { type Entry, type SessionInfo, type Stop, textOf, toolCallsOf, type Usage } from 'allium';
import { parentOf } from 'allium/stores/kit';
import { oneLine } from './cut.js';
import type { Sources } from './sources.js';
import { agentOf, verdictsIn } from './traces.js';
import type { RowStatus, RunRow, VerdictCount } from './wire.js';

/** What one model call, or several of a day, cost. */
interface Spent {
  readonly at: number;
  readonly model: string;
  readonly usage: Usage;
  readonly costUsd: number | undefined;
}

/** A run, as far as its journal has been read. */
interface RunFold {
  readonly runId: string;
  readonly startedAt: number;
  readonly tenant: string | undefined;
  readonly plan: readonly string[];
  updatedAt: number;
  status: RowStatus;
  stop: Stop | undefined;
  input: string;
  turns: number;
  toolCalls: number;
  toolErrors: number;
  priced: boolean;
  readonly models: Set<string>;
  readonly verdicts: Map<string, VerdictCount>;
  readonly open: Set<string>;
  /** The entry before was the result of a sub-agent: what it spent follows. */
  afterAgent: boolean;
  readonly spent: Spent[];
}

/** Spent by sub-agents, whose own sessions say with which models. */
export const SUB_AGENTS = 'sub-agents';
/** Attempts that were given up, and calls that middleware make for themselves: the journal does not name their model. */
const OTHER_CALLS = 'other calls';

export interface SessionFold {
  readonly sessionId: string;
  readonly child: boolean;
  /** The last entry that was read. */
  seq: number;
  readonly runs: RunFold[];
}

/** Folds of sessions, kept by session and last entry. */
export class Summaries {
  readonly #folds = new Map<string, SessionFold>();
  readonly #busy = new Map<string, Promise<SessionFold>>();

  constructor(
    private readonly sources: Sources,
    /** Sessions to remember; the ones that were asked for longest ago are forgotten. */
    private readonly most = 50_000,
  ) {}

  /** The fold of a session up to the entry that the list names. Reads only what is new. */
  async of({ sessionId, seq }: Pick<SessionInfo, 'sessionId' | 'seq'>): Promise<SessionFold> {
    const known = this.#folds.get(sessionId);
    if (known && known.seq >= seq) return known;
    const busy = this.#busy.get(sessionId);
    if (busy) return busy;
    const reading = this.#read(sessionId, known).finally(() => this.#busy.delete(sessionId));
    this.#busy.set(sessionId, reading);
    return reading;
  }

  async #read(sessionId: string, known: SessionFold | undefined): Promise<SessionFold> {
    const fold = known ?? { sessionId, child: parentOf(sessionId) !== undefined, seq: 0, runs: [] };
    for (const entry of await this.sources.read(sessionId, fold.seq + 1)) addEntry(fold, entry);
    this.#folds.delete(sessionId);
    this.#folds.set(sessionId, fold);
    if (this.#folds.size > this.most) this.#folds.delete(this.#folds.keys().next().value!);
    return fold;
  }
}

export function addEntry(fold: SessionFold, entry: Entry): void {
  fold.seq = entry.seq;
  if (entry.type === 'run_start') {
    if (!fold.runs.some(({ runId }) => runId === entry.runId)) fold.runs.push(newRun(entry));
    return;
  }
  const runId = 'runId' in entry ? entry.runId : undefined;
  const run = runId === undefined ? undefined : fold.runs.findLast((one) => one.runId === runId);
  if (!run) return;
  run.updatedAt = entry.at;
  addToRun(run, entry);
}

function newRun(entry: Entry & { type: 'run_start' }): RunFold {
  return {
    runId: entry.runId,
    startedAt: entry.at,
    tenant: entry.tenant,
    plan: entry.plan,
    updatedAt: entry.at,
    status: 'running',
    stop: undefined,
    input: '',
    turns: 0,
    toolCalls: 0,
    toolErrors: 0,
    priced: true,
    models: new Set(),
    verdicts: new Map(),
    open: new Set(),
    afterAgent: false,
    spent: [],
  };
}

function addToRun(run: RunFold, entry: Entry): void {
  for (const { by, action, count } of verdictsIn(entry)) tally(run, by, action, count);
  if (entry.type === 'message' || entry.type === 'tool_finished')
    run.afterAgent = agentOf(entry) !== undefined;
  switch (entry.type) {
    case 'message': {
      const { message } = entry;
      if (message.role === 'user' && run.input === '' && run.turns === 0)
        run.input = oneLine(textOf(message)) || mediaOnly(message.content.length);
      if (message.role !== 'assistant' || entry.seeded) return;
      run.turns++;
      run.toolCalls += toolCallsOf(message).length;
      if (message.model !== undefined) run.models.add(message.model);
      if (message.usage) spend(run, entry.at, message.model ?? 'unknown', message.usage, entry.costUsd);
      return;
    }
    case 'tool_finished':
      if (entry.message.isError) run.toolErrors++;
      return;
    case 'usage':
      spend(run, entry.at, run.afterAgent ? SUB_AGENTS : OTHER_CALLS, entry.usage, entry.costUsd);
      return;
    case 'request':
      for (const id of entry.replaces ?? []) run.open.delete(id);
      run.open.add(entry.request.id);
      run.status = 'suspended';
      return;
    case 'answer':
      run.open.delete(entry.requestId);
      if (run.open.size === 0 && run.status === 'suspended') run.status = 'running';
      return;
    case 'run_end':
      run.status = entry.status;
      run.stop = entry.stop;
      if (entry.status !== 'suspended') run.open.clear();
      if (entry.stop.reason === 'guardrail') tally(run, entry.stop.by ?? 'guard', 'stop', 1);
  }
}

function mediaOnly(parts: number): string {
  return parts === 0 ? '' : `${parts} ${parts === 1 ? 'attachment' : 'attachments'} without text`;
}

function tally(run: RunFold, by: string, action: string, count: number): void {
  const key = `${by} ${action}`;
  const before = run.verdicts.get(key)?.count ?? 0;
  run.verdicts.set(key, { by, action, count: before + count });
}

function spend(run: RunFold, at: number, model: string, usage: Usage, costUsd: number | undefined): void {
  if (costUsd === undefined) run.priced = false;
  const last = run.spent.at(-1);
  // A run of thousands of turns needs a few numbers a day, not thousands.
  if (
    last &&
    last.model === model &&
    sameDay(last.at, at) &&
    (last.costUsd === undefined) === (costUsd === undefined)
  )
    run.spent[run.spent.length - 1] = {
      ...last,
      usage: sum(last.usage, usage),
      costUsd: costUsd === undefined ? undefined : last.costUsd! + costUsd,
    };
  else run.spent.push({ at, model, usage, costUsd });
}

/** The beginning of the day, where the server is. */
export function dayOf(at: number): number {
  const day = new Date(at);
  return new Date(day.getFullYear(), day.getMonth(), day.getDate()).getTime();
}

function sameDay(a: number, b: number): boolean {
  return Math.abs(a - b) < 86_400_000 && dayOf(a) === dayOf(b);
}

function sum(a: Usage, b: Usage): Usage {
  return {
    inputTokens: a.inputTokens + b.inputTokens,
    outputTokens: a.outputTokens + b.outputTokens,
    cacheRead: a.cacheRead + b.cacheRead,
    cacheWrite: a.cacheWrite + b.cacheWrite,
    totalTokens: a.totalTokens + b.totalTokens,
  };
}

const NOTHING: Usage = {
  inputTokens: 0,
  outputTokens: 0,
  cacheRead: 0,
  cacheWrite: 0,
  totalTokens: 0,
};

export function rowOf({ sessionId, child, seq }: SessionFold, run: RunFold): RunRow {
  const costUsd = run.spent.reduce((total, one) => total + (one.costUsd ?? 0), 0);
  return {
    sessionId,
    runId: run.runId,
    ...(run.tenant !== undefined && { tenant: run.tenant }),
    status: run.status,
    ...(run.stop && { stop: run.stop }),
    startedAt: run.startedAt,
    updatedAt: run.updatedAt,
    input: run.input,
    turns: run.turns,
    toolCalls: run.toolCalls,
    toolErrors: run.toolErrors,
    usage: run.spent.reduce((total, one) => sum(total, one.usage), NOTHING),
    ...(run.priced && { costUsd }),
    models: [...run.models],
    verdicts: [...run.verdicts.values()],
    waiting: run.open.size,
    ...(child && { child }),
    seq,
  };
}
