/** Measures a server of events: what an event takes, when the first byte comes, and what an open stream weighs. */
import { fork } from 'node:child_process';
import http from 'node:http';
import { fileURLToPath } from 'node:url';
import { oneConnection, post } from './sse-client.mjs';

const CLIENT = fileURLToPath(new URL('sse-client.mjs', import.meta.url));

async function listening(listener) {
  const server = http.createServer(listener);
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  server.unref();
  return server.address().port;
}

/** For `measure`: one answer per run, all of its events read. */
export async function readEvents(listener, path, count) {
  const port = await listening(listener);
  const agent = oneConnection();
  return async () => {
    const { events } = await post(port, path, agent);
    return events >= count ? count : events;
  };
}

/**
 * The microseconds to the first byte of each server's answers, which take turns. All of them are in this process, so that
 * what slows it down slows all of them. The client is a process of its own: in this one it would get its turn only after
 * the rest of the run.
 *
 * @param {{ listener: http.RequestListener, path: string }[]} servers
 * @returns {Promise<number[][]>} For each round, one figure per server.
 */
export async function firstBytes(servers, { requests }) {
  const places = [];
  for (const { listener, path } of servers) places.push(await listening(listener), path);
  const client = fork(CLIENT, ['first', requests, ...places], {
    stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
  });
  return new Promise((resolve, reject) => {
    client.once('error', reject);
    client.once('message', resolve);
  });
}

/** What this process grows by, for each stream that a client in another one holds open. */
export async function weighOpen(listener, path, { streams }) {
  const port = await listening(listener);
  const settled = () => {
    for (let i = 0; i < 4; i++) globalThis.gc();
    return process.memoryUsage();
  };
  await hold(port, path, 20);
  const before = settled();
  const client = await hold(port, path, streams, true);
  const after = settled();
  client.send('leave');
  return {
    heapKB: (after.heapUsed - before.heapUsed) / streams / 1024,
    residentKB: (after.rss - before.rss) / streams / 1024,
  };
}

function hold(port, path, streams, stays = false) {
  return new Promise((resolve, reject) => {
    const client = fork(CLIENT, ['open', port, path, streams], {
      stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
    });
    client.once('error', reject);
    client.once('message', () => {
      if (stays) return resolve(client);
      client.once('exit', () => resolve(client));
      client.send('leave');
    });
  });
}
