/** The options of both queue and worker. */
import { type Clock, systemClock } from 'allium';
import { checkFunction, checkInteger, checkOptions, checkValue, invalidOption, kinds } from 'allium/kit';
import { Queue } from 'bullmq';
import { CLOSE_MS, type Connection, type ConnectionChange, Connections } from './connection.js';
import type { JobData, Outcome, RetryOptions } from './jobs.js';
import { atMost, forever, reaching, within } from './reach.js';
import { type RateLimit, Turns } from './turns.js';

export interface SharedOptions {
  /** Redis: an address, options of `ioredis`, or an open client of it. */
  readonly connection: Connection;
  /** The beginning of all keys, as `{prefix}:…`. Queue and workers need the same one. @default 'allium' */
  readonly prefix?: string;
  /**
   * How many runs of a tenant may begin in a given time, by tenant; `*` is for all others. Stored in Redis, for
   * everybody.
   */
  readonly rateLimits?: Readonly<Record<string, RateLimit>>;
  /** How jobs are retried when a provider or a store is down. */
  readonly retry?: RetryOptions;
  /** Milliseconds for which the outcome of a job, and its `idempotencyKey`, are known. @default 86400000, a day */
  readonly keepMs?: number;
  /** Called with errors outside of calls, such as a lost connection, which is made again. @default nothing */
  readonly onError?: (error: unknown) => void;
  /** Called when the connection to Redis is lost, and when it is back. @default nothing */
  readonly onConnection?: (change: ConnectionChange) => void;
  /**
   * What jobs say about when they were enqueued. Turns go by the clock of Redis; delays, schedules and back-off by those of the
   * machines. @default the time of the system
   */
  readonly clock?: Clock;
}

export const SHARED = [
  'connection',
  'prefix',
  'rateLimits',
  'retry',
  'keepMs',
  'onError',
  'onConnection',
  'clock',
] as const satisfies readonly (keyof SharedOptions)[];

/** The parts that queue and worker have in common. */
export interface Backend {
  readonly connections: Connections;
  /** `{prefix}`, for BullMQ. */
  readonly prefix: string;
  readonly runs: Queue<JobData, Outcome>;
  readonly later: Queue<JobData>;
  readonly turns: Turns;
  readonly retry: Required<RetryOptions>;
  readonly clock: Clock;
  readonly onError: (error: unknown) => void;
  close(): Promise<void>;
}

export const RUNS = 'runs';
export const LATER = 'later';

/** `timeoutMs`: how long a call may wait for Redis; undefined: until it is back. */
export function openBackend(options: SharedOptions, timeoutMs?: number): Backend {
  const { connection, prefix: name = 'allium', keepMs = 86_400_000, clock = systemClock } = options;
  const { onError = () => {}, onConnection = () => {}, rateLimits = {}, retry = {} } = options;
  const isAddress = typeof connection === 'string' && connection !== '';
  const isOptions = typeof connection === 'object' && connection !== null && !Array.isArray(connection);
  if (!isAddress && !isOptions)
    throw invalidOption('connection', 'redis://host:port, options of ioredis, or a client of it', connection);
  if (typeof name !== 'string' || name === '' || /[{}]/.test(name))
    throw invalidOption('prefix', 'text without braces', name);
  checkInteger('keepMs', keepMs, 1);
  checkFunction('onError', onError);
  checkFunction('onConnection', onConnection);
  checkOptions('retry', retry, ['attempts', 'delayMs', 'maxDelayMs']);
  const { attempts = 8, delayMs = 1000, maxDelayMs = 60_000 } = retry;
  checkInteger('retry.attempts', attempts, 1);
  checkInteger('retry.delayMs', delayMs, 1);
  checkInteger('retry.maxDelayMs', maxDelayMs, 1);
  checkValue('rateLimits', kinds.record, rateLimits);
  checkValue('clock', kinds.clock(), clock);
  for (const [tenant, limit] of Object.entries(rateLimits)) checkRate(`rateLimits.${tenant}`, limit);
  const connections = new Connections(connection, { onError, onConnection }, timeoutMs);
  const reach = timeoutMs === undefined ? forever : within(timeoutMs, connections.address);
  const prefix = `{${name}}`;
  const shared = { connection: connections.redis, prefix };
  const kept = { age: Math.ceil(keepMs / 1000), count: 1000 };
  // Failed jobs stay: they are the dead-letter list.
  const queue = new Queue<JobData, Outcome>(RUNS, {
    ...shared,
    defaultJobOptions: { removeOnComplete: kept },
  });
  const delayed = new Queue<JobData>(LATER, {
    ...shared,
    // Filing one can only fail for reasons that pass, such as a Redis that is full.
    defaultJobOptions: {
      removeOnComplete: true,
      attempts: 1_000_000,
      backoff: { type: 'fixed', delay: 1000 },
    },
  });
  for (const one of [queue, delayed]) one.on('error', onError);
  const [runs, later] = [reaching(queue, reach), reaching(delayed, reach)];
  const turns = new Turns(connections.redis, name, runs, keepMs, onError, reach);
  for (const [tenant, limit] of Object.entries(rateLimits)) turns.limit(tenant, limit).catch(onError);
  return {
    connections,
    prefix,
    runs,
    later,
    turns,
    retry: { attempts, delayMs, maxDelayMs },
    clock,
    onError,
    async close() {
      await atMost(CLOSE_MS, Promise.allSettled([queue.close(), delayed.close()]));
      await connections.close();
    },
  };
}

export function checkRate(option: string, limit: RateLimit): void {
  checkOptions(option, limit, ['max', 'perMs']);
  checkInteger(`${option}.max`, limit.max, 1);
  checkInteger(`${option}.perMs`, limit.perMs, 1);
}
