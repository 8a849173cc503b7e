/**
 * Clients that speak the protocol of 2025 over HTTP. They cancel a call, and answer the questions asked in it, with requests
 * of their own, so their connection has to be remembered. What is forgotten, or is another process's, is served request by
 * request: then calls can't be cancelled and the client can't be asked.
 */

import { randomUUID } from 'node:crypto';
import {
  type AuthInfo,
  isLegacyRequest,
  type McpServer,
  WebStandardStreamableHTTPServerTransport,
} from '@modelcontextprotocol/server';

interface Connection {
  readonly server: McpServer;
  readonly transport: WebStandardStreamableHTTPServerTransport;
  readonly tenant: string;
  /** Answers that are being sent. */
  open: number;
}

export class OldClients {
  /** By their ids; the one that was used last is at the end. */
  private readonly connections = new Map<string, Connection>();

  constructor(
    private readonly newServer: () => McpServer,
    private readonly max: number,
  ) {}

  /** The answer to a request of such a client, or undefined if the request has to be served alone. */
  async fetch(request: Request, authInfo: AuthInfo): Promise<Response | undefined> {
    // A GET would wait for what is sent between calls, which is nothing.
    if (request.method === 'GET') return undefined;
    const id = request.headers.get('mcp-session-id');
    if (id === null) return (await begins(request)) ? this.connect(request, authInfo) : undefined;
    const known = this.connections.get(id);
    return known?.tenant === authInfo.clientId ? this.serve(id, known, request, authInfo) : undefined;
  }

  async close(): Promise<void> {
    const all = [...this.connections.values()];
    this.connections.clear();
    await Promise.all(all.map(({ server }) => server.close()));
  }

  private async connect(request: Request, authInfo: AuthInfo): Promise<Response | undefined> {
    if (!this.hasRoom()) return undefined;
    const id = randomUUID();
    const server = this.newServer();
    const transport = new WebStandardStreamableHTTPServerTransport({
      sessionIdGenerator: () => id,
      onsessionclosed: () => void this.connections.delete(id),
    });
    await server.connect(transport);
    this.connections.set(id, { server, transport, tenant: authInfo.clientId, open: 0 });
    const response = await transport.handleRequest(request, { authInfo });
    if (!response.ok) {
      this.connections.delete(id);
      await server.close();
    }
    return response;
  }

  private async serve(
    id: string,
    connection: Connection,
    request: Request,
    authInfo: AuthInfo,
  ): Promise<Response> {
    this.connections.delete(id);
    this.connections.set(id, connection);
    const { transport } = connection;
    const copy = request.clone();
    const response = await transport.handleRequest(request, { authInfo });
    if (request.method === 'DELETE' || !response.headers.get('content-type')?.startsWith('text/event-stream'))
      return response;
    const calls = await idsIn(copy);
    connection.open++;
    return watched(response, request.signal, (left) => {
      connection.open--;
      // Nobody reads the answer of a client that has left, so its run ends.
      if (left) for (const requestId of calls) transport.onmessage?.(cancelled(requestId));
    });
  }

  /** Forgets the connection that was unused for longest, if there are too many. False if all are in use. */
  private hasRoom(): boolean {
    if (this.connections.size < this.max) return true;
    for (const [id, { server, open }] of this.connections) {
      if (open > 0) continue;
      this.connections.delete(id);
      server.close().catch(() => {});
      return true;
    }
    return false;
  }
}

/** Is it the first request of such a client? */
async function begins(request: Request): Promise<boolean> {
  if (request.method !== 'POST' || !(await isLegacyRequest(request))) return false;
  const body = await bodyOf(request.clone());
  return (body as { method?: unknown } | undefined)?.method === 'initialize';
}

type RequestId = string | number;

async function idsIn(request: Request): Promise<RequestId[]> {
  const body = await bodyOf(request);
  const ids = (Array.isArray(body) ? body : [body]).map((one) => (one as { id?: unknown } | undefined)?.id);
  return ids.filter((id): id is RequestId => typeof id === 'string' || typeof id === 'number');
}

async function bodyOf(request: Request): Promise<unknown> {
  return request.json().catch(() => undefined);
}

function cancelled(requestId: RequestId) {
  return {
    jsonrpc: '2.0' as const,
    method: 'notifications/cancelled',
    params: { requestId, reason: 'The client has left.' },
  };
}

/** The same response; `end` is called once, with whether its reader has left before its end. */
function watched(response: Response, signal: AbortSignal, end: (left: boolean) => void): Response {
  let ended = false;
  const endOnce = (left: boolean): void => {
    if (ended) return;
    ended = true;
    signal.removeEventListener('abort', leave);
    end(left);
  };
  const leave = (): void => endOnce(true);
  signal.addEventListener('abort', leave);
  if (signal.aborted) leave();
  const reader = response.body!.getReader();
  const body = new ReadableStream<Uint8Array>({
    async pull(controller) {
      const { done, value } = await reader.read();
      if (!done) return controller.enqueue(value);
      endOnce(false);
      controller.close();
    },
    cancel(reason) {
      leave();
      return reader.cancel(reason);
    },
  });
  return new Response(body, response);
}
