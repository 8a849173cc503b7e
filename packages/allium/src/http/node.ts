/** A fetch handler as a listener of `node:http`, which Express and Fastify take, too. */

/** What of node's request is used. */
export interface NodeRequest extends AsyncIterable<Uint8Array> {
  readonly method?: string;
  readonly url?: string;
  /** Express keeps the whole address here where it mounts a handler on a path. */
  readonly originalUrl?: string;
  readonly headers: Readonly<Record<string, string | readonly string[] | undefined>>;
  readonly socket?: object;
  /** Where a parser such as `express.json()` has read the body already. */
  readonly body?: unknown;
}

/** What of node's response is used. */
export interface NodeResponse {
  statusCode: number;
  readonly writableEnded: boolean;
  setHeader(name: string, value: string): unknown;
  flushHeaders?(): void;
  write(chunk: Uint8Array): boolean;
  end(): unknown;
  once(event: 'close' | 'drain' | 'error', listener: () => void): unknown;
  removeListener(event: 'close' | 'drain' | 'error', listener: () => void): unknown;
  destroy(): unknown;
}

export type FetchHandler = (request: Request) => Response | Promise<Response>;

/**
 * Serves a fetch handler with `node:http`.
 *
 * @example
 * createServer(toNodeListener(serve({ agents, authorize }))).listen(3000);
 */
export function toNodeListener(
  handler: FetchHandler,
): (request: NodeRequest, response: NodeResponse) => Promise<void> {
  return async (incoming, outgoing) => {
    const left = new AbortController();
    outgoing.once('close', () => left.abort());
    let response: Response;
    try {
      response = await handler(toRequest(incoming, left.signal));
    } catch {
      response = new Response(undefined, { status: 500 });
    }
    outgoing.statusCode = response.status;
    for (const [name, value] of response.headers) outgoing.setHeader(name, value);
    if (response.body === null) return void outgoing.end();
    outgoing.flushHeaders?.();
    const reader = response.body.getReader();
    left.signal.addEventListener('abort', () => void reader.cancel().catch(() => undefined), { once: true });
    try {
      for (let step = await reader.read(); !step.done; step = await reader.read())
        if (!outgoing.write(step.value)) await drained(outgoing, left.signal);
      outgoing.end();
    } catch {
      outgoing.destroy();
    }
  };
}

function toRequest(incoming: NodeRequest, signal: AbortSignal): Request {
  const { method = 'GET', headers: given, socket } = incoming;
  const headers = new Headers();
  for (const [name, value] of Object.entries(given)) {
    if (value === undefined || name.startsWith(':')) continue;
    for (const one of typeof value === 'string' ? [value] : value) headers.append(name, one);
  }
  const host = headers.get('host') ?? headers.get(':authority') ?? 'localhost';
  const path = incoming.originalUrl ?? incoming.url ?? '/';
  const base = `${(socket as { encrypted?: boolean } | undefined)?.encrypted ? 'https' : 'http'}://${/^[\w.:[\]-]+$/.test(host) ? host : 'localhost'}`;
  const url = new URL(`${base}${path.startsWith('/') ? path : '/'}`);
  if (method === 'GET' || method === 'HEAD') return new Request(url, { method, headers, signal });
  const parsed = incoming.body;
  if (parsed !== undefined && parsed !== null) {
    headers.delete('content-length');
    const body = typeof parsed === 'string' || parsed instanceof Uint8Array ? parsed : JSON.stringify(parsed);
    return new Request(url, { method, headers, signal, body: body as string });
  }
  const chunks = incoming[Symbol.asyncIterator]();
  const body = new ReadableStream<Uint8Array>({
    async pull(controller) {
      const step = await chunks.next();
      if (step.done) controller.close();
      else controller.enqueue(step.value);
    },
    async cancel() {
      await chunks.return?.();
    },
  });
  return new Request(url, { method, headers, signal, body, duplex: 'half' } as RequestInit);
}

function drained(outgoing: NodeResponse, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const done = (): void => {
      outgoing.removeListener('drain', done);
      signal.removeEventListener('abort', done);
      resolve();
    };
    outgoing.once('drain', done);
    signal.addEventListener('abort', done, { once: true });
  });
}
