// The connections that queues and workers are given, and what a failover does to them.

import { once } from 'node:events';
import { createRequire } from 'node:module';
import net from 'node:net';
import { Agent, memoryStore } from 'allium';
import { scriptedModel, text } from 'allium/testing';
import { Redis } from 'ioredis';
import { describe, expect, it } from 'vitest';
import { startFailover } from '../../store-redis/test/failover.js';
import { useFleets } from '../test/fleet.js';
import { createQueue, createWorker } from './index.js';

const { fleet, redis: server } = useFleets();
const agent = () => new Agent({ model: scriptedModel([text('Done.')], { repeat: true }) });

/** `ioredis`, loaded once more, as when another package depends on another release of it. */
function anotherIoredis(): typeof Redis {
  const require = createRequire(import.meta.url);
  const loaded = Object.keys(require.cache).filter((file) => file.includes('/ioredis/'));
  for (const file of loaded) delete require.cache[file];
  return (require('ioredis') as { Redis: typeof Redis }).Redis;
}

describe('an open client', () => {
  const clients: Record<string, () => Redis> = {
    'with the settings of ioredis': () => new Redis(server().url),
    'that waits for ever': () => new Redis(server().url, { maxRetriesPerRequest: null }),
    'of another copy of ioredis': () => new (anotherIoredis())(server().url),
  };
  for (const [what, open] of Object.entries(clients))
    it(`${what} works for a queue and a worker, and stays as it was`, async () => {
      const client = open();
      const { queue, store } = fleet();
      const shared = { connection: client, prefix: queue.prefix, store };
      const [mine, worker] = [
        createQueue(shared),
        createWorker({ ...shared, agents: { a: agent() }, drainOn: [] }),
      ];
      await worker.ready();
      const { runId } = await mine.enqueue('a', 'Hi.');
      expect(await queue.finished(runId)).toMatchObject({ status: 'done', text: 'Done.' });
      await Promise.all([mine.close(), worker.close()]);
      expect(await client.ping()).toBe('PONG');
      expect(client.eventNames().filter((name) => typeof name === 'string')).toEqual([]);
      client.disconnect();
    });
});

/** An address that leads to the server, and drops what `lost` says without telling. */
async function lossy(lost: (socket: net.Socket, data: Buffer) => boolean) {
  const target = new URL(server().url);
  const sockets = new Set<net.Socket>();
  const proxy = net.createServer((socket) => {
    const other = net.connect(Number(target.port), target.hostname);
    sockets.add(socket).add(other);
    socket.on('data', (data) => lost(socket, data) || other.write(data));
    other.on('data', (data) => lost(socket, data) || socket.write(data));
    socket.on('error', () => other.destroy()).on('close', () => other.destroy());
    other.on('error', () => socket.destroy()).on('close', () => socket.destroy());
  });
  await once(proxy.listen(0, '127.0.0.1'), 'listening');
  return {
    connection: `redis://127.0.0.1:${(proxy.address() as net.AddressInfo).port}`,
    sockets,
    stop() {
      for (const socket of sockets) socket.destroy();
      proxy.close();
    },
  };
}

it('a connection that the network has dropped without telling is made again', async () => {
  const dropped = new Set<net.Socket>();
  const { connection, sockets, stop } = await lossy((socket) => dropped.has(socket));
  const queue = createQueue({ connection, prefix: 'dropped', timeoutMs: 300 });
  try {
    await queue.metrics();
    for (const socket of sockets) dropped.add(socket);
    await expect(queue.metrics()).rejects.toMatchObject({ code: 'QUEUE_UNREACHABLE' });
    const answers = () =>
      queue.metrics().then(
        () => true,
        () => false,
      );
    await expect.poll(answers).toBe(true);
  } finally {
    await queue.close();
    stop();
  }
});

it('may be closed while it subscribes again', async () => {
  // Nobody answers the second time.
  let subscribed = 0;
  const silent = new Set<net.Socket>();
  const { connection, stop } = await lossy((socket, data) => {
    if (/subscribe/i.test(String(data)) && !/pubsub/i.test(String(data)) && ++subscribed > 2)
      silent.add(socket);
    return silent.has(socket);
  });
  const { queue, redis, store } = fleet();
  const follower = createQueue({ connection, prefix: queue.prefix, store });
  const { sessionId } = await queue.enqueue('a', 'Hi.');
  const events = follower.join(sessionId);
  const next = events.next().catch(() => undefined);
  await expect.poll(() => subscribed).toBeGreaterThan(1);
  await redis.call('CLIENT', 'KILL', 'TYPE', 'pubsub');
  await expect.poll(() => silent.size).toBeGreaterThan(0);
  await follower.close();
  // An error that nobody handles would fail the test.
  await new Promise((resolve) => setTimeout(resolve, 100));
  void next;
  stop();
});

it('a failover that leaves connections open, with a server that refuses to write, is noticed', async () => {
  const failover = await startFailover();
  const { url: connection } = failover;
  const store = memoryStore();
  const errors: unknown[] = [];
  const queue = createQueue({ connection, store });
  const worker = createWorker({
    connection,
    store,
    agents: { a: agent() },
    drainOn: [],
    lockMs: 400,
    onError: (error) => errors.push(error),
  });
  try {
    await worker.ready();
    const before = await queue.enqueue('a', 'Before.');
    await queue.finished(before.runId);
    await failover.fail();
    await expect(queue.enqueue('a', 'Meanwhile.')).rejects.toMatchObject({ code: 'QUEUE_UNREACHABLE' });
    const { runId } = await queue.enqueue('a', 'After.');
    expect(await queue.finished(runId)).toMatchObject({ status: 'done' });
    expect(errors.length).toBeGreaterThan(0);
  } finally {
    await Promise.all([queue.close(), worker.close()]);
    await failover.stop();
  }
});
