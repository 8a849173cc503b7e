/** A `fetch` that does not let a server fill the memory: answers have a largest size. */

import { AlliumError } from 'allium';
import type { Fetch } from './own-signals.js';

/**
 * Ends an answer that is larger than `limit` bytes; of a stream of events, one with an event that is. `onTooLarge` is
 * called first, with what was asked: the library doesn't pass on why a stream ended.
 */
export function withBoundedAnswers(
  send: Fetch,
  limit: number,
  onTooLarge: (error: AlliumError, asked: RequestInit['body']) => void,
): Fetch {
  return async (url, init) => {
    const response = await send(url, init);
    const { body, headers, status, statusText } = response;
    if (body === null || Number(headers.get('content-length') ?? Number.NaN) <= limit) return response;
    const isStream = headers.get('content-type')?.startsWith('text/event-stream') ?? false;
    const sizeWith = isStream ? eventSize() : wholeSize();
    const reader = body.getReader();
    const bounded = new ReadableStream<Uint8Array>(
      {
        async pull(controller) {
          const { done, value } = await reader.read();
          if (done) return controller.close();
          if (sizeWith(value) <= limit) return controller.enqueue(value);
          const error = tooLarge(limit);
          onTooLarge(error, init?.body);
          controller.error(error);
          await reader.cancel(error).catch(() => {});
        },
        cancel: (reason) => reader.cancel(reason),
      },
      { highWaterMark: 0 },
    );
    return new Response(bounded, { status, statusText, headers });
  };
}

export function tooLarge(limit: number): AlliumError {
  return new AlliumError(
    'MCP_FAILED',
    `The server sent more than ${limit} bytes at once. If that is intended, raise \`maxAnswerBytes\`.`,
    { data: { maxAnswerBytes: limit } },
  );
}

/** The size with each further piece. */
type SizeWith = (piece: Uint8Array) => number;

function wholeSize(): SizeWith {
  let size = 0;
  return (piece) => {
    size += piece.byteLength;
    return size;
  };
}

const NEWLINE = 10;
const RETURN = 13;

/** The size since the last empty line, which ends an event. */
function eventSize(): SizeWith {
  let size = 0;
  let last = 0;
  return (piece) => {
    let from = 0;
    for (let i = piece.indexOf(NEWLINE); i >= 0; i = piece.indexOf(NEWLINE, i + 1)) {
      const before = (back: number): number => (i - back < 0 ? last : piece[i - back]!);
      const isEmpty = before(1) === NEWLINE || (before(1) === RETURN && before(2) === NEWLINE);
      if (!isEmpty) continue;
      size = 0;
      from = i + 1;
    }
    size += piece.byteLength - from;
    last = piece.at(-1) ?? last;
    return size;
  };
}
