/** Events as a `text/event-stream` response. */
import type { EventReader } from './follow.js';
import { nextTurn } from './next-turn.js';

export interface SseOptions {
  readonly headers?: Readonly<Record<string, string>>;
  /** Milliseconds without an event after which a comment is sent, so that proxies keep the connection. */
  readonly heartbeatMs: number;
  /** Called once the stream is read, after what could be sent at once. */
  readonly onBegin?: () => void;
  /** The reader has left before the end. */
  readonly onLeave?: () => void;
}

/** Text that is sent, in pieces; undefined at the end. */
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

export function sseResponse(
  next: TextSource,
  { headers, heartbeatMs, onBegin, onLeave }: SseOptions,
): Response {
  const encoder = new TextEncoder();
  let beat: ReturnType<typeof setInterval> | undefined;
  let begun = false;
  let over = false;
  const stop = (): void => {
    over = true;
    clearInterval(beat);
  };
  const body = new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        try {
          if (!begun) {
            begun = true;
            nextTurn(() => {
              if (over) return;
              beat = setInterval(() => controller.enqueue(encoder.encode(':\n\n')), heartbeatMs);
              (beat as { unref?: () => void }).unref?.();
              onBegin?.();
            });
          }
          const text = await next();
          if (text !== undefined) return controller.enqueue(encoder.encode(text));
          stop();
          controller.close();
        } catch {
          // The client reconnects with the id of the last event; what went wrong is not for it.
          stop();
          controller.error(new Error('The stream broke off.'));
        }
      },
      cancel() {
        stop();
        onLeave?.();
      },
    },
    { highWaterMark: 0 },
  );
  return new Response(body, {
    headers: {
      'content-type': 'text/event-stream; charset=utf-8',
      'cache-control': 'no-cache, no-transform',
      'x-accel-buffering': 'no',
      ...headers,
    },
  });
}
