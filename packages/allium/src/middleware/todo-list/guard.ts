/** The state machine that keeps a model to its list: one step per response, and no side effects. */
import * as texts from './texts.js';
import { isUnfinished, problemOf, type Todo, type TodosInput } from './todos.js';

/** What is remembered between responses. */
export interface GuardState {
  /** Turns with tool calls since the list was last written. */
  readonly stale: number;
  /** How often an answer came too early and was sent back. */
  readonly corrections: number;
  /** Null, or how often the notice that only text is wanted was repeated. */
  readonly blocked: number | null;
  /** The guard gave up on the model: it says nothing until the model writes its list again. */
  readonly suppressed: boolean;
}

/** The parts of a response that matter here. */
export interface Seen {
  /** How many tools it calls. */
  readonly calls: number;
  /** The arguments of its calls of `write_todos`, as the model wrote them. */
  readonly writes: readonly string[];
  /** The list before the response. */
  readonly todos: readonly Todo[];
  /** Somebody may change the calls before they run. */
  readonly repairable?: boolean;
}

export interface Step {
  readonly state: GuardState;
  /** Said to the model, after the results of its calls. */
  readonly note?: string;
  readonly decision?: 'stop' | 'loop_to_model';
  /** Why the run is stopped. */
  readonly why?: string;
}

export const CLEAN: GuardState = { stale: 0, corrections: 0, blocked: null, suppressed: false };
/** After a stop: quiet until the next `write_todos`. */
const QUIET: GuardState = { ...CLEAN, suppressed: true };

const STALE_TURNS = 5;
const MAX_CORRECTIONS = 2;
const MAX_REPEATS = 3;

/** The first one that has something to say wins. */
export function step(state: GuardState, seen: Seen): Step {
  if (state.blocked !== null) return whileBlocked(state, state.blocked, seen);
  if (seen.writes.length > 0) return whenWritten({ ...state, suppressed: false }, seen);
  if (state.suppressed) return { state };
  if (!seen.todos.some(isUnfinished)) return { state: CLEAN };
  return seen.calls > 0 ? whileWorking(state, seen) : whenFinishing(state, seen);
}

/** Only text ends the block. Any tool call meanwhile, also of the list, is answered and not run. */
function whileBlocked(state: GuardState, repeats: number, { calls, todos }: Seen): Step {
  if (calls === 0) return { state: QUIET, decision: 'stop', why: texts.gaveUp(todos) };
  if (repeats >= MAX_REPEATS)
    return { state: QUIET, decision: 'stop', why: texts.keptCalling(repeats, todos) };
  return {
    state: { ...state, blocked: repeats + 1 },
    note: texts.blocked(todos),
    decision: 'loop_to_model',
  };
}

/** The tool refuses wrong lists; here the model is told how to do it right. */
function whenWritten(state: GuardState, { writes, todos, repairable = false }: Seen): Step {
  if (writes.length > 1) return { state, note: texts.parallelNote(writes.length) };
  const given = parsed(writes[0]!);
  const problem = given === undefined ? 'The arguments are not valid JSON.' : problemOf(given, todos);
  if (problem === undefined) return { state: afterWriting(state, todos, (given as TodosInput).todos) };
  return { state, note: repairable ? texts.doubtfulNote(problem) : texts.invalidNote(problem) };
}

/** Work that leaves the list alone is no clean pass: it keeps the corrections, or they could be evaded forever. */
function whileWorking(state: GuardState, { todos }: Seen): Step {
  const stale = state.stale + 1;
  const next = { ...state, stale };
  return stale % STALE_TURNS === 0 ? { state: next, note: texts.reminder(stale, todos) } : { state: next };
}

function whenFinishing(state: GuardState, { todos }: Seen): Step {
  if (state.corrections >= MAX_CORRECTIONS)
    return { state: { ...state, blocked: 0 }, note: texts.blocked(todos), decision: 'loop_to_model' };
  return {
    state: { ...state, corrections: state.corrections + 1 },
    note: texts.correction(todos),
    decision: 'loop_to_model',
  };
}

/**
 * What a new list does to the counts. Only progress clears the corrections: a model that writes its list again, or
 * the same one, and then answers as before would be sent back forever.
 */
export function afterWriting(state: GuardState, before: readonly Todo[], after: readonly Todo[]): GuardState {
  const left = (todos: readonly Todo[]) => todos.filter(isUnfinished).length;
  const done = (todos: readonly Todo[]) => todos.length - left(todos);
  if (left(after) === 0 || left(after) < left(before) || done(after) > done(before)) return CLEAN;
  return { ...state, stale: 0, suppressed: false };
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text === '' ? '{}' : text) as unknown;
  } catch {
    return undefined;
  }
}
