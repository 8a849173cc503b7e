/** The events of a session from the start of one run. */
import type { ClientEvent, SentEvent } from './events.js';
import type { EventReader } from './reader.js';

/**
 * Leaves out what comes before a run: a new message on a session that waits first ends the run before. A run that
 * couldn't begin has only its end.
 */
export class FromStart implements EventReader {
  begun = false;
  private left = false;

  constructor(
    private readonly inner: EventReader,
    private readonly runId: string,
  ) {}

  async next(): Promise<readonly SentEvent[] | undefined> {
    while (!this.left) {
      const batch = await this.inner.next();
      if (batch === undefined || this.begun) return batch;
      const start = batch.findIndex(({ event }) => this.isOwn(event));
      if (start < 0) continue;
      this.begun = true;
      return batch.slice(start);
    }
    return undefined;
  }

  hasMore(): Promise<boolean> {
    return this.inner.hasMore();
  }

  leave(): void {
    this.left = true;
    this.inner.leave();
  }

  private isOwn(event: ClientEvent): boolean {
    return (event.type === 'agent_start' || event.type === 'agent_end') && isTryOf(event.runId, this.runId);
  }
}

/** A run that repeats a failed one has its id and a number. */
export function isTryOf(runId: string, other: string): boolean {
  const job = (id: string): string => id.split('~')[0]!;
  return job(runId) === job(other);
}
