/** A queue and workers on a real Redis, for tests. */
import { type Agent, memoryStore, type Store } from 'allium';
import { Redis } from 'ioredis';
import { afterAll, afterEach, beforeAll } from 'vitest';
import { type RedisServer, startRedis } from '../../store-redis/test/redis-server.js';
import {
  type AgentQueue,
  type AgentWorker,
  createQueue,
  createWorker,
  type QueueOptions,
  type WorkerEvent,
  type WorkerOptions,
} from '../src/index.js';

export interface Fleet {
  readonly queue: AgentQueue & { readonly prefix: string };
  /** A client of its own, to interfere with. */
  readonly redis: Redis;
  readonly store: Store;
  readonly events: WorkerEvent[];
  /** Errors that belong to no call. */
  readonly errors: unknown[];
  work(agents: Record<string, Agent>, options?: Partial<WorkerOptions>): Promise<AgentWorker>;
  another(options?: Partial<QueueOptions>): AgentQueue;
}

/** One server for all tests of a file; every fleet has keys of its own. */
export function useFleets(): {
  readonly redis: () => RedisServer;
  fleet(options?: Partial<QueueOptions>): Fleet;
} {
  let server: RedisServer;
  let count = 0;
  let open: { close(): Promise<void> }[] = [];
  beforeAll(async () => {
    server = await startRedis();
  });
  afterEach(async () => {
    await Promise.all(open.map((one) => one.close()));
    open = [];
  });
  afterAll(() => server.stop());
  return {
    redis: () => server,
    fleet(options = {}) {
      const prefix = `t${process.pid}-${++count}`;
      const store = options.store ?? memoryStore();
      const events: WorkerEvent[] = [];
      const errors: unknown[] = [];
      const connection = server.url;
      const redis = new Redis(connection);
      open.push({ close: async () => void redis.disconnect() });
      const keep = <T extends { close(): Promise<void> }>(one: T): T => {
        open.push(one);
        return one;
      };
      const another = (more: Partial<QueueOptions> = {}) =>
        keep(createQueue({ connection, prefix, store, ...options, ...more }));
      return {
        queue: Object.assign(another(), { prefix }),
        redis,
        store,
        events,
        errors,
        another,
        async work(agents, more = {}) {
          const onEvent = (event: WorkerEvent): void => void events.push(event);
          const onError = (error: unknown): void => void errors.push(error);
          const worker = keep(
            createWorker({
              agents,
              store,
              connection,
              prefix,
              drainOn: [],
              drainMs: 2000,
              onEvent,
              onError,
              ...more,
            }),
          );
          await worker.ready();
          return worker;
        },
      };
    },
  };
}
