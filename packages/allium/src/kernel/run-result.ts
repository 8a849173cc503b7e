/** The result of a run under way or ended. What still grows is made when it is read. */

import { type Due, queuedIn } from './inbox.js';
import { type Message, NOTHING, textOf, type Usage } from './messages.js';
import type { OpenRun } from './open-run.js';
import type { Change, RunResult, RunStatus, Stop } from './result.js';
import type { Run } from './run.js';
import type { PendingRequest } from './store.js';
import { toldStop } from './told-beside.js';

export function resultOf(run: Run, status: RunStatus, stop: Stop): RunResult {
  return new Result(run, status, toldStop(stop, run));
}

/**
 * The result with what came in while the end of the run was written; its messages begin at `from`. Requests that were
 * answered meanwhile are pending no more, also where their answers wait to be judged.
 */
export function withLatest(run: Run, result: RunResult, from: number, due: Due | undefined): RunResult {
  const { open } = run.state;
  const messages = run.history.from(from);
  const asked = open ? pendingIn(open) : NOTHING;
  // What was posted may stay in the inbox until somebody can judge it.
  const pending = due ? Object.freeze(asked.filter(({ id }) => !due.answers.has(id))) : asked;
  const latest = { ...result, messages, pending, queued: queuedIn(run) };
  return Object.freeze(Object.assign(Object.create(Result.prototype), latest));
}

class Result implements RunResult {
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
  constructor(run: Run, status: RunStatus, stop: Stop) {
    const { history, open } = run;
    const last = history.lastAnswer(open.from);
    this.status = status;
    this.stop = stop;
    this.text = last ? textOf(last) : '';
    this.output = run.output;
    this.turns = open.turns;
    this.pending = pendingIn(open);
    this.runId = run.runId;
    this.sessionId = run.sessionId;
    this.messages = history.from(open.from);
    if (run.plan.layers.run.length > 0) {
      sources.set(this, run);
      // One by one, which costs half of what all at once does.
      for (const name of GROWING) Object.defineProperty(this, name, LAZY[name]);
    } else {
      // No hook of a middleware is still to come, so nothing grows any more.
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
 * Properties of the object itself, so that `{ ...result }` has them; the same functions for every result. Functions
 * made for each would give each a hidden class, which lives on, with all it can reach, until a full collection.
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

function changesOf({ changes }: Run): readonly Change[] {
  return changes.length === 0 ? NOTHING : Object.freeze([...changes]);
}

/** Where the lazy properties come from. A run holds what guards removed, so nobody finds it by way of a result. */
const sources = new WeakMap<Result, Run>();

function lazily(read: (run: Run) => unknown): PropertyDescriptor {
  return {
    get(this: Result) {
      const run = sources.get(this);
      return run && read(run);
    },
    enumerable: true,
  };
}
