import { Agent, type AgentOptions, defineMiddleware, tool, userMessage } from 'allium';
import { systemBlocksOf } from 'allium/kit';
import { cacheMark, promptCaching } from 'allium/middleware/prompt-caching';
import { scriptedModel, testMiddleware, text, toolCalls } from 'allium/testing';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';

testMiddleware(() => promptCaching(), {
  name: 'promptCaching',
  changes: ['request-messages', 'settings'],
  describe,
  it,
});

const EPHEMERAL = { cacheControl: { type: 'ephemeral' } };
const MARKS = { anthropic: EPHEMERAL, openrouter: EPHEMERAL, bedrock: { cachePoint: { type: 'default' } } };
const look = tool({ name: 'look', description: 'Looks.', input: z.object({}), execute: () => 'seen' });

function setup(
  options: Parameters<typeof promptCaching>[0] = {},
  more: object[] = [],
  agent: Partial<AgentOptions> = {},
) {
  const model = scriptedModel(
    [toolCalls({ name: 'look' }, { name: 'look' }), toolCalls({ name: 'look' }), text('ok'), text('ok')],
    { repeat: true },
  );
  const middleware = [...more, promptCaching(options)] as never;
  const session = new Agent({
    model,
    tools: [look],
    systemPrompt: 'Be kind.',
    middleware,
    ...agent,
  }).session('s');
  /** Indexes of the marked messages of a request. */
  const marked = (request: number) =>
    model.requests[request]!.messages.flatMap(({ metadata }, i) => (metadata?.provider ? [i] : []));
  return { session, model, marked };
}

describe('promptCaching', () => {
  it('marks the last message, and where the request before ended', async () => {
    const { session, marked, model } = setup();
    await session.run('Look.');
    await session.run('And?');
    // user, answer, two results, answer, result, answer, user
    expect([0, 1, 2, 3].map(marked)).toEqual([[0], [0, 3], [3, 5], [5, 7]]);
    expect(model.requests[1]!.messages[3]!.metadata).toEqual({ provider: MARKS });
    for (const { settings } of model.requests)
      expect(settings).toEqual({ systemMetadata: { provider: MARKS } });
  });

  it('leaves the history unmarked', async () => {
    const { session } = setup();
    await session.run('Look.');
    for (const { metadata } of await session.messages()) expect(metadata).toBeUndefined();
  });

  it.each([
    [0, []],
    [1, [7]],
    [3, [3, 5, 7]],
  ])('marks %d messages if told so', async (maxMessages, expected) => {
    const { session, marked } = setup({ maxMessages });
    await session.run('Look.');
    await session.run('And?');
    expect(marked(3)).toEqual(expected);
  });

  it('asks for an hour', async () => {
    const { session, model } = setup({ ttl: '1h' });
    await session.run('Look.');
    expect(model.requests[0]!.messages[0]!.metadata!.provider).toMatchObject({
      anthropic: { cacheControl: { type: 'ephemeral', ttl: '1h' } },
    });
  });

  it('does not mark what a middleware adds to this request only, wherever it stands', async () => {
    const notes = defineMiddleware({
      name: 'notes',
      transformContext: (messages) => [...messages, userMessage('The list as it is now.')],
    });
    const { session, marked } = setup({}, [notes]);
    await session.run('Look.');
    expect([0, 1].map(marked)).toEqual([[0], [0, 3]]);
  });

  it('keeps what is set already, marks of its own kind included', async () => {
    const own = { anthropic: { cacheControl: { type: 'ephemeral', ttl: '1h' }, other: 1 }, mine: { a: 1 } };
    const model = scriptedModel(['ok']);
    const settings = { temperature: 0, systemMetadata: { provider: own, more: 2 } };
    const agent = new Agent({ model, settings, middleware: [promptCaching()] });
    await agent.run([userMessage('Hi', { provider: own, pinned: true })]);
    const { bedrock, openrouter } = MARKS;
    expect(model.requests[0]!.messages[0]!.metadata).toEqual({
      pinned: true,
      provider: { ...own, bedrock, openrouter },
    });
    expect(model.requests[0]!.settings).toEqual({
      temperature: 0,
      systemMetadata: { more: 2, provider: { ...own, bedrock, openrouter } },
    });
  });

  it.each([
    // Marked blocks of five, most messages; then the marks on blocks and on messages.
    [1, 2, [0, 4], [5, 7]],
    [1, 3, [0, 4], [5, 7]],
    [2, 2, [0, 1, 4], [7]],
    [3, 2, [0, 1, 2], [7]],
    [3, 0, [0, 1, 2, 4], []],
    [4, 3, [0, 1, 2, 3], []],
    [5, 3, [0, 1, 2, 3, 4], []],
  ])(
    'counts marks that are there: %d on blocks of the prompt, and %d messages',
    async (own, maxMessages, blocks, places) => {
      const { model, marked, session } = setup({ maxMessages }, [], {
        systemPrompt: ['a', 'b', 'c', 'd', 'e'].map((text, i) =>
          i < own ? { text, metadata: cacheMark() } : text,
        ),
      });
      await session.run('Look.');
      await session.run('And?');
      const { systemPrompt, settings } = model.requests[3]!;
      const shown = systemBlocksOf({ systemPrompt, settings });
      expect(shown.flatMap(({ metadata }, i) => (metadata ? [i] : []))).toEqual(blocks);
      expect(marked(3)).toEqual(places);
    },
  );

  it('leaves calls alone that middleware make for themselves', async () => {
    const other = scriptedModel(['yes']);
    const asks = defineMiddleware({
      name: 'asks',
      async beforeModel(ctx) {
        if (ctx.model !== other) await ctx.generate(other, { messages: 'Really?' });
      },
    });
    const model = scriptedModel(['ok']);
    await new Agent({ model, middleware: [asks, promptCaching()] }).run('Hi');
    expect(other.requests[0]!.settings).toEqual({});
    expect(other.requests[0]!.messages[0]!.metadata).toBeUndefined();
  });

  it.each<[object, string]>([
    [{ ttl: '2h' }, "Expected `ttl` to be '5m' or '1h', got \"2h\"."],
    [{ maxMessages: 4 }, 'Expected `maxMessages` to be an integer from 0 to 3, got 4.'],
    [{ message: 1 }, 'message'],
  ])('refuses %j', (options, message) => {
    expect(() => promptCaching(options as never)).toThrow(message);
  });
});
