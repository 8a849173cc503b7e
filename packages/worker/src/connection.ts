/** Connections to Redis, and who listens to which channel. */
import { Redis, type RedisOptions } from 'ioredis';
import { atMost } from './reach.js';

/** `redis://user:password@host:port/database`, options of `ioredis`, or an open client of it, which stays yours. */
export type Connection = string | RedisOptions | Redis;

/** A change of the connection to Redis. It is retried until it works, however long that takes. */
export interface ConnectionChange {
  readonly state: 'lost' | 'back';
  /** `host:port` of Redis. */
  readonly address: string;
  readonly error?: unknown;
}

export interface ConnectionHooks {
  onError(error: unknown): void;
  onConnection(change: ConnectionChange): void;
}

/**
 * A connection that brings no answer for so long is made again: the network may have dropped it without telling. BullMQ has
 * commands that take 10 s.
 */
const SILENT_MS = 30_000;

/** How long Redis may take to say goodbye. */
export const CLOSE_MS = 1000;

/** Also one of another copy of ioredis. */
function isClient(connection: Connection): connection is Redis {
  return typeof (connection as Partial<Redis>).duplicate === 'function';
}

/** After a failover, the address leads to another server. This one was the primary and refuses to write. */
function isReplica({ message }: Error): boolean {
  return message.includes('READONLY');
}

export class Connections {
  readonly redis: Redis;
  private readonly owned: boolean;
  /** Connections that BullMQ has made from this one. */
  private readonly made: Redis[] = [];
  private listener: Redis | undefined;
  private readonly channels = new Map<string, Set<(message: string) => void>>();
  private readonly reconnected = new Set<() => void>();
  private closed = false;

  /** `host:port`, for messages. */
  readonly address: string;
  private readonly hooks: ConnectionHooks;
  private lost = false;

  /** `timeoutMs`: how long a call may wait for an answer; undefined: until there is one. */
  constructor(connection: Connection, hooks: ConnectionHooks, timeoutMs: number | undefined) {
    this.hooks = hooks;
    // A worker waits for a Redis that is being restarted; a caller who enqueues gets an error after a while.
    const waitsForever = timeoutMs === undefined;
    const waits: RedisOptions = waitsForever ? { maxRetriesPerRequest: null } : {};
    const options = { reconnectOnError: isReplica, socketTimeout: timeoutMs ?? SILENT_MS, ...waits };
    // A client that gives up is of no use to a worker.
    const another = isClient(connection) && waitsForever && connection.options.maxRetriesPerRequest !== null;
    this.owned = another || !isClient(connection);
    if (isClient(connection)) this.redis = another ? connection.duplicate(waits) : connection;
    else if (typeof connection === 'string') this.redis = new Redis(connection, options);
    else this.redis = new Redis({ ...options, ...connection, ...waits });
    if (this.owned) this.noteDuplicates();
    const { path, host = 'localhost', port = 6379 } = this.redis.options;
    this.address = path ?? `${host}:${port}`;
    this.redis.on('error', this.onError);
    this.redis.on('close', this.onClose);
    this.redis.on('ready', this.onReady);
  }

  /**
   * One that never connected would retry forever and keep the process alive: BullMQ only closes those that did
   * connect.
   */
  private noteDuplicates(): void {
    const duplicate = this.redis.duplicate.bind(this.redis);
    this.redis.duplicate = (options) => {
      const another = duplicate(options);
      this.made.push(another);
      return another;
    };
  }

  /** Is there no connection at the moment? */
  get isDown(): boolean {
    return this.redis.status !== 'ready';
  }

  private readonly onError = (error: unknown): void => {
    if (this.isDown) this.tellLost(error);
    this.hooks.onError(error);
  };

  private readonly onClose = (): void => this.tellLost(undefined);

  private readonly onReady = (): void => {
    if (this.lost) this.hooks.onConnection({ state: 'back', address: this.address });
    this.lost = false;
  };

  private tellLost(error: unknown): void {
    if (this.lost || this.closed) return;
    this.lost = true;
    const { address } = this;
    this.hooks.onConnection({ state: 'lost', address, ...(error !== undefined && { error }) });
  }

  /** Calls back with every message of a channel, until the returned function is called. */
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

  /** Calls back after each reconnection, when messages may have been lost, until the returned function is called. */
  onReconnect(fn: () => void): () => void {
    this.reconnected.add(fn);
    return () => this.reconnected.delete(fn);
  }

  /** Settles when messages that are sent from now on are received. */
  async listening(channel: string): Promise<void> {
    await this.subscriber.subscribe(channel);
  }

  async close(): Promise<void> {
    this.closed = true;
    this.listener?.disconnect();
    this.redis.off('close', this.onClose);
    this.redis.off('ready', this.onReady);
    if (!this.owned) {
      this.redis.off('error', this.onError);
      return;
    }
    // A server that does not answer would keep this waiting.
    if (!this.isDown) await atMost(CLOSE_MS, this.redis.quit());
    for (const one of [this.redis, ...this.made]) one.disconnect();
  }

  private get subscriber(): Redis {
    if (this.listener) return this.listener;
    // If it is closed while it subscribes again by itself, nobody hears of that, and the process ends with the error.
    const listener = this.redis.duplicate({ maxRetriesPerRequest: null, autoResubscribe: false });
    listener.on('error', this.onError);
    listener.on('message', (channel, message) => {
      for (const fn of this.channels.get(channel) ?? []) fn(message);
    });
    let first = true;
    listener.on('ready', () => {
      const again = !first;
      first = false;
      if (!again) return;
      if (this.channels.size > 0) listener.subscribe(...this.channels.keys()).catch(this.onError);
      for (const fn of this.reconnected) fn();
    });
    this.listener = listener;
    return listener;
  }
}
