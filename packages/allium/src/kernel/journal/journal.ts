/** Writes the journal of a session during a run. */

import { type Clock, soon } from '../lib/clock.js';
import { AlliumError, isThenable } from '../lib/errors.js';
import { type Linked, LinkedList } from '../lib/linked-list.js';
import { type Expense, NOTHING } from '../messages/messages.js';
import type { CellChange } from '../protocol/state.js';
import {
  type Awaitable,
  ENTRY_VERSION,
  type EntryBody,
  type EntryDraft,
  type NewEntry,
  type Store,
} from '../protocol/store.js';
import type { SessionState } from './session-state.js';
import { dueSnapshot } from './snapshot.js';

/** Writes entries, one append at a time. What accumulates during a slow append goes into the next one together. */
export class Journal implements Linked<Journal> {
  before: Journal | undefined = undefined;
  after: Journal | undefined = undefined;
  isBehind = false;
  /** The failure after which nothing more can be written. */
  broken: unknown = undefined;
  /** What else there is to write when late entries are written. */
  rest: { entry(isEnd: boolean): EntryDraft | undefined } | undefined = undefined;
  private waiting: readonly NewEntry[] = NOTHING;
  private busy: Promise<void> | undefined = undefined;
  /** The run is ending: only `end` may write. */
  private sealed = false;
  /** Entries that are in the state but not in the store yet: the start of a run, or a late result. Written first. */
  private ahead: readonly NewEntry[] = NOTHING;

  constructor(
    private readonly store: Store,
    readonly state: SessionState,
    private readonly clock: Clock,
  ) {}

  /** Starts a run. Its start is written with the next entries, so that a crash never leaves a run without its input. */
  begin(body: EntryBody & { readonly type: 'run_start' }): void {
    const entry = completed(body, this.clock.now());
    this.ahead = [entry];
    this.state.apply(entry);
  }

  /** Durable, and part of the state, when it returns or resolves. */
  append(bodies: readonly EntryDraft[]): Awaitable<void> {
    this.check();
    this.waiting = joined(this.waiting, this.completedAll(bodies));
    return this.flush();
  }

  /**
   * Part of the state when it returns. Durable with the next append, or as soon as the process would wait for something. If
   * that write fails, the next append throws.
   */
  appendLate(bodies: readonly EntryDraft[]): Awaitable<void> {
    if (this.busy || this.waiting.length > 0 || this.ahead.length > 0) return this.append(bodies);
    this.check();
    const entries = this.completedAll(bodies);
    try {
      this.apply(entries);
    } catch (error) {
      this.fail(error);
    }
    this.ahead = entries;
    writeSoon(this);
  }

  /**
   * From here on only `end` may write: code that was left behind might still try. Resolves when pending appends are written
   * or have failed, because only then the state shows what has to be ended; usually there are none.
   */
  seal(): Promise<void> | undefined {
    this.sealed = true;
    return this.busy || this.waiting.length > 0 ? this.settlePending() : undefined;
  }

  private async settlePending(): Promise<void> {
    try {
      while (this.busy || this.waiting.length > 0) await this.flush();
    } catch {
      // `broken` says why, and `end` throws it.
    }
  }

  /** The run does not end after all. */
  unseal(): void {
    this.sealed = false;
  }

  /** The last entries of a run, once it is sealed. */
  end(bodies: readonly EntryDraft[]): Awaitable<void> {
    this.rest = undefined;
    return this.write(this.completedAll(bodies));
  }

  /** Throws if the run can't write any more. */
  check(): void {
    if (this.broken !== undefined) throw this.broken;
    if (this.sealed) throw tooLate(this.state.open?.runId, this.state.sessionId);
  }

  /** Resolves when late entries are written. If that fails, the next append throws. */
  async settleLate(): Promise<void> {
    try {
      await this.busy;
      await this.writeLate();
    } catch {
      // The next append throws it.
    }
  }

  /** Writes late entries, unless an append has done so. The start of a run is only written with its input. */
  writeLate(): Awaitable<void> {
    if (this.ahead.length === 0 || this.ahead[0]!.type === 'run_start') return;
    const rest = this.rest?.entry(false);
    return this.append(rest ? [rest] : []);
  }

  private completedAll(bodies: readonly EntryDraft[]): readonly NewEntry[] {
    if (this.broken !== undefined) throw this.broken;
    const { state } = this;
    const at = this.clock.now();
    for (let i = 0; i < bodies.length; i++) {
      const body = bodies[i] as EntryDraft & { readonly runId?: string };
      // Code that ignored an abort may still write. A run that has ended takes no more entries.
      if (body.runId !== undefined && body.runId !== state.open?.runId)
        throw tooLate(body.runId, state.sessionId, body.type);
      completed(body, at);
    }
    return bodies as readonly NewEntry[];
  }

  private flush(): Awaitable<void> {
    if (this.broken !== undefined) throw this.broken;
    if (this.busy) return this.busy.then(() => this.flush());
    const entries = this.waiting;
    if (entries.length === 0 && this.ahead.length === 0) return;
    this.waiting = NOTHING;
    return this.write(entries);
  }

  private write(entries: readonly NewEntry[]): Awaitable<void> {
    const { ahead, state } = this;
    this.ahead = NOTHING;
    notBehind(this);
    try {
      const all = joined(ahead, entries);
      const snapshot =
        this.store.tail && dueSnapshot(state, state.seq + ahead.length, ahead.at(-1) ?? state.last);
      const seq = snapshot
        ? this.store.append(state.sessionId, state.seq, all, snapshot)
        : this.store.append(state.sessionId, state.seq, all);
      if (!isThenable(seq)) return this.written(all, entries, seq);
      this.busy = seq
        .then(
          (last) => this.written(all, entries, last),
          (error) => this.fail(error),
        )
        .finally(() => {
          this.busy = undefined;
        });
      this.busy.catch(() => {});
      return this.busy;
    } catch (error) {
      this.fail(error);
    }
  }

  /** The store has `all`. The state lacks only `entries`, the last of them. */
  private written(all: readonly NewEntry[], entries: readonly NewEntry[], last: number): void {
    const { state } = this;
    state.seq += all.length;
    state.last = all.at(-1) ?? state.last;
    this.apply(entries);
    if (state.seq !== last)
      this.fail(
        new AlliumError(
          'SESSION_CORRUPT',
          `The store says session "${state.sessionId}" is at entry ${last} after an append, but it should be at ${state.seq}. Check the store with testStore() of allium/testing.`,
        ),
      );
  }

  private apply(entries: readonly NewEntry[]): void {
    // Cells got their values when they were committed, and may have newer ones by now.
    for (let i = 0; i < entries.length; i++) if (entries[i]!.type !== 'state') this.state.apply(entries[i]!);
  }

  /** Nothing more is written after a failure: the state in memory may be ahead of the store. */
  private fail(error: unknown): never {
    this.broken = error;
    throw error;
  }
}

/** Joins lists only if it has to. Every turn writes one result with one answer, and a pair costs less than a list that grows. */
function joined(first: readonly NewEntry[], then: readonly NewEntry[]): readonly NewEntry[] {
  if (first.length === 0) return then;
  if (then.length === 0) return first;
  return first.length === 1 && then.length === 1 ? [first[0]!, then[0]!] : [...first, ...then];
}

/** Completed in place, because a draft is made for one append. */
function completed(body: EntryDraft, at: number): NewEntry {
  body.v = ENTRY_VERSION;
  body.at = at;
  return body as NewEntry;
}

function tooLate(runId: string | undefined, sessionId: string, type = 'late'): AlliumError {
  return new AlliumError(
    'SESSION_CONFLICT',
    `Run "${runId}" of session "${sessionId}" has already ended, so a late ${type} entry was not written. Await everything the run starts.`,
  );
}

/**
 * Journals whose state is ahead of the store. They share one timer: with one each, a thousand short runs in a row would all be
 * kept in memory until the last has ended.
 */
const behind = new LinkedList<Journal>();
let looking = false;

function writeSoon(journal: Journal): void {
  behind.add(journal);
  journal.isBehind = true;
  if (looking) return;
  looking = true;
  soon(() => {
    looking = false;
    for (let one = behind.first; one !== undefined; one = behind.first) {
      notBehind(one);
      void one.settleLate();
    }
  });
}

function notBehind(journal: Journal): void {
  if (!journal.isBehind) return;
  journal.isBehind = false;
  behind.remove(journal);
}

/** Entries with the state changes and expenses that belong to them. The end of the run comes after everything else. */
export function together(
  runId: string,
  entries: readonly EntryDraft[],
  changes: readonly CellChange[],
  expenses: readonly Expense[],
): readonly EntryDraft[] {
  const states = changes.map(({ key: cell, version, scope, value, stays }): EntryDraft => {
    return {
      type: 'state',
      ...(scope === 'run' && { runId }),
      cell,
      version,
      value,
      ...(stays && { stays }),
    };
  });
  const usages = expenses.map(({ usage, costUsd, from }): EntryDraft => {
    const known = { ...(costUsd !== undefined && { costUsd }), ...(from !== undefined && { from }) };
    return { type: 'usage', runId, usage, ...known };
  });
  const end = entries.filter(({ type }) => type === 'run_end');
  return [...entries.filter(({ type }) => type !== 'run_end'), ...states, ...usages, ...end];
}
