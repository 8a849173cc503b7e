/** Events as a `text/event-stream` response. */

import { nextTurn } from './next-turn.js';
import type { EventReader } from './reader.js';

export interface SseOptions {
  readonly headers?: Readonly<Record<string, string>>;
  /** Milliseconds without an event after which a comment is sent, so that proxies keep the connection. */
  readonly heartbeatMs: number;
  /** Called once the stream is read, after what could be sent at once. */
  readonly onBegin?: () => void;
  /** The reader left before the end. */
  readonly onLeave?: () => void;
}

/** Text to send, in pieces; undefined at the end. */
export type TextSource = () => Promise<string | undefined>;

/** The lines of events. */
export function sseLines(reader: EventReader): TextSource {
  return async () => {
    const batch = await reader.next();
    if (batch === undefined) return undefined;
    let text = '';
    for (const { id, event } of batch) text += `id: ${id}\ndata: ${JSON.stringify(event)}\n\n`;
    return text;
  };
}

const HEADERS = {
  'content-type': 'text/event-stream; charset=utf-8',
  'cache-control': 'no-cache, no-transform',
  'x-accel-buffering': 'no',
} as const;

export function sseResponse(next: TextSource, { headers, ...options }: SseOptions): Response {
  const source = new SseSource(next, options);
  const encoder = new TextEncoder();
  const body = new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        source.begin((text) => controller.enqueue(encoder.encode(text)));
        try {
          const text = await source.next();
          if (text === undefined) controller.close();
          else controller.enqueue(encoder.encode(text));
        } catch {
          // The client reconnects with the id of the last event. It doesn't need to know what went wrong.
          controller.error(new Error('The stream broke off.'));
        }
      },
      cancel: () => source.leave(),
    },
    { highWaterMark: 0 },
  );
  const response: WithSource = new Response(body, { headers: { ...HEADERS, ...headers } });
  response[SOURCE] = source;
  return response;
}

const SOURCE = Symbol('source');
type WithSource = Response & { [SOURCE]?: SseSource };

/** The text of a response before it becomes a stream of bytes, for a server that writes it itself. */
export function sourceOf(response: WithSource): SseSource | undefined {
  return response.bodyUsed || response.body?.locked ? undefined : response[SOURCE];
}

/** Text, and comments while there is none. */
export class SseSource {
  private beat: ReturnType<typeof setInterval> | undefined;
  private begun = false;
  private over = false;

  constructor(
    private readonly text: TextSource,
    private readonly options: Omit<SseOptions, 'headers'>,
  ) {}

  /** Once somebody reads: `write` gets the comments. */
  begin(write: (comment: string) => void): void {
    if (this.begun) return;
    this.begun = true;
    const { heartbeatMs, onBegin } = this.options;
    nextTurn(() => {
      if (this.over) return;
      this.beat = setInterval(() => write(':\n\n'), heartbeatMs);
      (this.beat as { unref?: () => void }).unref?.();
      onBegin?.();
    });
  }

  /** Waits for text. Undefined at the end. */
  async next(): Promise<string | undefined> {
    try {
      const text = await this.text();
      if (text === undefined) this.stop();
      return text;
    } catch (error) {
      this.stop();
      throw error;
    }
  }

  /** Nobody reads any more. */
  leave(): void {
    this.stop();
    this.options.onLeave?.();
  }

  private stop(): void {
    this.over = true;
    clearInterval(this.beat);
  }
}
