/** The journal of a session while a run writes it. */
import { type Clock, soon } from '../lib/clock.js';
import { AlliumError, isThenable } from '../lib/errors.js';
import type { Usage } from '../messages/messages.js';
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

/** Writes entries, one append at a time; what piles up behind a slow append goes into the next one together. */
export class Journal {
  private waiting: NewEntry[] = [];
  private busy: Promise<void> | undefined;
  /** Set by a failure, here or elsewhere: nothing more is written. */ broken: unknown;
  /** The run is being ended: only `end` writes. */
  private sealed = false;
  /** What the state has and the store has not: the start of a run, or a result that may come late. Written first. */
  private ahead: readonly NewEntry[] | undefined;

  constructor(
    private readonly store: Store,
    readonly state: SessionState,
    private readonly clock: Clock,
  ) {}

  /** Begins a run. Its start is written together with what comes first in it: a run without its input is never left behind. */
  begin(body: EntryBody & { readonly type: 'run_start' }): void {
    const entry = body as NewEntry & { v: number; at: number };
    entry.v = ENTRY_VERSION;
    entry.at = this.clock.now();
    this.ahead = [entry];
    this.state.apply(entry);
  }

  /** Durable, and part of the state, when it returns or resolves. */
  append(bodies: readonly EntryDraft[]): Awaitable<void> {
    this.check();
    const entries = this.dated(bodies, this.clock.now());
    // An append that has just ended leaves a moment in which others still wait: they come first.
    if (!this.busy && this.waiting.length === 0) return this.begun(this.write(entries));
    this.waiting.push(...entries);
    return this.flush();
  }

  /**
   * Part of the state when it returns; durable with the next append, or as soon as the process would wait for
   * something. If it cannot be written then, the next append throws why.
   */
  appendLate(bodies: readonly EntryDraft[]): Awaitable<void> {
    this.check();
    if (this.busy || this.waiting.length > 0 || this.ahead) return this.append(bodies);
    // The time is that of the append which takes them along.
    const entries = this.dated(bodies, UNDATED);
    try {
      this.apply(entries);
    } catch (error) {
      this.fail(error);
    }
    this.ahead = entries;
    writeSoon(this);
  }

  /** One entry, together with the one that is late, as most turns write them: nothing is walked that is not there. */
  appendOne(body: EntryDraft): Awaitable<void> {
    const { ahead, state } = this;
    if (this.busy || ahead?.length !== 1) return this.append([body]);
    this.check();
    const entry = this.datedOne(body, this.clock.now());
    const late = ahead[0] as NewEntry & { at: number };
    if (late.at === UNDATED) late.at = entry.at;
    this.ahead = undefined;
    upToDate(this);
    try {
      const seq = this.store.append(state.sessionId, state.seq, [late, entry]);
      if (!isThenable(seq)) return this.takeOne(entry, seq);
      const taken = seq.then(
        (last) => this.takeOne(entry, last),
        (error) => this.fail(error),
      );
      return this.begun(taken);
    } catch (error) {
      this.fail(error);
    }
  }

  private takeOne(entry: NewEntry, last: number): void {
    const { state } = this;
    state.seq += 2;
    state.last = entry;
    state.apply(entry);
    if (state.seq !== last) this.fail(astray(state, last));
  }

  /**
   * From here on nobody writes but `end`: code that was left behind may still come with something. Settles when what
   * was under way is written, or cannot be; only then the state says what there is to end.
   */
  seal(): Awaitable<void> {
    this.sealed = true;
    if (!this.busy && this.waiting.length === 0) return;
    return this.drained();
  }

  private async drained(): Promise<void> {
    try {
      while (this.busy || this.waiting.length > 0) await this.flush();
    } catch {
      // `broken` says why, and `end` throws it.
    }
  }

  /** The last entries of a run, once it is sealed. */
  end(bodies: readonly EntryDraft[]): Awaitable<void> {
    return this.begun(this.write(this.dated(bodies, this.clock.now())));
  }

  /** Throws if nothing more can be written by a run that is under way. */
  check(): void {
    if (this.broken !== undefined) throw this.broken;
    if (this.sealed) throw tooLate(this.state.open?.runId, this.state.sessionId);
  }

  /** Writes what is late, unless an append took it along. */
  writeLate(): void {
    if (this.ahead === undefined || this.broken !== undefined) return;
    try {
      void this.append([]);
    } catch {
      // The next append throws it.
    }
  }

  /** Settles when what is late is written, also by an append under way. Whether it could be, the next append says. */
  async settleLate(): Promise<void> {
    try {
      await this.busy;
      // The start of a run is written with its input only.
      if (this.ahead?.[0]?.at === UNDATED) await this.append([]);
    } catch {
      // As above.
    }
  }

  private dated(bodies: readonly EntryDraft[], at: number): readonly NewEntry[] {
    // The bodies were made for this append; completing them in place is several times cheaper than copying.
    const entries = bodies as readonly (NewEntry & { v: number; at: number })[];
    for (let i = 0; i < entries.length; i++) this.datedOne(entries[i]!, at);
    return entries;
  }

  private datedOne(body: EntryDraft, at: number): NewEntry {
    if (this.broken !== undefined) throw this.broken;
    const entry = body as NewEntry & { v: number; at: number };
    this.checkOpen(entry);
    entry.v = ENTRY_VERSION;
    entry.at = at;
    return entry;
  }

  private begun(wait: Awaitable<void>): Awaitable<void> {
    if (!isThenable(wait)) return;
    this.busy = wait.finally(() => {
      this.busy = undefined;
    });
    this.busy.catch(ignore);
    return this.busy;
  }

  /** Code that ignored an abort may come late: for a run that has ended nothing more is written. */
  private checkOpen({ runId, type }: EntryBody & { readonly runId?: string }): void {
    if (runId !== undefined && runId !== this.state.open?.runId)
      throw tooLate(runId, this.state.sessionId, type);
  }

  private flush(): Awaitable<void> {
    if (this.broken !== undefined) throw this.broken;
    if (this.busy) return this.busy.then(() => this.flush());
    if (this.waiting.length === 0) return;
    const entries = this.waiting;
    this.waiting = [];
    return this.begun(this.write(entries));
  }

  private write(entries: readonly NewEntry[]): Awaitable<void> {
    const { ahead, state } = this;
    if (ahead) {
      this.ahead = undefined;
      upToDate(this);
    }
    try {
      const all = ahead ? this.joined(ahead, entries) : entries;
      const seq = this.store.append(state.sessionId, state.seq, all);
      if (isThenable(seq)) {
        return seq.then(
          (last) => this.take(ahead, entries, last),
          (error) => this.fail(error),
        );
      }
      this.take(ahead, entries, seq);
    } catch (error) {
      this.fail(error);
    }
  }

  private joined(
    ahead: readonly (NewEntry & { at: number })[],
    entries: readonly NewEntry[],
  ): readonly NewEntry[] {
    if (ahead[0]!.at === UNDATED) {
      const at = entries.length > 0 ? entries[0]!.at : this.clock.now();
      for (let i = 0; i < ahead.length; i++) ahead[i]!.at = at;
    }
    // Nearly always a result and an answer, for which a list of two is several times cheaper than spreading.
    return ahead.length === 1 && entries.length === 1 ? [ahead[0]!, entries[0]!] : [...ahead, ...entries];
  }

  /** `ahead` came before `entries`, and the state has them already. */
  private take(ahead: readonly NewEntry[] | undefined, entries: readonly NewEntry[], last: number): void {
    this.state.seq += entries.length + (ahead ? ahead.length : 0);
    this.state.last = entries.at(-1) ?? ahead?.at(-1) ?? this.state.last;
    this.apply(entries);
    if (this.state.seq !== last) this.fail(astray(this.state, last));
  }

  private apply(entries: readonly NewEntry[]): void {
    for (let i = 0; i < entries.length; i++) {
      const entry = entries[i]!;
      // Cells hold their values since they were committed; meanwhile there may be newer ones.
      if (entry.type !== 'state') this.state.apply(entry);
    }
  }

  /** Nothing more is written after a failure: the state in memory may be ahead of the store. */
  private fail(error: unknown): never {
    this.broken = error;
    throw error;
  }
}

function astray({ sessionId, seq }: SessionState, last: number): AlliumError {
  return new AlliumError(
    'SESSION_CORRUPT',
    `The store says session "${sessionId}" is at entry ${last} after an append; it should be at ${seq}.`,
  );
}

function tooLate(runId: string | undefined, sessionId: string, type = 'late'): AlliumError {
  return new AlliumError(
    'SESSION_CONFLICT',
    `Run "${runId}" of session "${sessionId}" has ended. A ${type} entry that came late was not written.`,
  );
}

function ignore(): void {}

const UNDATED = -1;

/**
 * Journals that are behind their states: mostly none or one, so that one has a place of its own. One look at all of them,
 * and not one for each: were a thousand short runs to follow each other without a pause, a thousand would be remembered
 * until the last has ended.
 */
let behind: Journal | undefined;
const others = new Set<Journal>();
let looking = false;

function writeSoon(journal: Journal): void {
  if (behind === undefined) behind = journal;
  else others.add(journal);
  if (looking) return;
  looking = true;
  soon(writeBehind);
}

function upToDate(journal: Journal): void {
  if (behind === journal) behind = undefined;
  else others.delete(journal);
}

function writeBehind(): void {
  const late = behind === undefined ? [...others] : [behind, ...others];
  looking = false;
  behind = undefined;
  others.clear();
  for (const journal of late) journal.writeLate();
}

/** What a model call used that is no turn of the loop. */
export interface Expense {
  readonly usage: Usage;
  readonly costUsd: number | undefined;
}

/** Entries with the state changes and expenses that belong to them. The end of the run comes after everything else. */
export function together(
  runId: string,
  entries: readonly EntryDraft[],
  changes: readonly CellChange[],
  expenses: readonly Expense[],
): readonly EntryDraft[] {
  const states = changes.map((change) => stateEntry(runId, change));
  const last = entries.at(-1);
  if (expenses.length === 0 && last?.type !== 'run_end') return [...entries, ...states];
  const usages = expenses.map(({ usage, costUsd }): EntryDraft => {
    return { type: 'usage', runId, usage, ...(costUsd !== undefined && { costUsd }) };
  });
  if (last?.type !== 'run_end') return [...entries, ...states, ...usages];
  return [...entries.slice(0, -1), ...states, ...usages, last];
}

/** Written out: entries of one shape are several times cheaper to look at than spread ones. */
function stateEntry(runId: string, { key: cell, version, scope, value }: CellChange): EntryDraft {
  if (scope === 'session') return { v: ENTRY_VERSION, at: 0, type: 'state', cell, version, value };
  return { v: ENTRY_VERSION, at: 0, type: 'state', runId, cell, version, value };
}
