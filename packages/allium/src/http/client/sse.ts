/** Reads server-sent events from a response. */

export interface SseEvent {
  readonly id: string | undefined;
  readonly data: string;
}

/** `onComment`: there is nothing to send, but the server is there. */
export async function* sseEvents(
  body: ReadableStream<Uint8Array>,
  onComment: () => void = () => {},
): AsyncGenerator<SseEvent, undefined> {
  const reader = body.getReader();
  const decoder = new TextDecoder();
  let rest = '';
  try {
    for (let step = await reader.read(); !step.done; step = await reader.read()) {
      rest += decoder.decode(step.value, { stream: true });
      const blocks = rest.split('\n\n');
      rest = blocks.pop()!;
      for (const block of blocks) {
        const event = parse(block);
        if (event) yield event;
        else onComment();
      }
    }
  } finally {
    await reader.cancel().catch(() => undefined);
  }
}

/** Undefined for comments. */
function parse(block: string): SseEvent | undefined {
  let id: string | undefined;
  let data: string | undefined;
  for (const line of block.split('\n')) {
    if (line.startsWith('id: ')) id = line.slice(4);
    else if (line.startsWith('data: '))
      data = data === undefined ? line.slice(6) : `${data}\n${line.slice(6)}`;
  }
  return data === undefined ? undefined : { id, data };
}
