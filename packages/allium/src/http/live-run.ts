/**
 * A run with any number of readers, in this process or mirrored from another one. It keeps the latest events and the
 * message that is being written; readers who are further behind read the journal. So a slow reader costs nothing, and
 * the run waits for nobody.
 */
import type { AgentEvent, Entry, Store } from '../index.js';
import { isThenable } from '../kit/index.js';
import { type Cursor, liveId, waitingId } from './cursor.js';
import type { ClientDelta, ClientEvent, SentEvent } from './events.js';
import { nextTurn } from './next-turn.js';
import { type Projection, questionOf } from './projection.js';
import { Shown, withText } from './shown.js';
import { discard, tellEntry, tellOpen } from './tell.js';

/** How many events are kept for readers who are a little behind. */
const KEPT = 512;
/**
 * After this many events, connections get a chance to send: a model that never waits would run ahead of all of them.
 */
const BURST = 128;

/** What a reader gets, and where it continues. */
export interface Look {
  readonly sent: readonly SentEvent[];
  readonly from: number;
}

/** Where the events come from. */
export interface LiveSource {
  /** The last entry before these events. */
  readonly seq: number;
  readonly events: AsyncIterator<AgentEvent, unknown>;
  /** The first of them, if it was read. */
  readonly first?: AgentEvent;
  /** The session begins with this run. */
  readonly isNew?: boolean;
  /** Another process runs it. */
  readonly isMirror?: boolean;
}

export class LiveRun {
  /** Settles when the run has ended and everything was sent. Never rejects. */
  readonly ended: Promise<void>;
  /** Nothing more is sent. */
  closed = false;
  /** It has sent how the run ended, or that it waits. If not, the run may continue elsewhere. */
  hasEnded = false;
  readonly isMirror: boolean;
  private log: SentEvent[] = [];
  /** How many events were dropped from the front of the log. */
  private dropped = 0;
  private n = 0;
  private open: { readonly shown: Shown; pieces: Piece[] } | undefined;
  /** Entries that were read and not sent yet. */
  private ahead: Entry[] = [];
  private readSeq: number;
  private readonly told = new Set<string>();
  private endTold = false;
  private waiters: (() => void)[] = [];

  private readonly epoch = Math.floor(Math.random() * 36 ** 4).toString(36);
  /** The last entry that was sent. */
  private seq: number;
  private readonly isNew: boolean;

  constructor(
    private readonly store: Store,
    private readonly sessionId: string,
    private readonly projection: Projection,
    { seq, events, first, isNew = false, isMirror = false }: LiveSource,
    private readonly onClose: () => void,
  ) {
    this.seq = seq;
    this.readSeq = seq;
    this.isNew = isNew;
    this.isMirror = isMirror;
    this.ended = this.pump(events, first);
  }

  /** The last entry that was sent. Readers who have read the journal up to it can continue here. */
  get head(): number {
    return this.seq;
  }

  /** Where a reader continues whose last event was this one; undefined if that isn't known any more. */
  placeAfter(id: string): number | undefined {
    const place = this.log.findLastIndex((one) => one.id === id);
    return place < 0 ? undefined : this.dropped + place + 1;
  }

  /** What was sent since; undefined if the reader is too far behind. */
  since(from: number): Look | undefined {
    if (from < this.dropped) return undefined;
    const sent = from === this.dropped ? [...this.log] : this.log.slice(from - this.dropped);
    return { sent, from: this.dropped + this.log.length };
  }

  /** What a reader gets who has read the journal up to `head` and has seen this much of a message. */
  snapshot({ shown }: Cursor): Look {
    const from = this.dropped + this.log.length;
    const { open, seq } = this;
    if (open === undefined) return { sent: shown ? discard(seq, shown) : [], from };
    const deltas = open.pieces.map(({ delta, text }) => withText(delta, text));
    const idOf = (seen: Shown): string => liveId(seq, this.epoch, this.n, seen);
    return { sent: tellOpen(open.shown.messageId, deltas, shown, seq, idOf), from };
  }

  /** Calls back, once, when there is something new or the run has ended. */
  onChange(wake: () => void): void {
    if (this.closed) wake();
    else this.waiters.push(wake);
  }

  /** Waits until the journal has something of it. Then every process finds the session. */
  async written(): Promise<void> {
    while (this.seq === 0 && !this.closed)
      await new Promise<void>((resolve) => {
        this.onChange(resolve);
      });
  }

  private async pump(events: LiveSource['events'], first: AgentEvent | undefined): Promise<void> {
    try {
      // The first bytes of a run go out before more is sent. A mirror begins with what a message has so far, all at once.
      let sent = this.isMirror ? 1 : 0;
      let step = first ? { done: false as const, value: first } : await events.next();
      for (; !step.done; step = await events.next()) {
        const wait = this.take(step.value);
        if (wait) await wait;
        if (this.log.length > 0 && sent++ % BURST === 0) await new Promise<void>(nextTurn);
      }
    } catch {
      // How it failed was sent with `agent_end`; the caller gets the error from the result.
    }
    this.closed = true;
    this.hasEnded ||= !this.isMirror;
    this.onClose();
    this.wake();
  }

  /** Facts are sent as the journal has them, in the place of their events. Other events are sent as they come. */
  private take(event: AgentEvent): Promise<void> | undefined {
    switch (event.type) {
      case 'agent_start':
        if (event.resumed) break;
        // There is nothing to read yet. It is sent when the journal has it: from then on every process finds the session.
        if (this.isNew) return undefined;
        return this.facts((entry) => entry.type === 'run_start');
      case 'message_end': {
        if (event.discarded) break;
        const { messageId } = event;
        return this.facts((entry) => entry.type === 'message' && entry.message.id === messageId);
      }
      case 'tool_execution_end': {
        const { id } = event.toolCall;
        return this.facts((entry) => entry.type === 'tool_finished' && entry.message.toolCallId === id);
      }
      case 'tool_execution_waiting': {
        const last = event.pending.at(-1)?.id;
        return this.facts((entry) => entry.type === 'request' && entry.request.id === last);
      }
      case 'agent_end':
        return this.end(event);
      default:
    }
    const told = this.projection.live(event);
    if (told) this.tell(told);
    return undefined;
  }

  private async end(event: AgentEvent & { type: 'agent_end' }): Promise<void> {
    this.hasEnded = true;
    await this.facts(() => false);
    if (this.endTold) return;
    const end = this.projection.live(event)!;
    if (event.result.status !== 'suspended') return this.tell(end);
    const questions = event.result.pending.map(questionOf);
    this.keep(waitingId(this.seq, 1), { type: 'suspended', questions });
    this.keep(waitingId(this.seq, 2), end);
    this.wake();
  }

  /** Sends what the journal has, up to and including the last entry. */
  private facts(isLast: (entry: Entry) => boolean): Promise<void> | undefined {
    if (this.tellAhead(isLast)) return undefined;
    const read = this.store.read(this.sessionId, this.readSeq + 1);
    if (!isThenable(read)) return this.tellRead(read, isLast);
    return read.then(
      (entries) => this.tellRead(entries, isLast),
      // A store that fails now may answer the next time; readers who miss something find it in the journal.
      () => undefined,
    );
  }

  private tellRead(entries: readonly Entry[], isLast: (entry: Entry) => boolean): undefined {
    for (const entry of entries) this.ahead.push(entry);
    this.readSeq = this.ahead.at(-1)?.seq ?? this.readSeq;
    this.tellAhead(isLast);
    this.wake();
  }

  private tellAhead(isLast: (entry: Entry) => boolean): boolean {
    for (let entry = this.ahead.shift(); entry; entry = this.ahead.shift()) {
      const { sent, shown } = tellEntry(this.projection, entry, -1, this.open?.shown);
      this.seq = entry.seq;
      if (shown === undefined) this.open = undefined;
      if (entry.type === 'message') this.told.add(entry.message.id);
      // The run before may end first.
      if (entry.type === 'run_end' || entry.type === 'run_start') this.endTold = entry.type === 'run_end';
      for (const one of sent) this.keep(one.id, one.event);
      if (isLast(entry)) {
        this.wake();
        return true;
      }
    }
    return false;
  }

  private tell(event: ClientEvent): void {
    if ('messageId' in event && !this.grow(event)) return;
    this.n++;
    this.keep(liveId(this.seq, this.epoch, this.n, this.open?.shown), event);
    this.wake();
  }

  /** Keeps up with the message that is being written. False if there is nothing to send. */
  private grow(event: ClientEvent & { readonly messageId: string }): boolean {
    const { messageId } = event;
    if (this.told.has(messageId)) return false;
    if (event.type === 'message_start') {
      this.open = { shown: new Shown(messageId), pieces: [] };
      return true;
    }
    const { open } = this;
    if (open === undefined) return false;
    if (event.type === 'message_end') this.open = undefined;
    else if (event.type === 'message_reset') {
      open.shown.clear();
      open.pieces = [];
    } else if (event.type === 'message_update') {
      const { delta } = event;
      const text = delta.type === 'tool-call' ? delta.arguments : delta.text;
      const last = open.pieces.at(-1);
      if (last?.delta.block === delta.block) {
        // More arguments of a call whose arguments are not shown.
        if (text === '') return false;
        last.text += text;
      } else open.pieces.push({ delta, text });
      open.shown.add(delta);
    }
    return true;
  }

  private keep(id: string, event: ClientEvent): void {
    this.log.push({ id, event });
    if (this.log.length < 2 * KEPT) return;
    this.log = this.log.slice(-KEPT);
    this.dropped += KEPT;
  }

  private wake(): void {
    if (this.waiters.length === 0) return;
    const { waiters } = this;
    this.waiters = [];
    for (const wake of waiters) wake();
  }
}

/** A block of the message so far. */
interface Piece {
  readonly delta: ClientDelta;
  text: string;
}
