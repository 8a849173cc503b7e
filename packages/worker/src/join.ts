/** Following a session whose runs are elsewhere, and whose next run may not have begun. */
import type { EventHub, EventReader, FollowOptions, SentEvent } from 'allium/http';
import type { Connections } from './connection.js';
import type { Turns } from './turns.js';

/** How often a session is looked at whose changes nobody tells: messages of Redis get lost with a connection. */
const LOOK_MS = 2000;

/** Reads as that of `allium/http` does, and waits for jobs of the session that are in the queue. */
export class JoinReader implements EventReader {
  private inner: EventReader;
  /** Of the last event. */
  private id: string | undefined;
  private left = false;
  private wake = (): void => {};

  constructor(
    private readonly hub: EventHub,
    private readonly turns: Turns,
    private readonly connections: Connections,
    private readonly sessionId: string,
    private readonly options: FollowOptions,
  ) {
    this.inner = hub.reader(sessionId, options);
    options.signal?.addEventListener('abort', () => this.leave(), { once: true });
    if (options.signal?.aborted) this.left = true;
  }

  async next(): Promise<readonly SentEvent[] | undefined> {
    while (!this.left) {
      // Asked first: what ended before that is in the journal now.
      const queued = await this.turns.isQueued(this.sessionId);
      const batch = await this.inner.next();
      if (batch) {
        this.id = batch.at(-1)!.id;
        return batch;
      }
      if (!queued) return undefined;
      await this.changed();
      if (this.id !== undefined)
        this.inner = this.hub.reader(this.sessionId, { ...this.options, after: this.id });
    }
    return undefined;
  }

  async hasMore(): Promise<boolean> {
    return (await this.turns.isQueued(this.sessionId)) || (await this.inner.hasMore());
  }

  leave(): void {
    this.left = true;
    this.inner.leave();
    this.wake();
  }

  private async changed(): Promise<void> {
    const unlisten = this.connections.listen(this.turns.channel(this.sessionId), () => this.wake());
    let timer: NodeJS.Timeout | undefined;
    await new Promise<void>((resolve) => {
      this.wake = resolve;
      timer = setTimeout(resolve, LOOK_MS);
      // It may have changed before anybody listened.
      this.connections
        .listening(this.turns.channel(this.sessionId))
        .then(() => this.turns.isQueued(this.sessionId))
        .then((queued) => {
          if (!queued || this.left) resolve();
        }, resolve);
    });
    clearTimeout(timer);
    unlisten();
  }
}
