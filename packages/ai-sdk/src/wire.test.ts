// The four provider packages over HTTP against a server that breaks, stalls and splits as it is told.
import { Agent, type AgentEvent, tool } from 'allium';
import { retry } from 'allium/middleware/retry';
import { structuredOutput } from 'allium/middleware/structured-output';
import { timeout } from 'allium/middleware/timeout';
import { collect, fakeClock } from 'allium/testing';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { z } from 'zod';
import { partsOf, textIn } from '../test/ask.js';
import { bytewise, cuts, hangs, type RawServer, rawServer, refuses, streams } from '../test/raw-server.js';
import { anthropic, openaiResponses, textFrames, WIRES, type Wire } from '../test/wires.js';

let server: RawServer;
beforeAll(async () => {
  server = await rawServer();
});
afterAll(() => server.stop());

/** Lets the network have its turn until something is the case. */
async function until(fine: () => boolean): Promise<void> {
  while (!fine()) await new Promise((resolve) => setImmediate(resolve));
}

const again = () => retry({ minDelayMs: 0, jitter: 'none' });
const look = (execute: () => string) =>
  tool({ name: 'look', description: 'Looks.', input: z.object({}), execute });

describe.each(WIRES)('$name', (wire: Wire) => {
  const model = () => wire.model(server.url);
  const hello = () => streams(textFrames(wire, 'Good ', 'morning.'));

  it('waits as long as a 429 response asks before it tries again', async () => {
    server.reply(refuses(429, wire.error('rate_limit_error'), { 'retry-after': '20' }), hello());
    const clock = fakeClock();
    const run = new Agent({
      model: model(),
      middleware: [retry({ clock, minDelayMs: 1, maxDelayMs: 30_000 })],
    }).run('Hello.');
    await until(() => clock.pending > 0);
    await clock.advance(19_999);
    expect(server.received).toHaveLength(1);
    await clock.advance(1);
    expect((await run).text).toBe('Good morning.');
    expect(server.received).toHaveLength(2);
  });

  it.each([500, 529])('tries again after a %i', async (status) => {
    server.reply(refuses(status, wire.error('overloaded_error')), hello());
    expect((await new Agent({ model: model(), middleware: [again()] }).run('Hello.')).text).toBe(
      'Good morning.',
    );
    expect(server.received).toHaveLength(2);
  });

  it("passes the package's error on unchanged, and does not retry a request that cannot succeed", async () => {
    server.reply(refuses(400, wire.error('invalid_request_error'), { 'x-request-id': 'r-1' }));
    const run = new Agent({ model: model(), middleware: [again()] }).run('Hello.');
    await expect(run).rejects.toMatchObject({
      code: 'MODEL_ERROR',
      cause: {
        name: 'AI_APICallError',
        statusCode: 400,
        isRetryable: false,
        responseHeaders: { 'x-request-id': 'r-1' },
      },
    });
    expect(server.received).toHaveLength(1);
  });

  it.each([
    ['breaks', cuts],
    ['ends too early', streams],
  ] as const)('tries again when the answer %s in the middle, and shows one text', async (_, breaks) => {
    const { before, pieces } = wire.frames(['Good ', 'mor']);
    server.reply(breaks([...before, ...pieces]), hello());
    const stream = new Agent({ model: model(), middleware: [again()] }).stream('Hello.');
    const { events, result, shown } = await collect(stream);
    expect(result?.text).toBe('Good morning.');
    expect([...shown.values()]).toEqual(['Good morning.']);
    const types: AgentEvent['type'][] = events.map(({ type }) => type);
    // An early end shows what had come, so it has to be taken back.
    expect(types.filter((type) => type === 'message_reset').length).toBe(events.some(isHalf) ? 1 : 0);
    expect(types.filter((type) => type === 'message_end')).toHaveLength(2);
    expect(server.received).toHaveLength(2);
  });

  it('fails on a malformed chunk instead of taking half an answer as whole', async () => {
    const { before, pieces, after } = wire.frames(['Good ', 'morning.']);
    server.reply(streams([...before, pieces[0]!, 'data: {"broken\n\n', pieces[1]!, ...after]));
    const error = await partsOf(model()).catch((thrown) => thrown);
    expect(error).toMatchObject({ name: 'AI_JSONParseError' });
  });

  it('gives up on a slow first token, and closes the connection', async () => {
    server.reply(hangs([]), hello());
    const clock = fakeClock();
    const middleware = [retry({ clock, minDelayMs: 1 }), timeout({ firstTokenMs: 5000, clock })];
    const run = new Agent({ model: model(), middleware }).run('Hello.');
    await until(() => server.received.length === 1);
    await clock.advance(5000);
    await server.received[0]!.left;
    await until(() => clock.pending > 0);
    await clock.advance(1000);
    expect((await run).text).toBe('Good morning.');
  });

  it('closes the connection when the run is aborted, before and within the answer', async () => {
    const { before, pieces } = wire.frames(['Good ']);
    for (const frames of [[], [...before, ...pieces]]) {
      server.reply(hangs(frames));
      const controller = new AbortController();
      const stream = new Agent({ model: model() }).stream('Hello.', { signal: controller.signal });
      const reading = (async () => {
        for await (const event of stream)
          if (event.type === 'message_update') controller.abort(new Error('enough'));
      })();
      if (frames.length === 0) {
        await until(() => server.received.length === 1);
        controller.abort(new Error('enough'));
      }
      await expect(reading).rejects.toMatchObject({ code: 'ABORTED' });
      await expect(stream.result).rejects.toMatchObject({ code: 'ABORTED' });
      await server.received[0]!.left;
    }
  });

  it('closes the connection when nobody reads on', async () => {
    const { before, pieces } = wire.frames(['Good ']);
    server.reply(hangs([...before, ...pieces]));
    for await (const event of new Agent({ model: model() }).stream('Hello.'))
      if (event.type === 'message_update') break;
    await server.received[0]!.left;
  });

  it('sends images', async () => {
    server.reply(hello());
    const data = Buffer.from('an image').toString('base64');
    await new Agent({ model: model() }).run([
      { type: 'text', text: 'What is this?' },
      { type: 'image', data, mimeType: 'image/png' },
    ]);
    expect(wire.imageIn(server.received[0]!.body)).toBe(data);
  });

  it('sends the schema of structured output', async () => {
    server.reply(streams(textFrames(wire, '{"people":', '700000}')));
    const schema = z.object({ people: z.number() });
    const { output } = await new Agent({ model: model(), middleware: [structuredOutput({ schema })] }).run(
      'How many?',
    );
    expect(output).toEqual({ people: 700_000 });
    expect(JSON.stringify(server.received[0]!.body)).toContain('"people":{"type":"number"');
  });

  it('sends a tool result of 5 MB', async () => {
    server.reply(streams(wire.calls([{ id: 'call_1', name: 'look', input: '{}' }])), hello());
    const big = 'åß∂ƒ©'.repeat(1 << 20);
    const { text } = await new Agent({ model: model(), tools: [look(() => big)] }).run('Look.');
    expect(text).toBe('Good morning.');
    expect(wire.resultIn(server.received[1]!.body) === big).toBe(true);
  });

  it('joins characters that were split over packets', async () => {
    const said = 'Grüße, 你好, 👩‍👩‍👧!';
    server.reply(bytewise(textFrames(wire, said, said)));
    expect(textIn(await partsOf(model()))).toBe(said + said);
  });

  it('takes ten thousand deltas', async () => {
    const pieces = Array.from({ length: 10_000 }, (_, i) => `${i} `);
    server.reply(streams(textFrames(wire, ...pieces)));
    const { events, result } = await collect(new Agent({ model: model() }).stream('Count.'));
    expect(result?.text).toBe(pieces.join(''));
    expect(events.filter(({ type }) => type === 'message_update')).toHaveLength(10_000);
  });
});

/** Text of an answer that did not come to its end. */
function isHalf(event: AgentEvent): boolean {
  return event.type === 'message_update' && event.delta.type === 'text' && event.delta.text === 'mor';
}

describe('an error within the stream', () => {
  it.each([
    [
      anthropic,
      'event: error\ndata: {"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}\n\n',
    ],
    [
      openaiResponses,
      'event: error\ndata: {"type":"error","sequence_number":1,"error":{"type":"server_error","code":"server_error","message":"Later.","param":null}}\n\n',
    ],
  ] as const)('of $name is tried again if it is temporary', async (wire, frame) => {
    const { before, pieces } = wire.frames(['Good ']);
    server.reply(streams([...before, ...pieces, frame]), streams(textFrames(wire, 'Good ', 'morning.')));
    const { text } = await new Agent({ model: wire.model(server.url), middleware: [again()] }).run('Hello.');
    expect(text).toBe('Good morning.');
  });
});
