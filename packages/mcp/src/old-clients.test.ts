// What is remembered of clients of 2025, when there are too many of them. The rest is in server.test.ts, with the official client.

import { type AuthInfo, McpServer } from '@modelcontextprotocol/server';
import { expect, it } from 'vitest';
import { OldClients } from './old-clients.js';

const authInfo: AuthInfo = { token: '', clientId: 'acme', scopes: [] };

function post(method: string, params: object, sessionId?: string): Request {
  return new Request('http://127.0.0.1/mcp', {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
      ...(sessionId !== undefined && { 'mcp-session-id': sessionId }),
    },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method, params }),
  });
}

const initialize = () =>
  post('initialize', {
    protocolVersion: '2025-06-18',
    capabilities: {},
    clientInfo: { name: 'test', version: '1' },
  });

it('forgets who was silent for longest, and nobody whose call is being answered', async () => {
  let answer: () => void = () => {};
  const answered = new Promise<void>((resolve) => {
    answer = resolve;
  });
  const clients = new OldClients(() => {
    const server = new McpServer({ name: 'test', version: '1' }, { capabilities: { tools: {} } });
    server.registerTool('wait', { description: 'Waits.' }, async () => {
      await answered;
      return { content: [] };
    });
    return server;
  }, 2);
  const enter = async () => (await clients.fetch(initialize(), authInfo))?.headers.get('mcp-session-id');
  const call = (id: string) => clients.fetch(post('tools/call', { name: 'wait' }, id), authInfo);

  const [first, second] = [await enter(), await enter()];
  const calls = [await call(first!)];
  const third = await enter();
  expect(await call(second!)).toBeUndefined();
  calls.push(await call(third!));
  // Both are busy: the next client is not remembered, and not refused either.
  expect(await enter()).toBeUndefined();
  answer();
  for (const one of calls) expect(await one!.text()).toContain('"content":[]');
  expect(await enter()).toEqual(expect.any(String));
});
