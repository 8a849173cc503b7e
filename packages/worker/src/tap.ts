/**
 * Sends what happens in a run, as it happens, to those who follow it from other processes. It always knows the
 * message that is being written, so that late followers get the text so far; while nobody follows, that is all it
 * does.
 */
import { randomUUID } from 'node:crypto';
import type { AgentEvent, MessageDelta, NewEntry, Observer } from 'allium';
import type { Outcome } from './jobs.js';
import { deltaToWire, endToWire, toWire, type WireEvent, type WireMessage } from './wire.js';

/** How many events may wait for Redis. Beyond that they are dropped, and readers ask for the text so far. */
const MOST_WAITING = 2000;

/** Sends to all followers. Resolves with how many there are. */
export type Publish = (message: string) => Promise<number>;

/** Where an entry is, and the event that stands for it: none if the key is empty. */
interface Written {
  readonly key: string;
  readonly seq: number;
}

export class RunTap {
  readonly observer: Observer = { name: 'join', early: true, onEvent: (event) => this.onEvent(event) };
  private readonly epoch = randomUUID().slice(0, 8);
  /** Events so far. */
  private n = 0;
  /** The last entry that the events so far cover. Unknown before anything is written or read. */
  private seq: number | undefined;
  private written: Written[] = [];
  /** Events whose entries are not written yet, and those after them. */
  private held: AgentEvent[] = [];
  private open:
    | { readonly messageId: string; pieces: { readonly delta: MessageDelta; text: string }[] }
    | undefined;
  private listened = false;
  private out: WireEvent[] = [];
  private sending = false;
  private endSeen = false;
  private outcome: Outcome | undefined;
  private over = false;

  constructor(private readonly publish: Publish) {}

  /** How far the journal is before anything happens. */
  startAt(seq: number): void {
    if (this.seq === undefined) this.startsAfter(seq);
  }

  /** Somebody follows from now on, and gets everything so far. */
  listen(): void {
    if (this.over) return;
    this.flush();
    this.listened = true;
    if (this.seq === undefined) return;
    const events: WireEvent[] = [];
    if (this.open) {
      const { messageId, pieces } = this.open;
      events.push({ type: 'message_start', messageId, role: 'assistant' });
      for (const { delta, text } of pieces) events.push(deltaToWire(messageId, withText(delta, text)));
    }
    void this.send([this.epoch, this.n, events, this.seq]);
  }

  /** The store has these entries. */
  appended(expectedSeq: number, entries: readonly NewEntry[]): void {
    for (const [i, entry] of entries.entries())
      this.written.push({ key: keyOfEntry(entry), seq: expectedSeq + i + 1 });
    if (this.seq === undefined) this.startsAfter(expectedSeq);
    this.release();
  }

  /** The run has ended like this, for good. */
  end(outcome: Outcome): void {
    this.outcome = outcome;
    // Events come a little later than results.
    if (this.endSeen) this.close();
  }

  /** Another worker or another try continues: nothing more is sent here. */
  lose(): void {
    if (this.over) return;
    this.over = true;
    if (this.listened) void this.send([this.epoch, this.n, null]);
  }

  private startsAfter(seq: number): void {
    this.seq = seq;
    if (this.listened) this.listen();
  }

  private onEvent(event: AgentEvent): void {
    if (this.over) return;
    this.held.push(event);
    this.release();
  }

  private release(): void {
    let passed = 0;
    while (passed < this.held.length && !this.isBlocked(this.held[passed]!)) this.pass(this.held[passed++]!);
    if (passed > 0) this.held.splice(0, passed);
  }

  /** Nobody gets a result before it is written. */
  private isBlocked(event: AgentEvent): boolean {
    if (this.seq === undefined) return event.type !== 'agent_end';
    return event.type === 'tool_execution_end' && !this.written.some(({ key }) => key === keyOf(event));
  }

  private pass(event: AgentEvent): void {
    if (event.type === 'agent_end') {
      this.endSeen = true;
      if (this.outcome) this.close();
      return;
    }
    this.advance(keyOf(event));
    this.grow(event);
    const wire = toWire(event);
    if (wire) this.tell(wire);
  }

  /** The events so far cover the entry with this key, all before it, and those after it that have no events. */
  private advance(key: string): void {
    if (key === '') return;
    const { written } = this;
    let count = written.findIndex((one) => one.key === key) + 1;
    if (count === 0) return;
    while (written[count]?.key === '') count++;
    this.seq = written[count - 1]!.seq;
    this.written = written.slice(count);
  }

  private grow(event: AgentEvent): void {
    if (event.type === 'message_start' && event.role === 'assistant')
      this.open = { messageId: event.messageId, pieces: [] };
    const { open } = this;
    if (!open || !('messageId' in event) || event.messageId !== open.messageId) return;
    if (event.type === 'message_end') this.open = undefined;
    else if (event.type === 'message_reset') open.pieces = [];
    else if (event.type === 'message_update') {
      const { delta } = event;
      const text = delta.type === 'tool-call' ? delta.arguments : delta.text;
      const last = open.pieces.at(-1);
      if (last?.delta.block === delta.block) last.text += text;
      else open.pieces.push({ delta, text });
    }
  }

  private tell(event: WireEvent): void {
    this.n++;
    if (!this.listened) return;
    if (this.out.length >= MOST_WAITING) this.out = [];
    this.out.push(event);
    if (this.sending) return;
    this.sending = true;
    // What comes at once is sent together.
    queueMicrotask(() => this.flush());
  }

  /** What comes while Redis has not answered goes with the next message. */
  private flush(): void {
    const { out } = this;
    this.out = [];
    if (out.length === 0 || !this.listened) {
      this.sending = false;
      return;
    }
    this.sending = true;
    void this.send([this.epoch, this.n - out.length, out]).then(() => this.flush());
  }

  /** A lost connection isn't reported: readers notice that something is missing. */
  private async send(message: WireMessage): Promise<void> {
    try {
      if ((await this.publish(JSON.stringify(message))) === 0) this.listened = false;
    } catch {
      this.listened = false;
    }
  }

  private close(): void {
    this.over = true;
    this.tell(endToWire(this.outcome!));
  }
}

function withText(delta: MessageDelta, text: string): MessageDelta {
  return delta.type === 'tool-call' ? { ...delta, arguments: text } : { ...delta, text };
}

function keyOfEntry(entry: NewEntry): string {
  switch (entry.type) {
    case 'run_start':
      return 'start';
    case 'message':
      return `m ${entry.message.id}`;
    case 'tool_finished':
      return `t ${entry.message.toolCallId}`;
    case 'request':
      return `q ${entry.request.id}`;
    // Readers see these, but without their own event.
    case 'answer':
    case 'rewind':
    case 'run_end':
      return entry.type;
    default:
      return '';
  }
}

function keyOf(event: AgentEvent): string {
  switch (event.type) {
    case 'agent_start':
      return event.resumed ? '' : 'start';
    case 'message_end':
      return event.discarded ? '' : `m ${event.messageId}`;
    case 'tool_execution_end':
      return `t ${event.toolCall.id}`;
    case 'tool_execution_waiting':
      return `q ${event.pending.at(-1)?.id}`;
    default:
      return '';
  }
}
