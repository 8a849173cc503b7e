/** Connections to Redis, and who listens to what. */
import { Redis, type RedisOptions } from 'ioredis';

/** `redis://user:password@host:port/database`, options of `ioredis`, or an open client of it, which stays yours. */
export type Connection = string | RedisOptions | Redis;

export class Connections {
  readonly redis: Redis;
  private readonly owned: boolean;
  private listener: Redis | undefined;
  private readonly channels = new Map<string, Set<(message: string) => void>>();

  constructor(connection: Connection, onError: (error: unknown) => void, waitsForever: boolean) {
    this.owned = !(connection instanceof Redis);
    // A worker waits for a Redis that is being restarted; whoever enqueues is told after a while.
    const options: RedisOptions = waitsForever ? { maxRetriesPerRequest: null } : {};
    if (connection instanceof Redis) this.redis = connection;
    else if (typeof connection === 'string') this.redis = new Redis(connection, options);
    else this.redis = new Redis({ ...connection, ...options });
    this.redis.on('error', onError);
    this.onError = onError;
  }

  private readonly onError: (error: unknown) => void;

  /** Calls back with every message of a channel, until the function that is returned is called. */
  listen(channel: string, fn: (message: string) => void): () => void {
    const known = this.channels.get(channel);
    const listeners = known ?? new Set();
    listeners.add(fn);
    if (!known) {
      this.channels.set(channel, listeners);
      this.subscriber.subscribe(channel).catch(this.onError);
    }
    return () => {
      if (!listeners.delete(fn) || listeners.size > 0) return;
      this.channels.delete(channel);
      this.listener?.unsubscribe(channel).catch(this.onError);
    };
  }

  /** Settles when messages that are sent from now on are heard. */
  async listening(channel: string): Promise<void> {
    await this.subscriber.subscribe(channel);
  }

  async close(): Promise<void> {
    this.listener?.disconnect();
    if (this.owned) await this.redis.quit().catch(() => this.redis.disconnect());
    else this.redis.off('error', this.onError);
  }

  private get subscriber(): Redis {
    if (this.listener) return this.listener;
    const listener = this.redis.duplicate({ maxRetriesPerRequest: null });
    listener.on('error', this.onError);
    listener.on('message', (channel, message) => {
      for (const fn of this.channels.get(channel) ?? []) fn(message);
    });
    this.listener = listener;
    return listener;
  }
}
