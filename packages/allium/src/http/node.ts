/** A fetch handler as a listener for `node:http`, Express and Fastify. */

import { keepBytes } from './body.js';
import { nextTurn } from './next-turn.js';
import { sourceOf } from './sse.js';

/** The part of node's request that is used. */
export interface NodeRequest extends AsyncIterable<Uint8Array> {
  readonly method?: string;
  readonly url?: string;
  /** Where Express keeps the whole address if a handler is mounted on a path. */
  readonly originalUrl?: string;
  readonly headers: Readonly<Record<string, string | readonly string[] | undefined>>;
  readonly socket?: object;
  /** The body, if a parser such as `express.json()` has read it already. */
  readonly body?: unknown;
  on(event: 'data', listener: (chunk: Uint8Array) => void): unknown;
  on(event: 'end' | 'error', listener: (error?: unknown) => void): unknown;
}

/** The part of node's response that is used. */
export interface NodeResponse {
  statusCode: number;
  readonly destroyed: boolean;
  readonly writableEnded: boolean;
  setHeader(name: string, value: string): unknown;
  flushHeaders?(): void;
  write(chunk: string | Uint8Array): boolean;
  end(): unknown;
  once(event: 'close' | 'drain', listener: () => void): unknown;
  destroy(): unknown;
}

type RequestBody = NonNullable<RequestInit['body']>;

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
    let response: Response;
    try {
      response = await handler(await toRequest(incoming, outgoing));
    } catch {
      response = new Response(undefined, { status: 500 });
    }
    outgoing.statusCode = response.status;
    for (const [name, value] of response.headers) outgoing.setHeader(name, value);
    const { body } = response;
    if (body === null) return void outgoing.end();
    await send(chunksOf(response, body, outgoing), outgoing);
  };
}

/** The body of a response, piece by piece. */
interface Chunks {
  /** Undefined at the end. */
  next(): Promise<string | Uint8Array | undefined>;
  leave(): void;
}

/** Events of `serve` are written as they are; anything else is read from its stream. */
function chunksOf(response: Response, body: ReadableStream<Uint8Array>, outgoing: NodeResponse): Chunks {
  const source = sourceOf(response);
  if (source) {
    source.begin((comment) => outgoing.write(comment));
    return source;
  }
  const reader = body.getReader();
  return {
    next: async () => (await reader.read()).value,
    leave: () => void reader.cancel().catch(() => undefined),
  };
}

async function send(chunks: Chunks, outgoing: NodeResponse): Promise<void> {
  let left = false;
  let drain: () => void = () => {};
  outgoing.once('close', () => {
    if (outgoing.writableEnded) return;
    left = true;
    drain();
    chunks.leave();
  });
  // Headers go out with the first piece, or before it if that takes a while.
  let begun = false;
  nextTurn(() => {
    if (!begun && !left) outgoing.flushHeaders?.();
  });
  try {
    for (let chunk = await chunks.next(); chunk !== undefined && !left; chunk = await chunks.next()) {
      begun = true;
      if (outgoing.write(chunk)) continue;
      await new Promise<void>((resolve) => {
        drain = resolve;
        if (left) resolve();
        outgoing.once('drain', resolve);
      });
    }
    begun = true;
    outgoing.end();
  } catch {
    begun = true;
    outgoing.destroy();
  }
}

async function toRequest(incoming: NodeRequest, outgoing: NodeResponse): Promise<Request> {
  const { method = 'GET' } = incoming;
  const headers = new Headers();
  for (const [name, value] of Object.entries(incoming.headers)) {
    if (value === undefined || name.startsWith(':')) continue;
    if (typeof value === 'string') headers.set(name, value);
    else for (const one of value) headers.append(name, one);
  }
  // Parsers such as that of Express leave an empty object if there was nothing to read.
  const isEmpty = hasNoBody(incoming.headers);
  const isRead = !isEmpty && incoming.body !== undefined && incoming.body !== null;
  if (isRead) headers.delete('content-length');
  const body = isEmpty || method === 'GET' || method === 'HEAD' ? undefined : await bodyOf(incoming, isRead);
  const request = new Request(urlOf(incoming), { method, headers, body, duplex: 'half' } as RequestInit);
  if (body instanceof Uint8Array) keepBytes(request, body);
  // Following a signal is the most expensive part of a Request, so it is made when somebody asks for it.
  let left: AbortController | undefined;
  Object.defineProperty(request, 'signal', {
    get() {
      if (left === undefined) {
        const controller = new AbortController();
        left = controller;
        if (outgoing.destroyed) controller.abort();
        else
          outgoing.once('close', () => {
            if (!outgoing.writableEnded) controller.abort();
          });
      }
      return left.signal;
    },
  });
  return request;
}

/** HTTP/2 shows the length of a body by ending it. */
function hasNoBody(headers: NodeRequest['headers']): boolean {
  const { 'content-length': length, 'transfer-encoding': encoding, ':method': isHttp2 } = headers;
  return length === undefined ? encoding === undefined && !isHttp2 : Number(length) === 0;
}

/** Small bodies of a known size are read at once, which takes a tenth of the time; others are streamed. */
const SMALL = 65_536;

async function bodyOf(incoming: NodeRequest, isRead: boolean): Promise<RequestBody> {
  if (isRead) {
    const { body } = incoming;
    return typeof body === 'string' || body instanceof Uint8Array
      ? (body as RequestBody)
      : JSON.stringify(body);
  }
  if (Number(incoming.headers['content-length']) <= SMALL) return whole(incoming);
  const chunks = incoming[Symbol.asyncIterator]();
  return new ReadableStream<Uint8Array>({
    async pull(controller) {
      const step = await chunks.next();
      if (step.done) controller.close();
      else controller.enqueue(step.value);
    },
    async cancel() {
      await chunks.return?.();
    },
  });
}

function whole(incoming: NodeRequest): Promise<RequestBody> {
  return new Promise((resolve, reject) => {
    const chunks: Uint8Array[] = [];
    incoming.on('data', (chunk) => void chunks.push(chunk));
    incoming.on('end', () => resolve(chunks.length === 1 ? (chunks[0] as RequestBody) : new Blob(chunks)));
    incoming.on('error', reject);
  });
}

function urlOf({ originalUrl, url, headers, socket }: NodeRequest): string {
  const { host } = headers;
  const name = typeof host === 'string' && /^[\w.:[\]-]+$/.test(host) ? host : 'localhost';
  const path = originalUrl ?? url ?? '/';
  const scheme = (socket as { encrypted?: boolean } | undefined)?.encrypted ? 'https' : 'http';
  return `${scheme}://${name}${path.startsWith('/') ? path : '/'}`;
}
