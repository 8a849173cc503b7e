import { describe, expect, it } from 'vitest';
import { Questions } from './questions.js';
import { withWatchedAnswers } from './watched-answers.js';

const question = (id: unknown, method = 'elicitation/create') =>
  JSON.stringify({ jsonrpc: '2.0', id, method });
const answer = JSON.stringify({
  jsonrpc: '2.0',
  id: 7,
  result: { content: [{ type: 'text', text: 'äöü € 😀' }] },
});

/** What is heard in a stream of these pieces, and the stream as its reader gets it. */
async function heardIn(pieces: readonly Uint8Array[], contentType = 'text/event-stream; charset=utf-8') {
  const heard: unknown[] = [];
  const send = withWatchedAnswers(
    async () => {
      const body = new ReadableStream<Uint8Array>({
        start(controller) {
          for (const piece of pieces) controller.enqueue(piece);
          controller.close();
        },
      });
      return new Response(body, { status: 200, headers: { 'content-type': contentType, 'x-other': 'kept' } });
    },
    1e6,
    { question: (id, asked) => heard.push([id, asked]), answerTooLarge: () => {} },
  );
  const response = await send('http://x', { method: 'POST', body: 'the call' });
  expect(response.headers.get('x-other')).toBe('kept');
  return { heard, text: await response.text() };
}

describe('withWatchedAnswers', () => {
  it.each([
    ['\\n', '\n'],
    ['\\r\\n', '\r\n'],
    ['\\r', '\r'],
  ])('hears questions wherever the stream is cut, with %s as the end of a line', async (_, end) => {
    const text = [
      `: ping${end}${end}`,
      `event: message${end}id: 1${end}data: ${question(5)}${end}${end}`,
      `data: ${answer}${end}${end}`,
      `data:${question('q', 'sampling/createMessage').replace(',', `,${end}data: `)}${end}${end}`,
    ].join('');
    const bytes = new TextEncoder().encode(text);
    const wanted = {
      heard: [
        [5, 'the call'],
        ['q', 'the call'],
      ],
      text,
    };
    expect(await heardIn([...bytes].map((byte) => Uint8Array.of(byte)))).toEqual(wanted);
    for (const size of [2, 3, 7, 50, bytes.length]) {
      const pieces = Array.from({ length: Math.ceil(bytes.length / size) }, (_, i) =>
        bytes.slice(i * size, (i + 1) * size),
      );
      expect(await heardIn(pieces)).toEqual(wanted);
    }
  });

  it.each([
    ['an answer that only mentions one', JSON.stringify({ id: 1, result: { text: 'elicitation/create' } })],
    ['what is not JSON', 'elicitation/create'],
    ['a list', `[${question(5)}]`],
  ])('hears none in %s', async (_, data) => {
    const text = `data: ${data}\n\n`;
    expect(await heardIn([new TextEncoder().encode(text)])).toEqual({ heard: [], text });
  });

  it('leaves answers that are no streams alone', async () => {
    const text = `data: ${question(5)}\n\n`;
    expect(await heardIn([new TextEncoder().encode(text)], 'application/json')).toEqual({ heard: [], text });
  });
});

it('forgets questions that are never asked, which a server could send for ever', async () => {
  const questions = new Questions<string>();
  questions.begin('a');
  questions.begin('b');
  for (let id = 0; id < 5000; id++) questions.heard(id, 'a');
  expect(await questions.ask(4999, async (call) => call)).toBe('a');
  // Nobody knows any more where the first one came from.
  const first = questions.ask(0, async (call) => call);
  questions.end('a');
  expect(await first).toBe('b');
});

describe('a question that came with a call', () => {
  const asked = async (known: string | undefined, ...calls: string[]) => {
    const questions = new Questions<string>();
    for (const call of calls) questions.begin(call);
    questions.heard(1, known);
    return questions.ask(1, async (call) => call);
  };

  it('is asked in its name, whatever else is under way', async () => {
    expect(await asked('b', 'a', 'b', 'c')).toBe('b');
  });

  it.each([[undefined], ['gone']])('is never asked in the name of another call (%s)', async (known) => {
    await expect(asked(known, 'a')).rejects.toMatchObject({ code: 'MCP_QUESTION_UNCLEAR' });
  });
});
