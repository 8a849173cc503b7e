import { getEventListeners, once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { withOwnSignals } from './own-signals.js';

describe('withOwnSignals', () => {
  let server: Server;
  let url: string;
  let left: Promise<unknown>;

  beforeEach(async () => {
    server = createServer((request, response) => {
      if (request.url === '/never') return;
      response.write('begun');
      if (request.url === '/open') left = once(response, 'close');
      else response.end();
    }).listen(0, '127.0.0.1');
    await once(server, 'listening');
    url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  });
  afterEach(() => {
    server.closeAllConnections();
    server.close();
  });

  it('leaves one listener on a signal that many requests share', async () => {
    const send = withOwnSignals();
    const { signal } = new AbortController();
    for (let i = 0; i < 200; i++) expect(await (await send(url, { signal })).text()).toBe('begun');
    expect(getEventListeners(signal, 'abort')).toHaveLength(1);
  });

  it('ends a request that has no answer yet', async () => {
    const shared = new AbortController();
    const answer = withOwnSignals()(`${url}/never`, { signal: shared.signal });
    shared.abort(new Error('closed'));
    await expect(answer).rejects.toThrow('closed');
  });

  it('ends an answer that is being read', async () => {
    const shared = new AbortController();
    const { body } = await withOwnSignals()(`${url}/open`, { signal: shared.signal });
    const reader = body!.getReader();
    await reader.read();
    shared.abort(new Error('closed'));
    await expect(reader.read()).rejects.toThrow();
    await left;
  });

  it('begins nothing with a signal that was aborted before', async () => {
    await expect(withOwnSignals()(url, { signal: AbortSignal.abort(new Error('gone')) })).rejects.toThrow(
      'gone',
    );
  });

  it('passes requests without a signal on', async () => {
    expect(await (await withOwnSignals()(url)).text()).toBe('begun');
  });
});
