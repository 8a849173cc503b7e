/**
 * Snapshots: the state of a session without its messages, so that opening it doesn't mean reading its whole journal.
 * They are optional: if one can't be used, everything is read.
 */

import { isRecord } from '../lib/errors.js';
import { freezeMessage, UsageTotal } from '../messages/messages.js';
import { limitsFromJson, limitsToJson } from '../protocol/limits.js';
import type { CellHolder } from '../protocol/state.js';
import type { NewEntry, Snapshot } from '../protocol/store.js';
import { History } from './history.js';
import { newRun, type OpenRun } from './journaled-run.js';
import { FEWEST_BETWEEN, type SessionState } from './session-state.js';

/** Raise it when the contents change: snapshots of other versions aren't used. */
const VERSION = 3;

/**
 * Limits a snapshot to the length of so many entries, so that all of them together stay a tenth of the journal or
 * less.
 */
const CHARACTERS_PER_ENTRY = 25;

/**
 * A snapshot of the state at entry `seq`, which is `last`, if it is time for one. None is taken while calls are open
 * or a traced run is under way: they end soon, and their data isn't worth storing twice.
 */
export function dueSnapshot(
  state: SessionState,
  seq: number,
  last: (NewEntry & { readonly runId?: string }) | undefined,
): Snapshot | undefined {
  if (seq - state.snapshotAt < state.snapshotAfter || !last) return undefined;
  const { open } = state;
  if (open && (open.batch || open.decided || open.requests.size > 0 || open.trace.length > 0))
    return undefined;
  const snapshot = { seq, state: textOf(kept(state, last)) };
  noted(state, snapshot);
  return snapshot.state === '' ? undefined : snapshot;
}

/** The state as of the snapshot. False if it can't be used. */
export function restore(state: SessionState, snapshot: Snapshot): boolean {
  const from = parsed(snapshot.state);
  if (from === undefined) return false;
  const { version, length, last, pinnedAt, entry, allowed, usage, open, cells, lastCells, ...rest } = from;
  const { changedCalls, ...plain } = rest;
  Object.assign(state, plain, {
    history: last ? new History({ length, seq: snapshot.seq, last, pinnedAt }) : new History(),
    cells: cells && new Map(cells),
    lastCells: lastCells && new Map(lastCells),
    allowed: allowed && new Map(allowed),
    changedCalls: changedCalls && new Set(changedCalls),
    costUsd: from.costUsd,
    open: open && restoredRun(open),
    seq: snapshot.seq,
    last: entry,
  });
  state.usage.add(usage);
  noted(state, snapshot);
  return true;
}

/** Empty for values that are nested too deep: only a store in memory takes those. */
function textOf(value: Kept): string {
  try {
    return JSON.stringify(value);
  } catch {
    return '';
  }
}

function noted(state: SessionState, { seq, state: { length } }: Snapshot): void {
  state.snapshotAt = seq;
  state.snapshotAfter = Math.max(FEWEST_BETWEEN, Math.ceil(length / CHARACTERS_PER_ENTRY));
}

type Kept = ReturnType<typeof kept>;
type KeptRun = ReturnType<typeof keptRun>;

function kept(state: SessionState, { type, at, runId }: NewEntry & { readonly runId?: string }) {
  const { tenant, history, inboxCursor, waits, withheld, allowed, open, ended, turns, toolCalls } = state;
  return {
    version: VERSION,
    entry: { type, at, runId },
    length: history.length,
    last: history.last && { id: history.last.id, role: history.last.role },
    pinnedAt: history.pinnedAt,
    ...{ tenant, inboxCursor, waits, withheld, ended, turns, toolCalls },
    cells: listOf(state),
    lastCells: listOf({ cells: state.lastCells }),
    allowed: allowed && [...allowed],
    changedCalls: state.changedCalls && [...state.changedCalls],
    usage: state.usage.snapshot(),
    costUsd: state.costUsd,
    open: open && keptRun(open),
  };
}

function keptRun({ usage, cells, limits, batch, requests, decided, ...plain }: OpenRun) {
  return {
    ...plain,
    usage: usage.snapshot(),
    cells: listOf({ cells }),
    limits: limits && limitsToJson(limits),
  };
}

function restoredRun({ usage, cells, limits, ...plain }: KeptRun): OpenRun {
  const { runId, plan, from, costUsd, answer } = plain;
  const total = new UsageTotal();
  total.add(usage);
  return {
    ...newRun({ type: 'run_start', runId, plan }, from),
    ...plain,
    // An unknown cost isn't in the text.
    costUsd,
    answer: answer && (freezeMessage(answer) as typeof answer),
    usage: total,
    cells: cells && new Map(cells),
    limits: limits && limitsFromJson(limits),
  };
}

function listOf({ cells }: CellHolder) {
  return cells && [...cells];
}

function parsed(text: string): Kept | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return isRecord(value) && value.version === VERSION ? (value as unknown as Kept) : undefined;
  } catch {
    // Damaged. Everything it says is in the journal too.
    return undefined;
  }
}
