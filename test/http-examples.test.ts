// The servers of examples/http answer, stream, and keep strangers out.

import { existsSync } from 'node:fs';
import { createServer, type RequestListener, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import { whenMade } from '../scripts/once.mjs';
import { root } from '../scripts/repository.mjs';
import { tryExample } from './http-example.js';

const folder = join(root, 'examples', 'http');
await whenMade('browser');
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

const load = (file: string): Promise<Record<string, any>> => import(join(folder, file));
const asFetch =
  (handler: Fetch): typeof fetch =>
  async (url, init) =>
    handler(new Request(url as string, init));

describe('the example for', () => {
  it('node:http', async () => {
    const { server } = await load('node-http.mjs');
    await tryExample(await listening(server), fetch);
  });

  it.skipIf(!installed)('Hono', async () => {
    const { app } = await load('hono.mjs');
    await tryExample(
      'http://x',
      asFetch((request) => app.fetch(request)),
    );
  });

  it.skipIf(!installed)('Express', async () => {
    const { app } = await load('express.mjs');
    const origin = await listening(createServer(app as RequestListener));
    expect(await (await fetch(origin)).text()).toBe('Hello.');
    await tryExample(origin, fetch);
  });

  it.skipIf(!installed)('Fastify', async () => {
    const { app } = await load('fastify.mjs');
    await app.ready();
    await tryExample(await listening(app.server), fetch);
    await app.close();
  });
});
