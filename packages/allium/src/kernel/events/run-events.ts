/** Where the events of a run go: to the consumer of its stream, and to observers. */
import type { Context } from '../context/context.js';
import { whenIdle } from '../lib/clock.js';
import { deepFreeze } from '../messages/messages.js';
import type { AgentEvent } from '../protocol/events.js';
import type { EventSink } from './event-queue.js';
import { RestoringQueue } from './restoring-queue.js';

/** Takes events to one observer, and never makes the run wait. */
export interface Feed {
  /** Does it get results that are not written yet? */
  readonly early: boolean;
  push(event: AgentEvent): void;
  /** Are many events waiting for an observer that has not had its turn? A slow one has had it. */
  readonly isDue: boolean;
  /** It has had its turn. */
  hadTurn(): void;
}

/** A class: every event passes here, and functions made for each run would cost more to call. */
export class RunEvents {
  /** Does anybody watch? If not, events aren't even made. */
  readonly watched: boolean;

  constructor(
    private queue: EventSink | undefined,
    /** The agent's feeds. Some may be added during the run. */
    private readonly feeds: readonly Feed[],
    /** The feeds of this run alone. */
    private readonly own: readonly Feed[],
  ) {
    this.watched = queue !== undefined || feeds.length > 0 || own.length > 0;
  }

  /** Is somebody watching who only gets what is written? */
  get waitsForWrites(): boolean {
    return this.queue !== undefined || !this.feeds.every(isEarly) || !this.own.every(isEarly);
  }

  /** `read`: the event as the caller reads it. */
  emit(event: AgentEvent, read: AgentEvent = event): void {
    if (this.feeds.length > 0 || this.own.length > 0) this.feed(event);
    if (this.queue !== undefined) this.queue.push(read);
  }

  /** A piece of a message. */
  emitDelta(event: AgentEvent): void {
    if (this.feeds.length > 0 || this.own.length > 0) this.feed(event);
    if (this.queue !== undefined) this.queue.pushDelta(event);
  }

  /** From now on the caller reads the originals of placeholders in the answers of this run. */
  restoreFrom(run: Context): void {
    if (this.queue) this.queue = new RestoringQueue(this.queue, run);
  }

  /** The next pieces of the answer come from this attempt. */
  shows(attempt: Context): void {
    this.queue?.shows?.(attempt);
  }

  /** A promise while the consumer is behind, or observers have had no turn; undefined when there is room. */
  pressure(): Promise<void> | undefined {
    const wait = this.queue === undefined ? undefined : this.queue.pressure();
    if (wait !== undefined) return wait;
    return this.feeds.some(isDue) || this.own.some(isDue) ? this.turn() : undefined;
  }

  /** Observers get their turn as soon as the run waits. Async ones that wait for nothing are done by then. */
  private async turn(): Promise<void> {
    await new Promise<void>(whenIdle);
    for (const feed of this.feeds) feed.hadTurn();
    for (const feed of this.own) feed.hadTurn();
  }

  private feed(event: AgentEvent): void {
    deepFreeze(event);
    for (const feed of this.feeds) feed.push(event);
    for (const feed of this.own) feed.push(event);
  }
}

const isEarly = (feed: Feed): boolean => feed.early;
const isDue = (feed: Feed): boolean => feed.isDue;

const NOBODY: readonly Feed[] = [];
const UNWATCHED = new RunEvents(undefined, NOBODY, NOBODY);

export function runEvents(
  queue: EventSink | undefined,
  feeds: readonly Feed[],
  own: readonly Feed[] = NOBODY,
): RunEvents {
  const nobody = queue === undefined && feeds.length === 0 && own.length === 0;
  return nobody ? UNWATCHED : new RunEvents(queue, feeds, own);
}
