/** Follows a session that runs elsewhere, and whose next run may not have begun. */
import type { EventHub, EventReader, FollowOptions, SentEvent } from 'allium/http';
import type { Connections } from './connection.js';
import type { LiveSessions } from './live.js';
import type { Turns } from './turns.js';

/** How often to check a session without messages about it: messages of Redis get lost with a connection. */
const LOOK_MS = 2000;

/** What a reader needs from its queue. */
export interface JoinPlace {
  readonly hub: EventHub;
  readonly live: LiveSessions;
  readonly turns: Turns;
  readonly connections: Connections;
}

/** Reads like the reader of `allium/http`, and waits for jobs of the session that are in the queue. */
export class JoinReader implements EventReader {
  private inner: EventReader;
  /** Of the last event. */
  private id: string | undefined;
  private left = false;
  /** Are there jobs of the session that have not ended? Unknown if one may have ended since. */
  private queued: boolean | undefined;
  private unfollow: (() => void) | undefined;
  /** Called when a run can be followed that couldn't be before. */
  private stirred = false;
  private wake = (): void => {};

  constructor(
    private readonly place: JoinPlace,
    private readonly sessionId: string,
    private readonly options: FollowOptions,
  ) {
    this.inner = place.hub.reader(sessionId, options);
    options.signal?.addEventListener('abort', this.onAbort, { once: true });
    if (options.signal?.aborted) this.left = true;
  }

  async next(): Promise<readonly SentEvent[] | undefined> {
    const { live, turns } = this.place;
    while (!this.left) {
      this.unfollow ??= live.follow(this.sessionId, () => this.stir());
      this.stirred = false;
      // Asked first: what ended before that is in the journal by now.
      this.queued ??= await turns.isQueued(this.sessionId);
      const batch = await this.inner.next();
      if (batch) {
        this.id = batch.at(-1)!.id;
        if (batch.some(({ event }) => event.type === 'agent_end')) this.queued = undefined;
        return batch;
      }
      if (!this.queued && !(await this.inner.hasMore())) break;
      if (this.queued && !this.left && !this.stirred) await this.changed();
      this.queued = undefined;
      if (this.id !== undefined)
        this.inner = this.place.hub.reader(this.sessionId, { ...this.options, after: this.id });
    }
    this.stop();
    return undefined;
  }

  async hasMore(): Promise<boolean> {
    return (await this.place.turns.isQueued(this.sessionId)) || (await this.inner.hasMore());
  }

  leave(): void {
    this.left = true;
    this.inner.leave();
    this.wake();
    this.stop();
  }

  private readonly onAbort = (): void => this.leave();

  private stir(): void {
    this.stirred = true;
    this.wake();
  }

  private stop(): void {
    this.unfollow?.();
    this.unfollow = undefined;
    // It may outlive many readers.
    this.options.signal?.removeEventListener('abort', this.onAbort);
  }

  private async changed(): Promise<void> {
    const { connections, turns } = this.place;
    const channel = turns.channel(this.sessionId);
    let timer: NodeJS.Timeout | undefined;
    const woken = new Promise<void>((resolve) => {
      this.wake = resolve;
      timer = setTimeout(resolve, LOOK_MS);
    });
    const unlisten = connections.listen(channel, () => this.wake());
    // It may have changed before anybody listened.
    connections
      .listening(channel)
      .then(() => turns.isQueued(this.sessionId))
      .then((queued) => {
        if (!queued || this.left) this.wake();
      }, this.wake);
    await woken;
    clearTimeout(timer);
    unlisten();
  }
}
