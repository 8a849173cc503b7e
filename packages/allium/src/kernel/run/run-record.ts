/** The journal side of a run: what is written of it, what it has spent, and how long it has been active. */

import { Cells } from '../context/cells.js';
import type { Recording } from '../context/tracing.js';
import { type RunEvents, runEvents } from '../events/run-events.js';
import type { PendingInput } from '../inbox/pending-input.js';
import { ActiveTime } from '../journal/active-time.js';
import { isThrownByStore } from '../journal/bounded-store.js';
import { type Journal, together } from '../journal/journal.js';
import type { OpenRun } from '../journal/journaled-run.js';
import type { SessionState } from '../journal/session-state.js';
import { missing } from '../journal/spent.js';
import type { Clock } from '../lib/clock.js';
import type { Scope } from '../lib/scope.js';
import { type Expense, isNothing, NOTHING, UNKNOWN_USAGE, type Usage } from '../messages/messages.js';
import type { Price } from '../messages/model.js';
import type { Budget, Reservation } from '../model/budget.js';
import type { AgentEvent } from '../protocol/events.js';
import type { Limits } from '../protocol/limits.js';
import type { Plan } from '../protocol/middleware.js';
import type { CellChange } from '../protocol/state.js';
import type { Awaitable, EntryDraft } from '../protocol/store.js';
import type { RunAgent, Start } from './start.js';

export class RunRecord {
  readonly agent: RunAgent;
  readonly state: SessionState;
  readonly sessionId: string;
  readonly runId: string;
  /** Ids of messages begin with it. One text for all of them: each id would otherwise keep its own. */
  protected readonly idPrefix: string;
  readonly scope: Scope;
  readonly clock: Clock;
  readonly cells: Cells;
  readonly events: RunEvents;
  /** Does anybody watch? If not, events aren't even made. */
  readonly watched: boolean;
  private unjournaled: Expense[] = [];
  /** The input, while guards judge it in parallel to the first model call. */
  pendingInput: PendingInput | undefined = undefined;
  /** Records what happens, if the run is traced. */
  trace: Recording | undefined = undefined;
  /** Most runs have no time limit, and nobody asks. */
  private time: ActiveTime | undefined;

  constructor(
    readonly start: Start,
    plan: Plan,
    readonly journal: Journal,
    readonly limits: Limits,
    readonly budget: Budget,
  ) {
    this.agent = start.agent;
    this.state = start.state;
    this.sessionId = this.state.sessionId;
    this.runId = this.open.runId;
    this.idPrefix = `${this.runId}.`;
    this.scope = start.scope;
    this.clock = this.agent.clock;
    this.cells = new Cells(plan.cells, this.state, this.open);
    this.events = runEvents(start.queue, this.agent._feeds, this.agent._feedsFor(start.options.observers));
    this.watched = this.events.watched;
    if (limits.timeoutMs !== undefined) this.time = this.activeTime();
  }

  get open(): OpenRun {
    return this.state.open!;
  }

  emit(event: AgentEvent): void {
    this.events.emit(event);
  }

  // ── What is written ────────────────────────────────────────────────────────────────────────────────────────

  /** Writes entries together with the state changes that wait, and reports those. `how`: see `Journal`. */
  append(entries: readonly EntryDraft[], how: 'append' | 'appendLate' | 'end' = 'append'): Awaitable<void> {
    const { journal } = this;
    // An append that is refused must not take along what waits in cells.
    if (how !== 'end') journal.check();
    const due = this.time?.isDue(this.open.activeMs);
    // The trace is written along with whatever is written anyway. Late entries don't take it: the journal asks for it.
    const traced = how === 'appendLate' ? undefined : this.trace?.entry(how === 'end');
    if (!this.hasUnwritten && !due) {
      if (!traced) return this.write(entries, how);
      // The end of a run comes last.
      if (how !== 'end') return this.write([...entries, traced], how);
    }
    const pastTurn = entries.some(({ type }) => type === 'message' || type === 'run_end');
    const changes = this.cells.commit(pastTurn);
    const drafts = [...(due ? [this.active()] : []), ...entries, ...(traced ? [traced] : [])];
    const all = together(this.runId, drafts, changes, this.dueExpenses(how));
    const wait = this.write(all, how);
    if (wait) return wait.then(() => this.tellChanges(changes));
    this.tellChanges(changes);
  }

  private write(entries: readonly EntryDraft[], how: 'append' | 'appendLate' | 'end'): Awaitable<void> {
    const { journal } = this;
    if (how === 'append') return journal.append(entries);
    return how === 'end' ? journal.end(entries) : journal.appendLate(entries);
  }

  /** The entry that time limits count from in the next part of the run. */
  active(): EntryDraft {
    return { type: 'active', runId: this.runId, ms: this.activeMs };
  }

  get hasUnwritten(): boolean {
    return this.cells.dirty || this.unjournaled.length > 0;
  }

  private tellChanges(changes: readonly CellChange[]): void {
    if (!this.watched) return;
    const { runId, sessionId } = this;
    for (const { key: cell, value, hidden } of changes)
      if (!hidden) this.emit({ type: 'state_change', runId, sessionId, cell, value });
  }

  /** Did the store throw it, or is it why nothing more can be written? */
  isOfStore(error: unknown): boolean {
    return error !== undefined && (this.journal.broken === error || isThrownByStore(error));
  }

  /** Nobody here knows how far the run got. It fails with this error, writes nothing more and can be resumed. */
  surrender(error: unknown): unknown {
    this.journal.broken ??= error;
    return error;
  }

  // ── What is spent ──────────────────────────────────────────────────────────────────────────────────────────

  /** Replaces a reservation by what a call really used. The usage of the message that is kept is journaled with it. */
  bookUsage(price: Price | undefined, reservation: Reservation | undefined, usage: Usage): void {
    const before = this.budget.costUsd;
    this.budget.bookUsage(price, reservation, usage);
    // Once the cost is unknown it stays unknown, so that is written once.
    if (usage === UNKNOWN_USAGE ? before === undefined : isNothing(usage)) return;
    const after = this.budget.costUsd;
    const costUsd = before === undefined || after === undefined ? undefined : after - before;
    this.remember({ usage, costUsd });
  }

  /** A child has a journal of its own, but its parent has to remember the cost too. */
  private remember(expense: Expense): void {
    this.unjournaled.push(expense);
    this.start.parent?.remember({ ...expense, from: this.sessionId });
  }

  /**
   * Counts what a sub-agent has spent, as far as it isn't counted: it may have spent it before a crash, when this run
   * could not write it down any more. The callers of this run may know more of it.
   */
  bookSpent(
    { sessionId: from, usage, costUsd, open }: SessionState,
    unwritten: readonly Expense[] = [],
  ): void {
    const { parent } = this.start;
    const noted = this.open.batch?.spent?.get(from);
    const known = [...(noted ? [noted] : []), ...this.unjournaled.filter((one) => one.from === from)];
    const missed = missing([{ usage, costUsd }, ...(open ? [open] : []), ...unwritten], known);
    if (isNothing(missed.usage)) return;
    this.budget.addBelow(parent?.budget, missed.usage, missed.costUsd);
    this.unjournaled.push({ ...missed, from });
    parent?.bookSpent(this.state, this.unjournaled);
  }

  /** An answer may come before its input is allowed. Its usage is written with the answer, not with the input. */
  private dueExpenses(how: 'append' | 'appendLate' | 'end'): readonly Expense[] {
    if (this.pendingInput && how === 'append') return NOTHING;
    const due = this.unjournaled;
    this.unjournaled = [];
    return due;
  }

  /** The cost of the usage a message carries. Removes it from the usage that belongs to no message. */
  claimUsage(usage: Usage | undefined): Expense | undefined {
    const { unjournaled } = this;
    // Usually it is the last.
    if (unjournaled.at(-1)?.usage === usage) return unjournaled.pop();
    const at = unjournaled.findLastIndex((one) => one.usage === usage);
    return at < 0 ? undefined : unjournaled.splice(at, 1)[0];
  }

  // ── How long it is active ──────────────────────────────────────────────────────────────────────────────────

  private activeTime(): ActiveTime {
    return new ActiveTime(this.clock, this.open.activeMs, this.limits.timeoutMs);
  }

  /** Time spent in here is not active time, neither for this run nor for its parent. */
  paused<T>(wait: () => Promise<T>): Promise<T> {
    const { parent } = this.start;
    this.time ??= this.activeTime();
    return this.time.paused(() => (parent ? parent.paused(wait) : wait()));
  }

  get isPaused(): boolean {
    return this.time?.isPaused ?? false;
  }

  /** How long the run has not been active, including the current pause. */
  get pausedMs(): number {
    return this.time?.pausedMs ?? 0;
  }

  /** How long it has been active, if its time is limited. */
  get activeMs(): number {
    return this.time?.ms ?? 0;
  }
}
