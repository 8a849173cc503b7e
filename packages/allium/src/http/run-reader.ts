/** The events of one run out of those of its session. */
import type { ClientEnd, SentEvent } from './events.js';
import { isTryOf } from './from-start.js';
import type { EventReader } from './reader.js';

/**
 * Reads up to the end of a run, even if its session goes on. Leaves out the ends of attempts that are repeated.
 * `goOn`: asked when the run waits, with the id of the last event before that, if there was any. Returns a reader of what
 * follows if it goes on all the same.
 */
export class RunReader implements EventReader {
  private held: SentEvent | undefined;
  private over = false;
  private left = false;
  private id: string | undefined;

  constructor(
    private inner: EventReader,
    private readonly goOn?: (id: string | undefined) => Promise<EventReader | undefined>,
  ) {}

  async next(): Promise<readonly SentEvent[] | undefined> {
    while (!this.over) {
      const batch = await this.inner.next();
      const sent = this.upToEnd(batch ?? []);
      if (this.held && (batch === undefined || !batch.includes(this.held))) {
        sent.push(this.held);
        this.over = true;
      }
      if (batch === undefined) this.over = true;
      this.id = sent.findLast((one) => !isWaiting(one))?.id ?? this.id;
      const kept = sent.some(isWaiting) ? await this.unlessGoesOn(sent) : sent;
      if (kept.length > 0) return kept;
    }
    this.inner.leave();
    return undefined;
  }

  hasMore(): Promise<boolean> {
    return this.inner.hasMore();
  }

  leave(): void {
    this.left = true;
    this.over = true;
    this.inner.leave();
  }

  private upToEnd(batch: readonly SentEvent[]): SentEvent[] {
    const sent: SentEvent[] = [];
    for (const one of batch) {
      const { event } = one;
      const held = this.held?.event as ClientEnd | undefined;
      const again = held && event.type === 'agent_start' && isTryOf(event.runId, held.runId);
      if (held && !again) break;
      this.held = undefined;
      if (event.type === 'agent_end' && event.status === 'error') this.held = one;
      else sent.push(one);
      if (event.type !== 'agent_end' || this.held) continue;
      this.over = true;
      break;
    }
    return sent;
  }

  /** Nobody is told that the run waits if it goes on at once. */
  private async unlessGoesOn(sent: readonly SentEvent[]): Promise<readonly SentEvent[]> {
    const next = this.left ? undefined : await this.goOn?.(this.id);
    if (next === undefined) return sent;
    this.inner.leave();
    this.inner = next;
    this.over = this.left;
    if (this.left) next.leave();
    return sent.filter((one) => !isWaiting(one));
  }
}

function isWaiting({ event }: SentEvent): boolean {
  return event.type === 'suspended' || (event.type === 'agent_end' && event.status === 'suspended');
}
