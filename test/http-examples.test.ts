// The servers of examples/http answer, stream, and keep strangers out.

import { existsSync } from 'node:fs';
import { createServer, type RequestListener, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { alliumClient, messageText } from 'allium/http/client';
import { afterEach, describe, expect, it } from 'vitest';
import { root } from '../scripts/repository.mjs';

const folder = join(root, 'examples', 'http');
const installed = existsSync(join(folder, 'node_modules', 'hono'));
if (!installed)
  process.stderr.write(
    'SKIPPED: Hono, Express and Fastify. They are not installed: run `node scripts/browser.mjs`.\n',
  );

type Fetch = (request: Request) => Response | Promise<Response>;

const servers: Server[] = [];
afterEach(() => {
  for (const server of servers.splice(0)) {
    server.closeAllConnections();
    server.close();
  }
});

async function listening(server: Server): Promise<string> {
  servers.push(server);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

/** Asks, reads the events, goes on, and is refused without a token. */
async function tries(origin: string, send: typeof fetch): Promise<void> {
  const baseUrl = `${origin}/api/agent`;
  const client = alliumClient({ baseUrl, fetch: send, headers: { authorization: 'Bearer secret-of-ann' } });
  const run = client.run('What is the forecast for Bergen?');
  const types = new Set<string>();
  for await (const { event } of run) types.add(event.type);
  expect([...types]).toEqual(expect.arrayContaining(['message_update', 'tool_execution_end', 'agent_end']));
  const { sessionId, text, status } = await run.result;
  expect([status, text]).toEqual(['done', expect.stringContaining('rain')]);
  const { messages } = await client.messages(sessionId);
  expect(messageText(messages[0]!)).toBe('What is the forecast for Bergen?');
  await client.delete(sessionId);
  await expect(client.messages(sessionId)).rejects.toMatchObject({ status: 404 });
  await expect(alliumClient({ baseUrl, fetch: send }).sessions()).rejects.toMatchObject({ status: 401 });
  const large = client.run('x'.repeat(2_000_000));
  await expect(large.result).rejects.toMatchObject({ status: 413 });
}

const load = (file: string): Promise<Record<string, any>> => import(join(folder, file));
const asFetch =
  (handler: Fetch): typeof fetch =>
  async (url, init) =>
    handler(new Request(url as string, init));

describe('the example for', () => {
  it('node:http', async () => {
    const { server } = await load('node-http.mjs');
    await tries(await listening(server), fetch);
  });

  it('Next.js', async () => {
    const { GET, POST, DELETE } = await load('next/route.mjs');
    const handlers: Record<string, Fetch> = { GET, POST, DELETE };
    await tries(
      'http://x',
      asFetch((request) => handlers[request.method]!(request)),
    );
  });

  it.skipIf(!installed)('Hono', async () => {
    const { app } = await load('hono.mjs');
    await tries(
      'http://x',
      asFetch((request) => app.fetch(request)),
    );
  });

  it.skipIf(!installed)('Express', async () => {
    const { app } = await load('express.mjs');
    const origin = await listening(createServer(app as RequestListener));
    expect(await (await fetch(origin)).text()).toBe('Hello.');
    await tries(origin, fetch);
  });

  it.skipIf(!installed)('Fastify', async () => {
    const { app } = await load('fastify.mjs');
    await app.ready();
    await tries(await listening(app.server), fetch);
    await app.close();
  });
});
