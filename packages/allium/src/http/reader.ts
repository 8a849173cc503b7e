/** Reads a session from any process: past events from its journal, new ones live if this process runs it. */
import { AlliumError, type Clock, type Store, sleep } from '../index.js';
import { type Cursor, parseCursor, START, stalledId, waitingId } from './cursor.js';
import type { SentEvent } from './events.js';
import { isTryOf } from './from-start.js';
import type { LiveRun } from './live-run.js';
import { OpenState } from './open-state.js';
import { type Projection, questionOf } from './projection.js';
import { tellEntry } from './tell.js';

export interface FollowOptions {
  /**
   * Where to begin: after the event with this id (`Last-Event-ID`), with the last run (`'run'`), or with what comes
   * from now on (`'now'`). @default the beginning of the session
   */
  readonly after?: string | undefined;
  /** Continue with later runs when the run has ended. @default false */
  readonly stay?: boolean;
  /** Ends the reading; the run continues. */
  readonly signal?: AbortSignal;
}

/** Reads events in batches: as many as are available. */
export interface EventReader {
  /** Waits for events. Undefined at the end. */
  next(): Promise<readonly SentEvent[] | undefined>;
  /** Is there anything to send, now or later? Does not wait for events. */
  hasMore(): Promise<boolean>;
  /** Stops reading: a `next` that waits ends. The run continues. */
  leave(): void;
}

/** What the readers of a hub share. */
export interface Place {
  readonly store: Store;
  readonly projection: Projection;
  readonly live: Map<string, LiveRun>;
  readonly clock: Clock;
  readonly pollMs: readonly [number, number];
  readonly silenceMs: number;
  readonly watch: ((sessionId: string, wake: () => void) => () => void) | undefined;
}

/**
 * One reader of one session. It reads the journal until it has caught up with a run of this process, and then that
 * run.
 */
export class SessionReader implements EventReader {
  /** Where it is, unless `id` says more. */
  private at: Cursor = START;
  /** The last entry that had anything to send. */
  private told = 0;
  /** The last event it got from a run. */
  private id = '';
  private left = false;
  /** Ends the current wait. */
  private wake: () => void = () => {};
  private unwatch: (() => void) | undefined;
  /** The session has changed since the last look at the journal began. */
  private stirred = false;
  private state = new OpenState();
  private from = 0;
  private found = false;
  private pause: number;
  private idle = false;
  private done = false;
  /** Read but not returned yet. */
  private kept: readonly SentEvent[] | undefined;

  constructor(
    private readonly place: Place,
    private readonly sessionId: string,
    private options: FollowOptions,
    private run?: LiveRun,
    seq?: number,
  ) {
    this.pause = place.pollMs[0];
    const { signal } = options;
    signal?.addEventListener('abort', this.onAbort, { once: true });
    if (signal?.aborted) this.left = true;
    if (seq !== undefined) {
      this.at = { ...START, seq };
      this.told = seq;
      this.found = true;
    }
  }

  async next(): Promise<readonly SentEvent[] | undefined> {
    try {
      const sent = await this.look();
      if (sent === undefined) this.forgetSignal();
      return sent;
    } finally {
      this.unwatch?.();
      this.unwatch = undefined;
    }
  }

  private async look(): Promise<readonly SentEvent[] | undefined> {
    const { stay = false } = this.options;
    if (!this.found) await this.find();
    const { kept } = this;
    this.kept = undefined;
    if (kept) return kept;
    while (!this.done && !this.left) {
      if (!this.run) this.watch();
      const sent = this.run ? await this.fromRun(this.run) : await this.fromJournal();
      if (sent === undefined) continue;
      if (sent.length > 0) {
        this.pause = this.place.pollMs[0];
        this.idle = false;
        return sent;
      }
      if (!this.state.open && !stay) break;
      if (this.idle && this.state.waits && !stay) return this.waiting();
      if (this.isStalled && !this.at.stalled) return this.stalled(stay);
      this.idle = true;
      await this.wait();
    }
    return undefined;
  }

  /** Begins before the store is asked: what happens meanwhile counts, too. */
  private watch(): void {
    this.stirred = false;
    this.unwatch ??= this.place.watch?.(this.sessionId, () => {
      this.stirred = true;
      this.wake();
    });
  }

  leave(): void {
    this.left = true;
    this.forgetSignal();
    this.wake();
  }

  private readonly onAbort = (): void => this.leave();

  /** The signal may outlive many readers. */
  private forgetSignal(): void {
    this.options.signal?.removeEventListener('abort', this.onAbort);
  }

  async hasMore(): Promise<boolean> {
    if (!this.found) await this.find();
    if (this.run || this.place.live.has(this.sessionId)) return true;
    const sent = await this.fromJournal();
    if (sent === undefined || sent.length > 0) {
      this.kept = sent;
      return true;
    }
    if (this.state.waits && this.at.waiting === 2) return false;
    return this.state.open && !(this.isStalled && this.at.stalled);
  }

  /** Undefined: look elsewhere, or again. */
  private async fromRun(run: LiveRun): Promise<readonly SentEvent[] | undefined> {
    const look = run.since(this.from);
    // Too far behind: the journal has what was missed.
    if (look === undefined) return this.backToJournal();
    this.from = look.from;
    if (look.sent.length > 0) return this.took(look.sent);
    if (!run.closed) {
      await this.changed(run);
      return undefined;
    }
    this.done = run.hasEnded && !this.options.stay;
    return this.backToJournal();
  }

  /** Continues after the last event it got, and checks again whether a run is open there. */
  private async backToJournal(): Promise<undefined> {
    this.run = undefined;
    this.at = parseCursor(this.id) ?? this.at;
    if (this.done || this.id === '') return;
    this.options = { ...this.options, after: this.id };
    await this.find();
  }

  private async fromJournal(): Promise<readonly SentEvent[] | undefined> {
    const { live, store, projection } = this.place;
    const known = live.get(this.sessionId);
    const place = known?.placeAfter(this.id);
    if (known && place !== undefined) return this.join(known, place);
    const from = this.at.index === Number.POSITIVE_INFINITY ? this.at.seq + 1 : this.at.seq;
    const entries = await store.read(this.sessionId, from);
    const run = live.get(this.sessionId);
    const sent: SentEvent[] = [];
    for (const entry of entries) {
      // What the run has not sent yet, it sends itself, together with what comes in between.
      if (run && entry.seq > run.head) break;
      this.state.apply(entry);
      const after = entry.seq === this.at.seq ? this.at.index : -1;
      const told = tellEntry(projection, entry, after, this.at.shown);
      sent.push(...told.sent);
      if (told.sent.length > 0) this.told = entry.seq;
      this.at = { seq: entry.seq, index: Number.POSITIVE_INFINITY, shown: told.shown };
    }
    const last = sent.at(-1);
    if (last) this.id = last.id;
    if (!run) return sent;
    // The run may lag behind the journal by entries that have nothing to send.
    if (this.at.seq >= run.head && this.told <= run.head) {
      const look = run.snapshot(this.at);
      this.join(run, look.from);
      sent.push(...this.took(look.sent));
    } else if (sent.length === 0) await this.changed(run);
    return sent.length > 0 ? sent : undefined;
  }

  /** Waits until the run has something new. */
  private changed(run: LiveRun): Promise<void> {
    return new Promise((resolve) => {
      this.wake = resolve;
      if (this.left) resolve();
      else run.onChange(resolve);
    });
  }

  private join(run: LiveRun, from: number): undefined {
    this.run = run;
    this.from = from;
  }

  /** Remembers where it is after these events. */
  private took(sent: readonly SentEvent[]): readonly SentEvent[] {
    const last = sent.at(-1);
    if (last) this.id = last.id;
    return sent;
  }

  /** The run continues when somebody answers, so there is nothing to wait for now. */
  private waiting(): readonly SentEvent[] | undefined {
    this.done = true;
    const { seq } = this.at;
    const { runId, requests } = this.state;
    const questions = [...requests.values()].map(questionOf);
    const sent: SentEvent[] = [
      { id: waitingId(seq, 1), event: { type: 'suspended', questions } },
      {
        id: waitingId(seq, 2),
        event: { type: 'agent_end', runId, status: 'suspended', stop: SUSPENDED },
      },
    ];
    const left = sent.slice(this.at.waiting ?? 0);
    return left.length > 0 ? left : undefined;
  }

  /** Has the process that runs it written nothing for too long? Nothing else shows that it is alive. */
  private get isStalled(): boolean {
    const { open, waits, at } = this.state;
    const { clock, live, silenceMs } = this.place;
    return open && !waits && !live.has(this.sessionId) && clock.now() - at >= silenceMs;
  }

  private stalled(stay: boolean): readonly SentEvent[] {
    this.done = !stay;
    const { seq, shown } = this.at;
    const { runId, at } = this.state;
    this.at = { ...this.at, stalled: true };
    const sent: SentEvent = { id: stalledId(seq, shown), event: { type: 'stalled', runId, since: at } };
    return this.took([sent]);
  }

  /** Finds where to begin, and whether a run is open there. */
  private async find(): Promise<void> {
    this.found = true;
    const { after } = this.options;
    const { store, live } = this.place;
    const named = after === undefined || after === 'run' || after === 'now';
    const cursor = named ? undefined : parseCursor(after);
    if (!named && cursor === undefined)
      throw new AlliumError(
        'INVALID_OPTION',
        'The id of the last event is not one this server has sent. Leave it out to read from the start.',
      );
    this.state = new OpenState();
    if (cursor) {
      this.at = cursor;
      this.id = after!;
      if (live.get(this.sessionId)?.placeAfter(this.id) !== undefined) return;
    }
    if (after === undefined) return;
    const entries = await store.read(this.sessionId, 1);
    const starts = entries.filter((one) => one.type === 'run_start');
    // With all attempts, if it was repeated.
    const start = starts.find(({ runId }) => isTryOf(runId, starts.at(-1)!.runId));
    const until = cursor ? cursor.seq : after === 'run' ? (start?.seq ?? 1) - 1 : (entries.at(-1)?.seq ?? 0);
    for (const entry of entries) {
      if (entry.seq > until) break;
      this.state.apply(entry);
      if (this.place.projection.entry(entry).length > 0) this.told = entry.seq;
    }
    if (!cursor) this.at = { ...START, seq: until };
  }

  private async wait(): Promise<void> {
    const { clock, pollMs } = this.place;
    const woken = new AbortController();
    this.wake = () => woken.abort();
    try {
      if (!this.left && !this.stirred) await sleep(this.pause, woken.signal, clock);
    } catch {
      // Woken.
    }
    this.pause = Math.min(this.pause * 2, pollMs[1]);
  }
}

const SUSPENDED = { reason: 'suspended', message: 'The run waits for an answer.' };
