/** An address of Redis behind which one server takes the place of another. */
import { once } from 'node:events';
import net from 'node:net';
import { Redis } from 'ioredis';
import { startRedis } from './redis-server.js';

export interface Failover {
  /** Leads to the primary. */
  readonly url: string;
  /** The replica becomes the primary, and the primary its replica. Open connections stay where they are. */
  fail(): Promise<void>;
  stop(): Promise<void>;
}

export async function startFailover(): Promise<Failover> {
  const servers = await Promise.all([startRedis(), startRedis()]);
  const ports = servers.map(({ url }) => Number(new URL(url).port));
  const clients = ports.map((port) => new Redis(port));
  const [first, second] = clients as [Redis, Redis];
  await second.replicaof('127.0.0.1', ports[0]!);
  let primary = ports[0]!;
  const sockets = new Set<net.Socket>();
  const proxy = net.createServer((socket) => {
    const server = net.connect(primary, '127.0.0.1');
    for (const [from, to] of [
      [socket, server],
      [server, socket],
    ] as const) {
      sockets.add(from);
      from.on('error', () => to.destroy()).on('close', () => to.destroy());
      from.pipe(to);
    }
  });
  await once(proxy.listen(0, '127.0.0.1'), 'listening');
  const { port } = proxy.address() as net.AddressInfo;
  return {
    url: `redis://127.0.0.1:${port}`,
    async fail() {
      for (;;) {
        const synced = await first.wait(1, 1000);
        if (synced === 1) break;
      }
      await second.replicaof('NO', 'ONE');
      await first.replicaof('127.0.0.1', ports[1]!);
      primary = ports[1]!;
    },
    async stop() {
      for (const client of clients) client.disconnect();
      for (const socket of sockets) socket.destroy();
      proxy.close();
      await Promise.all(servers.map((server) => server.stop()));
    },
  };
}
