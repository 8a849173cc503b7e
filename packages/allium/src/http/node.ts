/** A fetch handler as a listener for `node:http`, Express and Fastify. */

import { keepBytes } from './body.js';
import { failureResponse, invalidRequest, report } from './failures.js';
import { nextTurn } from './next-turn.js';
import { sourceOf } from './sse.js';

/** The part of node's request that is used. */
export interface NodeRequest {
  readonly method?: string | undefined;
  readonly url?: string | undefined;
  /** Where Express keeps the whole address if a handler is mounted on a path. */
  readonly originalUrl?: string | undefined;
  readonly headers: Readonly<Record<string, string | readonly string[] | undefined>>;
  readonly socket?: object;
  /** The body, if a parser such as `express.json()` has read it already. */
  readonly body?: unknown;
  /** Somebody has read the body. */
  readonly readableEnded?: boolean;
  on(event: 'data', listener: (chunk: Uint8Array) => void): unknown;
  on(event: 'end' | 'error' | 'close', listener: (error?: unknown) => void): unknown;
  pause(): unknown;
  resume(): unknown;
}

/** The part of node's response that is used. */
export interface NodeResponse {
  statusCode: number;
  readonly destroyed: boolean;
  readonly writableEnded: boolean;
  setHeader(name: string, value: string | readonly string[]): unknown;
  flushHeaders?(): void;
  write(chunk: string | Uint8Array): boolean;
  end(): unknown;
  once(event: 'close' | 'drain' | 'finish', listener: () => void): unknown;
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
    const response = await answered(handler, incoming, outgoing);
    outgoing.statusCode = response.status;
    for (const [name, value] of response.headers) outgoing.setHeader(name, value);
    // The loop has them one by one, and each would take the place of the one before.
    const cookies = response.headers.getSetCookie();
    if (cookies.length > 0) outgoing.setHeader('set-cookie', cookies);
    const { body } = response;
    if (body === null) return void outgoing.end();
    const chunks = chunksOf(response, body, outgoing);
    // The client has left meanwhile.
    if (outgoing.destroyed) return chunks.leave();
    await send(chunks, outgoing);
  };
}

async function answered(
  handler: FetchHandler,
  incoming: NodeRequest,
  outgoing: NodeResponse,
): Promise<Response> {
  let request: Request;
  try {
    request = await toRequest(incoming, outgoing);
  } catch {
    // Its `host`, such as `::`, or its method, such as TRACE. Or the client has left.
    return failureResponse(
      invalidRequest('The request cannot be read: its method, its address or its body.'),
    );
  }
  try {
    return await handler(request);
  } catch (error) {
    report(error);
    return new Response(undefined, { status: 500 });
  }
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
  const body =
    isEmpty || method === 'GET' || method === 'HEAD' ? undefined : await bodyOf(incoming, outgoing, isRead);
  const request = new Request(urlOf(incoming), { method, headers, body, duplex: 'half' } as RequestInit);
  if (body instanceof Uint8Array) keepBytes(request, body);
  // What is read once can't be read again: then this request says so, too.
  if (body === GONE) await request.text();
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

/** A body that was read, and that nobody has left on the request. */
const GONE = '';

/** Small bodies of a known size are read at once, which takes a tenth of the time; others are streamed. */
const SMALL = 65_536;

async function bodyOf(incoming: NodeRequest, outgoing: NodeResponse, isRead: boolean): Promise<RequestBody> {
  if (isRead) {
    const { body } = incoming;
    return typeof body === 'string' || body instanceof Uint8Array
      ? (body as RequestBody)
      : JSON.stringify(body);
  }
  if (incoming.readableEnded) return GONE;
  return Number(incoming.headers['content-length']) <= SMALL ? whole(incoming) : streamed(incoming, outgoing);
}

/**
 * A body that is read as far as somebody wants it. The rest is read and thrown away: until then the client can't send
 * another request on this connection.
 */
function streamed(incoming: NodeRequest, outgoing: NodeResponse): ReadableStream<Uint8Array> {
  let begun = false;
  let over = false;
  const discard = (): void => {
    over = true;
    incoming.resume();
  };
  outgoing.once('finish', discard);
  return new ReadableStream<Uint8Array>(
    {
      start(controller) {
        const end = (): void => {
          if (!over) controller.close();
          over = true;
        };
        onEnd(incoming, end, (error) => controller.error(error));
      },
      pull(controller) {
        if (begun) return void incoming.resume();
        begun = true;
        incoming.on('data', (chunk) => {
          if (over) return;
          incoming.pause();
          controller.enqueue(chunk);
        });
      },
      cancel: discard,
    },
    { highWaterMark: 0 },
  );
}

function whole(incoming: NodeRequest): Promise<RequestBody> {
  return new Promise((resolve, reject) => {
    const chunks: Uint8Array[] = [];
    incoming.on('data', (chunk) => void chunks.push(chunk));
    const end = (): void => resolve(chunks.length === 1 ? (chunks[0] as RequestBody) : new Blob(chunks));
    onEnd(incoming, end, reject);
  });
}

/** A client that leaves is an error, or with HTTP/2 only a `close`. */
function onEnd(incoming: NodeRequest, ended: () => void, failed: (error: unknown) => void): void {
  incoming.on('end', ended);
  incoming.on('error', failed);
  incoming.on('close', () => failed(new Error('The request broke off.')));
}

function urlOf({ originalUrl, url, headers, socket }: NodeRequest): string {
  // HTTP/2 names it otherwise.
  const host = headers.host ?? headers[':authority'];
  const name = typeof host === 'string' && /^[\w.:[\]-]+$/.test(host) ? host : 'localhost';
  const path = originalUrl ?? url ?? '/';
  const scheme = (socket as { encrypted?: boolean } | undefined)?.encrypted ? 'https' : 'http';
  return `${scheme}://${name}${path.startsWith('/') ? path : '/'}`;
}
