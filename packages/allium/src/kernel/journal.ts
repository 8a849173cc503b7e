/** The journal of a session while a run writes it. */
import type { Clock } from './clock.js';
import { AlliumError, isThenable } from './errors.js';
import type { SessionState } from './session-state.js';
import {
  type Awaitable,
  ENTRY_VERSION,
  type EntryBody,
  type EntryDraft,
  type NewEntry,
  type Store,
} from './store.js';

/** Writes entries, one append at a time; what piles up behind a slow append goes into the next one together. */
export class Journal {
  private waiting: NewEntry[] = [];
  private busy: Promise<void> | undefined;
  /** Set by a failure, here or elsewhere: nothing more is written. */ broken: unknown;
  /** The start of a run, not written yet. */
  private held: NewEntry | undefined;

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
    this.held = entry;
    this.state.apply(entry);
  }

  /** Durable, and part of the state, when it returns or resolves. */
  append(bodies: readonly EntryDraft[]): Awaitable<void> {
    if (this.broken !== undefined) throw this.broken;
    const at = this.clock.now();
    // The bodies were made for this append; completing them in place is several times cheaper than copying.
    const entries = bodies as readonly (NewEntry & { v: number; at: number })[];
    for (let i = 0; i < entries.length; i++) {
      const entry = entries[i]!;
      this.checkOpen(entry);
      entry.v = ENTRY_VERSION;
      entry.at = at;
    }
    if (this.busy) {
      this.waiting.push(...entries);
      return this.busy.then(() => this.flush());
    }
    const wait = this.write(entries);
    if (!isThenable(wait)) return;
    this.busy = wait.finally(() => {
      this.busy = undefined;
    });
    this.busy.catch(ignore);
    return this.busy;
  }

  /** Code that ignored an abort may come late: for a run that has ended nothing more is written. */
  private checkOpen({ runId, type }: EntryBody & { readonly runId?: string }): void {
    if (runId === undefined || runId === this.state.open?.runId) return;
    throw new AlliumError(
      'SESSION_CONFLICT',
      `Run "${runId}" of session "${this.state.sessionId}" has ended. A ${type} entry that came late was not written.`,
    );
  }

  private flush(): Awaitable<void> {
    if (this.broken !== undefined) throw this.broken;
    if (this.busy) return this.busy.then(() => this.flush());
    if (this.waiting.length === 0) return;
    const entries = this.waiting;
    this.waiting = [];
    const wait = this.write(entries);
    if (!isThenable(wait)) return;
    this.busy = wait.finally(() => {
      this.busy = undefined;
    });
    this.busy.catch(ignore);
    return this.busy;
  }

  private write(entries: readonly NewEntry[]): Awaitable<void> {
    const { held } = this;
    this.held = undefined;
    try {
      const seq = this.store.append(
        this.state.sessionId,
        this.state.seq,
        held ? [held, ...entries] : entries,
      );
      if (held) this.state.seq++;
      if (isThenable(seq)) {
        return seq.then(
          (last) => this.take(entries, last),
          (error) => this.fail(error),
        );
      }
      this.take(entries, seq);
    } catch (error) {
      this.fail(error);
    }
  }

  private take(entries: readonly NewEntry[], last: number): void {
    for (const entry of entries) {
      this.state.seq++;
      // Cells hold their values since they were committed; meanwhile there may be newer ones.
      if (entry.type !== 'state') this.state.apply(entry);
    }
    if (this.state.seq !== last)
      this.fail(
        new AlliumError(
          'SESSION_CORRUPT',
          `The store says session "${this.state.sessionId}" is at entry ${last} after an append; it should be at ${this.state.seq}.`,
        ),
      );
  }

  /** Nothing more is written after a failure: the state in memory may be ahead of the store. */
  private fail(error: unknown): never {
    this.broken = error;
    throw error;
  }
}

function ignore(): void {}
