import { Agent, defineMiddleware, type Middleware, textOf, tool, userMessage } from 'allium';
import { compaction } from 'allium/middleware/compaction';
import { type ContentTruncatorOptions, contentTruncator } from 'allium/middleware/content-truncator';
import { goal } from 'allium/middleware/goal';
import { collect, scriptedModel, testMiddleware, text, toolCalls } from 'allium/testing';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';

function setup(result: unknown, options?: ContentTruncatorOptions) {
  const read = tool({ name: 'read', description: 'Reads.', input: z.object({}), execute: () => result });
  const model = scriptedModel([toolCalls({ name: 'read' }), text('done')]);
  return { model, agent: new Agent({ model, tools: [read], middleware: [contentTruncator(options)] }) };
}

const long = 'x'.repeat(1000);
const cutTo = (kept: number, total = 1000) =>
  `${'x'.repeat(kept)}\n[${total - kept} of ${total} characters were cut off here.]`;

testMiddleware(() => contentTruncator(), { name: 'content-truncator', describe, it });
testMiddleware(() => contentTruncator({ maxChars: 100 }), {
  name: 'content-truncator with something to do',
  scenarios: [
    {
      name: 'long input and a long result',
      input: 'Hello. '.repeat(100),
      answers: [toolCalls({ name: 'kit_slow', args: { value: long } }), text(long)],
    },
  ],
  describe,
  it,
});

describe('content-truncator', () => {
  it('cuts results that are too long before they are kept, and says by how much', async () => {
    const { agent } = setup(long, { maxChars: 100 });
    const { messages } = await agent.run('go');
    expect(textOf(messages[2]!)).toBe(cutTo(55));
    expect(textOf(messages[2]!).length).toBeLessThanOrEqual(100);
  });

  it('leaves alone what just fits', async () => {
    const { agent } = setup('x'.repeat(100), { maxChars: 100 });
    const { messages, changes } = await agent.run('go');
    expect(textOf(messages[2]!)).toBe('x'.repeat(100));
    expect(changes).toEqual([]);
  });

  it('cuts what goes to the model and leaves the history whole', async () => {
    const model = scriptedModel(['ok']);
    const agent = new Agent({ model, middleware: [contentTruncator({ maxChars: 100, on: ['model'] })] });
    const { messages } = await agent.run(long);
    expect(textOf(model.requests[0]!.messages[0]!)).toBe(cutTo(55));
    expect(textOf(messages[0]!)).toBe(long);
  });

  it('bounds only what it is told to', async () => {
    const tools = setup(long, { maxChars: 100, on: ['model'] });
    const { messages } = await tools.agent.run('go');
    expect(textOf(messages[2]!)).toBe(long);
    expect(textOf(tools.model.requests[1]!.messages[2]!)).toBe(cutTo(55));
    const models = setup('short', { maxChars: 100, on: ['tool'] });
    await models.agent.run(long);
    expect(textOf(models.model.requests[0]!.messages[0]!)).toBe(long);
  });

  it('leaves answers of the model and the system prompt alone', async () => {
    const model = scriptedModel([long, 'ok']);
    const agent = new Agent({ model, systemPrompt: long, middleware: [contentTruncator({ maxChars: 100 })] });
    const session = agent.session('s');
    await session.run('one');
    await session.run('two');
    expect(textOf(model.requests[1]!.messages[1]!)).toBe(long);
    expect(model.requests[1]!.systemPrompt).toBe(long);
  });

  it('counts all text of a message together and keeps other parts', async () => {
    const image = { type: 'image' as const, data: 'aGk=', mimeType: 'image/png' };
    const one = { type: 'text' as const, text: 'x'.repeat(30) };
    const model = scriptedModel(['ok']);
    const agent = new Agent({ model, middleware: [contentTruncator({ maxChars: 100 })] });
    await agent.run(userMessage([one, image, { ...one, text: long }, image, one]));
    const { content } = model.requests[0]!.messages[0]!;
    expect(content.map(({ type }) => type)).toEqual(['text', 'image', 'text', 'image']);
    expect(textOf({ content })).toBe(cutTo(55, 1060));
  });

  it('bounds errors and refusals, too', async () => {
    const fails = tool({
      name: 'read',
      description: 'Fails.',
      input: z.object({}),
      execute: () => Promise.reject(new Error(long)),
    });
    const refuse = defineMiddleware({
      name: 'refuse',
      beforeToolCall: (ctx) => (ctx.toolCall.id === 'b' ? { block: true, reason: long } : undefined),
    });
    const model = scriptedModel([toolCalls({ name: 'read' }, { name: 'read', id: 'b' }), text('done')]);
    const middleware = [contentTruncator({ maxChars: 100 }), refuse];
    const { messages } = await new Agent({ model, tools: [fails], middleware }).run('go');
    expect(messages.slice(2, 4).map((message) => textOf(message).length <= 100)).toEqual([true, true]);
  });

  it('cuts after the guards, so that nothing they look for is cut in half before', async () => {
    const guard = defineMiddleware({
      name: 'guard',
      guard: {
        on: ['tool-result'],
        find: (given) =>
          [...given.matchAll(/secret-\d+/g)].map(({ 0: { length }, index }) => ({
            start: index,
            end: index + length,
          })),
      },
    });
    const padded = `${'x'.repeat(45)}secret-12345678${'x'.repeat(500)}`;
    const read = tool({ name: 'read', description: 'Reads.', input: z.object({}), execute: () => padded });
    const model = scriptedModel([toolCalls({ name: 'read' }), text('done')]);
    const middleware = [contentTruncator({ maxChars: 100 }), guard];
    const { messages } = await new Agent({ model, tools: [read], middleware }).run('go');
    expect(textOf(messages[2]!)).not.toContain('secret');
  });

  it('notes in `changes` that it cut a request, and only then', async () => {
    const agent = new Agent({
      model: scriptedModel(['ok'], { repeat: true }),
      middleware: [contentTruncator()],
    });
    expect((await agent.run(long)).changes).toEqual([]);
    expect((await agent.run(long.repeat(51))).changes).toEqual([
      { turn: 1, by: 'content-truncator', what: 'rewrote the messages of the request' },
    ]);
  });

  it.each([
    ['first', 0],
    ['last', 1],
  ])('leaves the calls of other middleware whole when it stands %s', async (_, place) => {
    const summariser = scriptedModel(['A summary.'], { repeat: true });
    const compacting = compaction({ summaryModel: summariser, maxTokens: 1000, keepTailTokens: 100 });
    const judge = scriptedModel(['{"achieved":true,"reason":"Yes."}'], { repeat: true });
    const model = scriptedModel(['ok'], { repeat: true, usage: { inputTokens: 0, outputTokens: 0 } });
    const others: Middleware[] = [compacting, goal({ evaluator: judge })];
    const middleware = others.toSpliced(place * 2, 0, contentTruncator({ maxChars: 500 }));
    const session = new Agent({ model, middleware }).session('s');
    for (let i = 0; i < 8; i++) await session.run(`${long}fact ${i}`, { goal: 'Tell.' });
    const read = summariser.requests.map(({ messages }) => messages.map(textOf).join('\n')).join('\n');
    expect(read).toContain('fact 0');
    expect(read).not.toContain('were cut off here');
    expect(textOf(judge.requests[0]!.messages[0]!)).toContain('ok');
    const sent = model.requests.at(-1)!.messages.filter(({ role }) => role === 'user');
    expect(sent.every((message) => textOf(message).length <= 500)).toBe(true);
  });

  it('limits what other middleware put into the request, wherever they stand', async () => {
    const adding = defineMiddleware({
      name: 'adding',
      transformContext: (messages) => [userMessage(long), ...messages],
    });
    const model = scriptedModel(['ok']);
    await new Agent({ model, middleware: [contentTruncator({ maxChars: 100 }), adding] }).run('hi');
    expect(textOf(model.requests[0]!.messages[0]!)).toBe(cutTo(55));
  });

  it('never exceeds the bound and never halves a character', async () => {
    const model = scriptedModel(['ok'], { repeat: true });
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.string({ unit: 'grapheme', minLength: 1, maxLength: 300 }), {
          minLength: 1,
          maxLength: 3,
        }),
        fc.integer({ min: 100, max: 200 }),
        async (texts, maxChars) => {
          const agent = new Agent({ model, middleware: [contentTruncator({ maxChars })] });
          await agent.run(userMessage(texts.map((one) => ({ type: 'text', text: one }))));
          const sent = textOf(model.requests.at(-1)!.messages[0]!);
          expect(sent.length).toBeLessThanOrEqual(maxChars);
          expect(sent).not.toMatch(/\p{Surrogate}/u);
          if (texts.join('').length <= maxChars) expect(sent).toBe(texts.join(''));
        },
      ),
      { numRuns: 100, seed: 1 },
    );
  });

  it('serves 100 concurrent runs, and the smaller of two wins', async () => {
    const model = scriptedModel([({ messages }) => textOf(messages[0]!)], { repeat: true });
    const middleware = [contentTruncator({ maxChars: 500 }), contentTruncator({ maxChars: 100 })];
    const agent = new Agent({ model, middleware });
    const results = await Promise.all(Array.from({ length: 100 }, (_, n) => agent.run(`${n}${long}`)));
    expect(results.every(({ text: answer }, n) => answer.startsWith(String(n)) && answer.length <= 100)).toBe(
      true,
    );
  });

  it('does the same when the run is streamed', async () => {
    const { result } = await collect(setup(long, { maxChars: 100 }).agent.stream('go'));
    const plain = await setup(long, { maxChars: 100 }).agent.run('go');
    expect(result?.messages.map(textOf)).toEqual(plain.messages.map(textOf));
  });

  it.each([
    [{ maxChars: 99 }, 'Expected `maxChars` to be an integer ≥ 100, got 99.'],
    [{ on: [] }, "Expected `on` to be a non-empty list of 'model' and 'tool', got []."],
    [{ on: ['run'] }, "Expected `on` to be a non-empty list of 'model' and 'tool', got [\"run\"]."],
    [{ maxTokens: 5 }, 'Unknown option `maxTokens` of contentTruncator().'],
  ])('refuses %j', (options, message) => {
    expect(() => contentTruncator(options as never)).toThrow(message);
  });
});
