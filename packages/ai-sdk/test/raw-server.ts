/** An HTTP server on the loopback that says exactly what it is told, byte by byte, and sees when it is left. */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

/** The body of a request, which differs from wire to wire. */
// biome-ignore lint/suspicious/noExplicitAny: tests look into it freely.
export type Body = any;

export interface Received {
  readonly path: string;
  readonly headers: IncomingMessage['headers'];
  readonly body: Body;
  /** Resolves when the client has closed the connection before the answer was complete. */
  readonly left: Promise<void>;
}

/** Answers one request. */
export type Reply = (response: ServerResponse, request: Received) => void | Promise<void>;

export interface RawServer {
  readonly url: string;
  /** Everything that was asked, in order. */
  readonly received: readonly Received[];
  /** The next requests get these, one each; the last one again and again. */
  reply(...replies: readonly Reply[]): void;
  stop(): Promise<void>;
}

export async function rawServer(): Promise<RawServer> {
  let replies: readonly Reply[] = [];
  let received: Received[] = [];
  let at = 0;
  const server = createServer(async (request, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const left = new Promise<void>((resolve) => {
      response.on('close', () => {
        if (!response.writableFinished) resolve();
      });
    });
    const body = JSON.parse(Buffer.concat(chunks).toString('utf8'));
    const one: Received = { path: request.url ?? '', headers: request.headers, body, left };
    received.push(one);
    const reply = replies[Math.min(at++, replies.length - 1)];
    await reply?.(response, one);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}`,
    get received() {
      return received;
    },
    reply(...given) {
      [replies, received, at] = [given, [], 0];
    },
    stop() {
      server.closeAllConnections();
      return new Promise((resolve) => server.close(() => resolve()));
    },
  };
}

const SSE = { 'content-type': 'text/event-stream' };

/** Streams frames and ends in good order. */
export function streams(frames: readonly string[]): Reply {
  return (response) => {
    response.writeHead(200, SSE);
    for (const frame of frames) response.write(frame);
    response.end();
  };
}

/** Streams frames and breaks the connection. */
export function cuts(frames: readonly string[]): Reply {
  return async (response) => {
    response.writeHead(200, SSE);
    for (const frame of frames) await new Promise((resolve) => response.write(frame, resolve));
    // What was written has to be on its way before the connection breaks.
    await new Promise((resolve) => setImmediate(resolve));
    response.destroy();
  };
}

/** Streams frames and then neither goes on nor ends. */
export function hangs(frames: readonly string[]): Reply {
  return (response) => {
    response.writeHead(200, SSE);
    response.flushHeaders();
    for (const frame of frames) response.write(frame);
  };
}

/** Streams the bytes of the frames one TCP segment each, so that no character of several bytes stays whole. */
export function bytewise(frames: readonly string[]): Reply {
  return async (response) => {
    response.writeHead(200, SSE);
    response.socket?.setNoDelay(true);
    for (const byte of Buffer.from(frames.join(''), 'utf8')) {
      await new Promise((resolve) => response.write(Buffer.from([byte]), resolve));
    }
    response.end();
  };
}

export function refuses(status: number, body: object, headers: Record<string, string> = {}): Reply {
  return (response) => {
    response.writeHead(status, { 'content-type': 'application/json', ...headers });
    response.end(JSON.stringify(body));
  };
}
