/** The state machine that keeps a model to its list: one step per response, and no side effects. */
import * as texts from './texts.js';
import { isUnfinished, problemOf, type Todo } from './todos.js';

/** What is remembered between responses. */
export interface GuardState {
  /** Turns with tool calls since the list was last written. */
  readonly stale: number;
  /** How often an answer came too early and was sent back. */
  readonly corrections: number;
  /** Null, or how often the notice that only text is wanted was repeated. */
  readonly blocked: number | null;
  /** The model was given up on: nothing is said until it writes its list again. */
  readonly suppressed: boolean;
}

/** A response, as far as it matters here. */
export interface Seen {
  /** How many tools it calls. */
  readonly calls: number;
  /** The arguments of its calls of `write_todos`, as the model wrote them. */
  readonly writes: readonly string[];
  /** The list before the response. */
  readonly todos: readonly Todo[];
  /** Somebody may change the calls before they are carried out. */
  readonly repairable?: boolean;
}

export interface Step {
  readonly state: GuardState;
  /** Said to the model, after the results of its calls. */
  readonly note?: string;
  readonly decision?: 'stop' | 'loop_to_model';
}

export const CLEAN: GuardState = { stale: 0, corrections: 0, blocked: null, suppressed: false };
/** After a stop: quiet until the next `write_todos`. */
const QUIET: GuardState = { ...CLEAN, suppressed: true };

const STALE_TURNS = 5;
const MAX_CORRECTIONS = 2;
const MAX_REPEATS = 3;

/** The first that has something to say wins. */
export function step(state: GuardState, seen: Seen): Step {
  if (state.blocked !== null) return whileBlocked(state, state.blocked, seen);
  if (seen.writes.length > 0) return whenWritten({ ...state, suppressed: false }, seen);
  if (state.suppressed) return { state };
  if (!seen.todos.some(isUnfinished)) return { state: CLEAN };
  return seen.calls > 0 ? whileWorking(state, seen) : whenFinishing(state, seen);
}

/** Only text ends the block. Whatever is called meanwhile, the list included, is answered and not run. */
function whileBlocked(state: GuardState, repeats: number, { calls, todos }: Seen): Step {
  if (calls === 0 || repeats >= MAX_REPEATS) return { state: QUIET, decision: 'stop' };
  return {
    state: { ...state, blocked: repeats + 1 },
    note: texts.blocked(todos),
    decision: 'loop_to_model',
  };
}

/** The tool refuses what is wrong; here the model is told how to do it right. */
function whenWritten(state: GuardState, { writes, todos, repairable = false }: Seen): Step {
  if (writes.length > 1) return { state, note: texts.parallelNote(writes.length) };
  const problem = payloadProblem(writes[0]!, todos);
  if (problem === undefined) return { state: CLEAN };
  return { state, note: repairable ? texts.doubtfulNote(problem) : texts.invalidNote(problem) };
}

/** Work that leaves the list alone is no clean pass: it keeps the corrections, or they could be got round for ever. */
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

function payloadProblem(text: string, before: readonly Todo[]): string | undefined {
  try {
    return problemOf(JSON.parse(text === '' ? '{}' : text), before);
  } catch {
    return 'The arguments are not valid JSON.';
  }
}
