/** Tells which call a server of 2025 asks about, over HTTP: its question comes in the stream that answers the call. */

import { isRecord } from 'allium/kit';
import type { Fetch } from './own-signals.js';

const QUESTIONS = ['elicitation/create', 'sampling/createMessage'];

/** `onQuestion` gets the id of a question before anybody else reads it. `asked`: the request whose answer it came in. */
export function withQuestionsHeard(
  send: Fetch,
  onQuestion: (id: unknown, asked: RequestInit['body']) => void,
): Fetch {
  return async (url, init) => {
    const response = await send(url, init);
    const { body, headers, status, statusText } = response;
    if (!body || !init?.body || !headers.get('content-type')?.startsWith('text/event-stream'))
      return response;
    const hear = hearing((id) => onQuestion(id, init.body));
    const heard = body.pipeThrough(
      new TransformStream<Uint8Array, Uint8Array>({
        transform(piece, controller) {
          hear(piece);
          controller.enqueue(piece);
        },
      }),
    );
    return new Response(heard, { status, statusText, headers });
  };
}

/** Reads a stream of events, in whatever pieces it comes. */
function hearing(onQuestion: (id: unknown) => void): (piece: Uint8Array) => void {
  const decoder = new TextDecoder();
  let text = '';
  return (piece) => {
    // The end of an event may have begun in the piece before.
    const from = Math.max(0, text.length - 3);
    text += decoder.decode(piece, { stream: true });
    const ends = text.slice(from).matchAll(/\r\n\r\n|\n\n|\r\r/g);
    let begin = 0;
    for (const { index, 0: blank } of ends) {
      const end = from + index;
      const question = questionIn(text.slice(begin, end));
      if (question !== undefined) onQuestion(question);
      begin = end + blank.length;
    }
    text = text.slice(begin);
  };
}

/** The id of the question in this event, if it is one. */
function questionIn(event: string): unknown {
  if (!QUESTIONS.some((method) => event.includes(method))) return undefined;
  const lines = event.split(/\r\n|\n|\r/).filter((line) => line.startsWith('data:'));
  try {
    const said: unknown = JSON.parse(lines.map((line) => line.slice('data:'.length)).join('\n'));
    const { method, id } = (isRecord(said) ? said : {}) as { method?: unknown; id?: unknown };
    return QUESTIONS.includes(method as string) ? id : undefined;
  } catch {
    return undefined;
  }
}
