/** The result of a run, under way or ended. Fields that still grow are made when they are read. */

import { RunContext as Internal } from '../context/context.js';
import { restoredResult } from '../events/restoring-queue.js';
import { answerRestorers } from '../guards/restore.js';
import { safeStop } from '../guards/safe-values.js';
import { type Due, queuedIn } from '../inbox/inbox.js';
import type { InboxRun } from '../inbox/inbox-run.js';
import type { OpenRun } from '../journal/journaled-run.js';
import { invalidOption, isRecord } from '../lib/errors.js';
import { type Message, NOTHING, textOf, type Usage } from '../messages/messages.js';
import type { RunContext } from '../protocol/contexts.js';
import type { Change, RunResult } from '../protocol/result.js';
import type { RunStatus, Stop } from '../protocol/stop.js';
import type { PendingRequest } from '../protocol/store.js';
import { finalState, liveState, ReadableResult, type ReadableRun } from './result-state.js';

/** What a result needs from its run. */
export interface ResultRun extends InboxRun, ReadableRun {
  readonly changes: readonly Change[];
}

export function resultOf(run: ResultRun, status: RunStatus, stop: Stop): RunResult {
  const result = new Result(run, status, safeStop(stop, run));
  liveState(result, run);
  return result;
}

/** The result that the caller gets. If a layer made it, it is a plain object that lacks some members. */
export function finalResult(run: ResultRun, given: RunResult): RunResult {
  const result: RunResult =
    given instanceof Result
      ? given
      : Object.freeze(Object.create(Result.prototype, Object.getOwnPropertyDescriptors(withoutState(given))));
  finalState(result, run);
  return result;
}

/** The result as the caller reads it: with the originals of placeholders, if a guard restores them. */
export function shownResult(run: ResultRun, result: RunResult): RunResult {
  if (run.parentRunId !== undefined || answerRestorers(run.plan).length === 0) return result;
  const { text, output } = restoredResult(result, new Internal(run, run.scope, NOTHING));
  if (text === result.text && output === result.output) return result;
  const fields = Object.getOwnPropertyDescriptors(withoutState(result));
  const own = { text: { value: text, enumerable: true }, output: { value: output, enumerable: true } };
  const shown: RunResult = Object.freeze(Object.create(Result.prototype, { ...fields, ...own }));
  finalState(shown, run);
  return shown;
}

/**
 * The result with what came in while the end of the run was written; its messages begin at `from`. Requests that were
 * answered meanwhile aren't pending any more, even if their answers still have to be judged.
 */
export function withLatest(run: ResultRun, result: RunResult, from: number, due: Due | undefined): RunResult {
  const { open } = run.state;
  const messages = run.history.from(from);
  const asked = open ? pendingIn(open) : NOTHING;
  // What was posted may stay in the inbox until somebody can judge it.
  const pending = due ? Object.freeze(asked.filter(({ id }) => !due.answers.has(id))) : asked;
  const latest = { ...result, messages, pending, queued: queuedIn(run) };
  return Object.freeze(Object.assign(Object.create(Result.prototype), latest));
}

/**
 * Makes a whole result for a `wrapRun` that answers itself, from a text or from some fields. The others are those of
 * the run as it is now. By default it is `done`.
 *
 * @example
 * const closed = defineMiddleware({ name: 'closed', wrapRun: (ctx) => runResult(ctx, 'We are closed.') });
 */
export function runResult(
  ctx: RunContext,
  given: string | Partial<Omit<RunResult, 'state' | 'trace'>> = {},
): RunResult {
  const run = (ctx as Partial<Internal> | undefined)?._run as ResultRun | undefined;
  if (!run) throw invalidOption('ctx', 'the context of a run', ctx);
  const fields = typeof given === 'string' ? { text: given } : given;
  if (!isRecord(fields)) throw invalidOption('given', 'text, or fields of a result', given);
  const { status = 'done' } = fields;
  const stop: Stop = { reason: status === 'done' ? 'final' : (status as 'stopped') };
  const { state: _, ...rest } = resultOf(run, status, stop);
  const made: RunResult = Object.freeze(
    Object.assign(Object.create(Result.prototype), { ...rest, ...fields }),
  );
  liveState(made, run);
  return made;
}

class Result extends ReadableResult implements RunResult {
  readonly status: RunStatus;
  readonly stop: Stop;
  readonly text: string;
  readonly output: unknown;
  readonly turns: number;
  readonly pending: readonly PendingRequest[];
  readonly runId: string;
  readonly sessionId: string;
  readonly messages: readonly Message[];
  declare readonly usage: Usage;
  declare readonly costUsd: number | undefined;
  declare readonly queued: readonly Message[];
  declare readonly changes: readonly Change[];
  constructor(run: ResultRun, status: RunStatus, stop: Stop) {
    super();
    const { history, open } = run;
    const last = history.lastAnswer(open.from);
    this.status = status;
    this.stop = run.plan.layers.run.length > 0 ? Object.freeze({ ...stop }) : stop;
    this.text = last ? textOf(last) : '';
    this.output = run.output;
    this.turns = open.turns;
    this.pending = pendingIn(open);
    this.runId = run.runId;
    this.sessionId = run.sessionId;
    this.messages = history.from(open.from);
    if (run.plan.layers.run.length > 0) {
      sources.set(this.stop, run);
      // One by one: `defineProperties` costs twice as much.
      for (const name of GROWING) Object.defineProperty(this, name, LAZY[name]);
    } else {
      // No hook comes after this, so nothing grows any more.
      this.usage = run.budget.usage;
      this.costUsd = run.budget.costUsd;
      this.queued = queuedIn(run);
      this.changes = changesOf(run);
    }
    Object.freeze(this);
  }

  /** Loggers print values, not getters. */
  [Symbol.for('nodejs.util.inspect.custom')](): RunResult {
    return { ...this };
  }
}

/**
 * Own properties, so that `{ ...result }` has them, with the same functions for every result. Separate functions
 * would give each result a hidden class that lives, with all it can reach, until a full collection.
 */
const LAZY = {
  usage: lazily((run) => run.budget.usage),
  costUsd: lazily((run) => run.budget.costUsd),
  queued: lazily(queuedIn),
  changes: lazily(changesOf),
};

const GROWING = ['usage', 'costUsd', 'queued', 'changes'] as const;

function pendingIn({ requests }: OpenRun): readonly PendingRequest[] {
  return requests.size === 0 ? NOTHING : Object.freeze([...requests.values()]);
}

function changesOf({ changes }: ResultRun): readonly Change[] {
  return changes.length === 0 ? NOTHING : Object.freeze([...changes]);
}

/**
 * Where the lazy properties come from. A run holds what guards removed, so nobody may get hold of it through a
 * result. Keyed by the `stop` of the result, which copies of it share.
 */
const sources = new WeakMap<Stop, ResultRun>();

function lazily(read: (run: ResultRun) => unknown): PropertyDescriptor {
  return {
    get(this: Result) {
      const run = sources.get(this.stop);
      return run && read(run);
    },
    enumerable: true,
  };
}

/** `state` and `trace` are getters of the class. Copies that a layer made of them are void. */
function withoutState({ state: _, trace: __, ...rest }: RunResult): Omit<RunResult, 'state' | 'trace'> {
  return rest;
}
