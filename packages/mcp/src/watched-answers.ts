/** A `fetch` that looks at a server's answers on their way: at their size, and for questions among them. */

import { AlliumError } from 'allium';
import { isRecord } from 'allium/kit';
import type { Fetch } from './own-signals.js';

/** `asked`: the request that is answered, as it was sent. The library doesn't pass on what came with which answer. */
export interface AnswerListener {
  /** An answer was cut off because the server sent too much at once. */
  answerTooLarge(error: AlliumError, asked: RequestInit['body']): void;
  /** The question with this id came in the stream that answers a request. Called before anybody else reads it. */
  question(id: unknown, asked: RequestInit['body']): void;
}

/** Ends an answer that is larger than `limit` bytes; of a stream of events, one with an event that is. */
export function withWatchedAnswers(send: Fetch, limit: number, listener: AnswerListener): Fetch {
  return async (url, init) => {
    const response = await send(url, init);
    const { body, headers, status, statusText } = response;
    const asked = init?.body;
    const isStream = headers.get('content-type')?.startsWith('text/event-stream') ?? false;
    const isSmall = Number(headers.get('content-length') ?? Number.NaN) <= limit;
    if (body === null || (isSmall && !isStream)) return response;
    const sizeWith = isStream
      ? eventReader((event) => {
          const id = asked && questionIn(event);
          if (id !== undefined) listener.question(id, asked);
        })
      : wholeSize();
    const reader = body.getReader();
    const watched = new ReadableStream<Uint8Array>(
      {
        async pull(controller) {
          const { done, value } = await reader.read();
          if (done) return controller.close();
          if (sizeWith(value) <= limit) return controller.enqueue(value);
          const error = tooLarge(limit);
          listener.answerTooLarge(error, asked);
          controller.error(error);
          await reader.cancel(error).catch(() => {});
        },
        cancel: (reason) => reader.cancel(reason),
      },
      { highWaterMark: 0 },
    );
    return new Response(watched, { status, statusText, headers });
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

/** Cuts a stream into its events, each of which ends with an empty line. The size is that of the event under way. */
function eventReader(onEvent: (event: Buffer) => void): SizeWith {
  let pieces: Uint8Array[] = [];
  let size = 0;
  let last = 0;
  return (piece) => {
    let from = 0;
    for (let i = nextLineEnd(piece, 0); i >= 0; i = nextLineEnd(piece, i + 1)) {
      const before = i === 0 ? last : piece[i - 1];
      // A newline behind a return ends the same line.
      if (before !== NEWLINE && (before !== RETURN || piece[i] !== RETURN)) continue;
      onEvent(Buffer.concat([...pieces, piece.subarray(from, i + 1)]));
      pieces = [];
      size = 0;
      from = i + 1;
    }
    const rest = piece.subarray(from);
    pieces.push(rest);
    size += rest.byteLength;
    last = piece.at(-1) ?? last;
    return size;
  };
}

function nextLineEnd(piece: Uint8Array, from: number): number {
  for (let i = from; i < piece.length; i++) if (piece[i] === NEWLINE || piece[i] === RETURN) return i;
  return -1;
}

const QUESTIONS = ['elicitation/create', 'sampling/createMessage'];

/** The id of the question in this event, if it is one. */
function questionIn(event: Buffer): unknown {
  if (!QUESTIONS.some((method) => event.includes(method))) return undefined;
  const lines = event
    .toString()
    .split(/\r\n|\n|\r/)
    .filter((line) => line.startsWith('data:'));
  try {
    const said: unknown = JSON.parse(lines.map((line) => line.slice('data:'.length)).join('\n'));
    const { method, id } = (isRecord(said) ? said : {}) as { method?: unknown; id?: unknown };
    return QUESTIONS.includes(method as string) ? id : undefined;
  } catch {
    return undefined;
  }
}
