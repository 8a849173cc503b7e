/** Cells read from outside a run: `result.state` and `session.state()`. */

import { Cells } from '../context/cells.js';
import type { Recorded, Recording, TracedRun } from '../context/tracing.js';
import type { History } from '../journal/history.js';
import { catchUpWhole } from '../journal/read-session.js';
import { SessionState } from '../journal/session-state.js';
import { AlliumError, shown } from '../lib/errors.js';
import type { Message } from '../messages/messages.js';
import type { RunResult, StateReader } from '../protocol/result.js';
import type { CellHolder, StateCell } from '../protocol/state.js';
import type { Store } from '../protocol/store.js';
import type { RunTrace } from '../protocol/trace.js';

/** The cells of sub-agents that have ended, by the id of their session. */
interface Below {
  readonly states: ReadonlyMap<string, StateReader> | undefined;
  readonly traces?: ReadonlyMap<string, RunTrace> | undefined;
}

/** A run whose cells can be read. */
export interface ReadableRun {
  readonly cells: Cells;
  readonly children: Below;
  readonly trace: Recording | undefined;
  readonly runId: string;
  readonly sessionId: string;
  readonly history: History;
}

type Keys = ReadonlyMap<StateCell<any>, string>;

const NO_CELLS: Keys = new Map();
const NONE: CellHolder = { cells: undefined };
const NO_CHILDREN: Below = { states: undefined };

/** While the run is under way, its cells are read as they are at the moment. */
export function liveState(result: RunResult, run: ReadableRun): void {
  ReadableResult.keep(result, { cells: run.cells, below: run.children, traced: tracedBy(run) });
}

/** From here on they stay as they are, whatever the session does next. */
export function finalState(result: RunResult, run: ReadableRun): void {
  const below = { states: run.children.states };
  ReadableResult.keep(result, { cells: run.cells.copy(), below, traced: tracedBy(run) });
}

function tracedBy({ trace, runId, sessionId, history, children }: ReadableRun): Traced | undefined {
  return trace && { runId, sessionId, history, children, recorded: trace.kept };
}

/** What the trace of a result is made from when it is read. */
interface Traced extends Omit<TracedRun, 'history' | 'children'> {
  readonly recorded: Recorded;
  readonly history: History;
  readonly children: Below;
}

interface Readable {
  readonly cells: Cells;
  readonly below: Below;
  readonly traced: Traced | undefined;
  /** Made when somebody asks for it. */
  reader?: StateReader;
}

/** For results that layers made. */
const others = new WeakMap<object, Readable>();

/**
 * Results of the kernel hold their state and trace themselves. A map of results would keep those of ended runs in memory
 * until a full collection.
 */
export class ReadableResult {
  #own: Readable | undefined = undefined;

  static keep(result: object, readable: Readable): void {
    if (#own in result) result.#own = readable;
    else others.set(result, readable);
  }

  static #of(result: object): Readable | undefined {
    return #own in result ? result.#own : others.get(result);
  }

  /** Not a property of the object itself: results are copied, compared and sent elsewhere as JSON. */
  get state(): StateReader {
    const own = ReadableResult.#of(this);
    if (!own) return readerOf(new Cells(NO_CELLS, NONE, NONE), NO_CHILDREN);
    own.reader ??= readerOf(own.cells, own.below);
    return own.reader;
  }

  /** What is recorded when it is read. Undefined if the run isn't traced. */
  get trace(): RunTrace | undefined {
    const traced = ReadableResult.#of(this)?.traced;
    if (!traced) return undefined;
    const { recorded, history, children, ...run } = traced;
    return recorded.trace({ ...run, history: history.all(), children: children.traces });
  }
}

type Kept = Pick<SessionState, 'cells' | 'lastCells' | 'open'>;

/** The cells of a session that isn't running here, as its journal has them. */
export function keptState({ cells, lastCells, open }: Kept, states?: Below['states']): StateReader {
  const kept = { cells, lastCells, open };
  return readerOf({ get: (cell) => storedState(kept, NO_CELLS, cell) }, { states });
}

/** The cells of the sub-agents that these messages mention, and of theirs, by the ids of their sessions. */
export async function statesBelow(
  store: Store,
  sessionId: string,
  messages: readonly Message[],
): Promise<Map<string, StateReader> | undefined> {
  const states = new Map<string, StateReader>();
  for (const message of messages) {
    const { agentId } = (message.role === 'tool' ? Object(message.details) : {}) as { agentId?: unknown };
    if (typeof agentId !== 'string' || !agentId.startsWith(`${sessionId}/`)) continue;
    const state = new SessionState(agentId);
    try {
      await catchUpWhole(store, state);
    } catch {
      // The run can go on without this one.
      continue;
    }
    if (state.open || state.ended)
      states.set(agentId, keptState(state, await statesBelow(store, agentId, state.history.view())));
  }
  return states.size > 0 ? states : undefined;
}

/**
 * The value of a cell in the journal. A cell that the agent does not declare, such as a sub-agent's, is found by its
 * name.
 */
export function storedState<T>(state: Kept, keys: Keys, cell: StateCell<T>): T {
  if (typeof (cell as { name?: unknown } | undefined)?.name !== 'string')
    throw new AlliumError('INVALID_STATE', `Expected a cell that defineState() made, got ${shown(cell)}.`);
  const run: CellHolder = { cells: state.open ? state.open.cells : state.lastCells };
  const key = keys.get(cell) ?? keyOf(cell, cell.scope === 'session' ? state : run);
  return new Cells(new Map([[cell, key]]), state, run).get(cell);
}

function keyOf({ name }: StateCell<any>, { cells }: CellHolder): string {
  const found = [...(cells?.keys() ?? [])].filter((key) => key === name || key.endsWith(`:${name}`));
  if (found.length < 2) return found[0] ?? name;
  throw new AlliumError(
    'INVALID_STATE',
    `Several middleware own a cell "${name}" in this session: ${found.join(', ')}. Ask with an agent that declares the one you mean.`,
  );
}

function readerOf(cells: Pick<Cells, 'get'>, below: Below): StateReader {
  const get = <T>(cell: StateCell<T>): T => cells.get(cell);
  const of = (agentId: string): StateReader | undefined => {
    const { states: children } = below;
    const direct = children?.get(agentId);
    if (direct || !children) return direct;
    for (const child of children.values()) {
      const found = child.of(agentId);
      if (found) return found;
    }
    return undefined;
  };
  return Object.freeze(Object.assign(<T>(cell: StateCell<T>): T => get(cell), { get, of }));
}
