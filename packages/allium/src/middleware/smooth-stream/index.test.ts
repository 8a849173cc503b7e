import { Agent, type Model, type ModelPart, textOf } from 'allium';
import { type SmoothStreamOptions, smoothStream } from 'allium/middleware/smooth-stream';
import { structuredOutput } from 'allium/middleware/structured-output';
import { chunks, fakeClock, scriptedModel, testMiddleware, text, toolCalls } from 'allium/testing';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';

testMiddleware(() => smoothStream({ delayMs: 0 }), { name: 'smooth-stream', describe, it });
testMiddleware(() => smoothStream({ delayMs: 0, by: 'character' }), {
  name: 'smooth-stream by character',
  describe,
  it,
});

function modelOf(...parts: ModelPart[]): Model {
  return {
    provider: 'p',
    id: 'm',
    async *stream() {
      yield* parts;
      yield { type: 'finish', reason: 'stop' };
    },
  };
}

/** Reads a stream to its end, and moves the clock whenever it waits. */
async function shown(model: Model, options: SmoothStreamOptions = {}) {
  const clock = fakeClock();
  const agent = new Agent({ model, middleware: [smoothStream({ delayMs: 10, ...options, clock })] });
  const pieces: string[] = [];
  const times: number[] = [];
  const stream = agent.stream('go');
  let done = false;
  const reading = (async () => {
    for await (const event of stream)
      if (event.type === 'message_update' && event.delta.type !== 'tool-call') {
        pieces.push(event.delta.text);
        times.push(clock.now());
      }
    done = true;
  })();
  const start = clock.now();
  while (!done) await clock.advance(1);
  await reading;
  return { pieces, times: times.map((at) => at - start), result: await stream.result };
}

describe('smooth-stream', () => {
  it('shows words at an even pace, and changes nothing about the text', async () => {
    const { pieces, times, result } = await shown(
      modelOf({ type: 'text', text: 'One two  three\nfo' }, { type: 'text', text: 'ur' }),
    );
    expect(pieces).toEqual(['One ', 'two  ', 'three\n', 'four']);
    expect(times[1]! - times[0]!).toBe(10);
    expect(times[2]! - times[1]!).toBe(10);
    expect(times[3]! - times[2]!).toBe(10);
    expect(result.text).toBe('One two  three\nfour');
  });

  it.each<[string, ModelPart[]]>([
    ['a block that ends', [{ type: 'text', text: 'One two', end: true }]],
    [
      'another block',
      [
        { type: 'text', text: 'One two', block: 1 },
        { type: 'text', text: '!', block: 2 },
      ],
    ],
    [
      'a call',
      [
        { type: 'text', text: 'One two' },
        { type: 'tool-call', id: 'c', name: 'x', arguments: '{}' },
      ],
    ],
  ])('paces the last word before %s', async (_, parts) => {
    const { pieces, times } = await shown(modelOf(...parts));
    expect(pieces.slice(0, 2)).toEqual(['One ', 'two']);
    expect(times[1]! - times[0]!).toBe(10);
  });

  it('goes by lines or by characters, and never cuts a character in two', async () => {
    const model = () => modelOf({ type: 'text', text: 'a😀\nb' });
    expect((await shown(model(), { by: 'line' })).pieces).toEqual(['a😀\n', 'b']);
    expect((await shown(model(), { by: 'character' })).pieces).toEqual(['a', '😀', '\n', 'b']);
    expect(() => smoothStream({ by: 'page' as never })).toThrow(
      "Expected `by` to be 'word', 'line' or 'character'",
    );
  });

  it('keeps blocks, signatures and calls where they are', async () => {
    const parts: ModelPart[] = [
      { type: 'thinking', text: 'Let me ', block: 1 },
      { type: 'thinking', text: 'see', block: 1, signature: 's' },
      { type: 'text', text: 'a b', block: 2, end: true },
    ];
    const { result } = await shown(modelOf(...parts));
    const plain = await new Agent({ model: modelOf(...parts) }).run('go');
    expect(result.messages[1]!.content).toEqual(plain.messages[1]!.content);
  });

  it('does nothing if nobody watches', async () => {
    const clock = fakeClock();
    const agent = new Agent({
      model: modelOf({ type: 'text', text: 'a b c d e f' }),
      middleware: [smoothStream({ delayMs: 1000, clock })],
    });
    expect((await agent.run('go')).text).toBe('a b c d e f');
  });

  it('ends at once when the run is aborted', async () => {
    const clock = fakeClock();
    const agent = new Agent({
      model: modelOf({ type: 'text', text: 'a b c d' }),
      middleware: [smoothStream({ delayMs: 60_000, clock })],
    });
    const controller = new AbortController();
    const stream = agent.stream('go', { signal: controller.signal });
    const ended = stream.result.catch((error) => error);
    const read = async () => {
      for await (const event of stream) if (event.type === 'message_update') controller.abort();
    };
    await expect(read()).rejects.toMatchObject({ code: 'ABORTED' });
    expect(await ended).toMatchObject({ code: 'ABORTED', result: { text: 'a ' } });
  });

  it('leaves guards, tools and structured output as they are', async () => {
    const guard = {
      name: 'no-names',
      guard: {
        on: ['output' as const],
        find: (given: string) =>
          [...given.matchAll(/Ann Lee/g)].map(({ index }) => ({ start: index, end: index + 7 })),
        action: 'redact' as const,
        hold: 'full' as const,
      },
    };
    const agent = (smooth: boolean) =>
      new Agent({
        model: scriptedModel([toolCalls({ name: 'nope', id: 'n' }), chunks('{"who":"An', 'n Lee and Bo"}')]),
        middleware: [
          guard,
          ...(smooth ? [smoothStream({ delayMs: 0 })] : []),
          structuredOutput({ schema: z.object({ who: z.string() }) }),
        ],
      });
    const stream = agent(true).stream('go');
    for await (const event of stream) expect(JSON.stringify(event)).not.toContain('Ann Lee');
    const { output, messages } = await stream.result;
    const plain = await agent(false).run('go');
    expect(output).toEqual(plain.output);
    expect(messages.map(textOf)).toEqual(plain.messages.map(textOf));
  });

  it('leaves calls of other middleware alone', async () => {
    const clock = fakeClock();
    const asks = {
      name: 'asks',
      async beforeModel(ctx: Parameters<NonNullable<import('allium').Middleware['beforeModel']>>[0]) {
        if (!ctx.caller) await ctx.generate(modelOf({ type: 'text', text: 'a b c' }), { messages: 'hm' });
      },
    };
    const agent = new Agent({
      model: scriptedModel([text('x')]),
      middleware: [asks, smoothStream({ delayMs: 1000, clock })],
    });
    const stream = agent.stream('go');
    for await (const _ of stream);
    expect((await stream.result).text).toBe('x');
  });
});
