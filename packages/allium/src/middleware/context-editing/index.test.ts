import {
  Agent,
  type Message,
  type Middleware,
  memoryStore,
  syntheticUserMessage,
  textOf,
  tool,
  toolResult,
} from 'allium';
import { contextEditing } from 'allium/middleware/context-editing';
import { scriptedModel, testMiddleware, text, toolCalls } from 'allium/testing';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';

const tokenCounter = (said: string) => said.length;
const CLEARED = /^\[The result was cleared to save space: 200 characters\. Call the tool again/;

testMiddleware(() => contextEditing({ clearToolResultsAfterTokens: 0, keep: 0, tokenCounter }), {
  name: 'contextEditing',
  neutral: () => contextEditing({ tokenCounter }),
  describe,
  it,
});

function setup(options: Parameters<typeof contextEditing>[0], turns = 4, results: unknown[] = []) {
  const input = z.object({});
  let n = 0;
  const execute = () => results[n++] ?? `${n}:`.padEnd(200, 'r');
  const read = tool({ name: 'read', description: 'Reads.', input, execute });
  const model = scriptedModel([
    ...Array.from({ length: turns }, () => toolCalls({ name: 'read' })),
    text('ok'),
  ]);
  const middleware = [contextEditing({ tokenCounter, ...options })];
  const agent = new Agent({ model, tools: [read], store: memoryStore(), middleware });
  const sent = (request: number) =>
    model.requests[request]!.messages.filter(({ role }) => role === 'tool').map(textOf);
  return { agent, model, sent };
}

describe('contextEditing', () => {
  it('clears the oldest results once a request is long, and not in the history', async () => {
    const { agent, sent } = setup({ clearToolResultsAfterTokens: 700, keep: 2 });
    const { messages } = await agent.run('Read.');
    expect(sent(2)).toEqual([expect.stringMatching(/^1:r/), expect.stringMatching(/^2:r/)]);
    expect(sent(3)).toEqual([expect.stringMatching(CLEARED), ...[2, 3].map((n) => `${n}:`.padEnd(200, 'r'))]);
    expect(sent(4).map((said) => CLEARED.test(said))).toEqual([true, true, false, false]);
    const kept = messages.filter(({ role }) => role === 'tool').map(textOf);
    expect(kept.every((said) => said.length === 200)).toBe(true);
  });

  it('goes on clearing although the model says it has read little since', async () => {
    const { agent, sent } = setup({ clearToolResultsAfterTokens: 400, keep: 0 }, 6);
    await agent.run('Read.');
    expect(sent(6).every((said) => CLEARED.test(said))).toBe(true);
  });

  it('leaves what the model has not read yet, however many results came at once', async () => {
    const execute = ({ n }: { n: number }) => `${n}:`.padEnd(200, 'r');
    const read = tool({ name: 'read', description: 'Reads.', input: z.object({ n: z.number() }), execute });
    const batch = (...ns: number[]) => toolCalls(...ns.map((n) => ({ name: 'read', args: { n } })));
    const noted: Message = {
      id: '',
      role: 'assistant',
      content: [{ type: 'text', text: 'Noted.' }],
      stopReason: 'stop',
    };
    const view: Middleware = {
      name: 'view',
      transformContext: (messages) => [
        ...messages,
        noted,
        syntheticUserMessage('Go on.', { source: 'view' }),
      ],
    };
    for (const order of [0, 1]) {
      const middleware = [contextEditing({ clearToolResultsAfterTokens: 0, keep: 1, tokenCounter }), view];
      if (order === 1) middleware.reverse();
      const model = scriptedModel([batch(1, 2), batch(3, 4, 5, 6), batch(7), text('ok')]);
      await new Agent({ model, tools: [read], middleware }).run('Read.');
      const left = model.requests.map(({ messages }) =>
        messages.flatMap((message) =>
          message.role === 'tool' && !CLEARED.test(textOf(message)) ? textOf(message)[0] : [],
        ),
      );
      expect(left).toEqual([[], ['1', '2'], ['3', '4', '5', '6'], ['7']]);
    }
  });

  it('keeps calls, ids and errors, and makes the same message each time', async () => {
    const { agent, model } = setup({ clearToolResultsAfterTokens: 0, keep: 0 }, 2);
    await agent.run('Read.');
    const [first, second] = [1, 2].map((n) =>
      model.requests[n]!.messages.find(({ role }) => role === 'tool'),
    );
    expect(first).toBe(second);
    expect(first).toMatchObject({ toolName: 'read', isError: false, id: expect.stringMatching(/\.\d+$/) });
  });

  it('leaves short results alone, and pinned ones', async () => {
    const { agent, sent } = setup({ clearToolResultsAfterTokens: 0, keep: 0 }, 2, ['short', 'x'.repeat(200)]);
    await agent.run('Read.');
    expect(sent(2)).toEqual(['short', expect.stringMatching(CLEARED)]);
    const model = scriptedModel(['ok']);
    const call = { type: 'tool-call', id: 'c', name: 'read', arguments: '{}' } as const;
    const middleware = [contextEditing({ clearToolResultsAfterTokens: 0, keep: 0, tokenCounter })];
    await new Agent({ model, middleware }).run([
      { id: '', role: 'assistant', content: [call], stopReason: 'tool-calls' },
      {
        id: '',
        role: 'tool',
        toolCallId: 'c',
        toolName: 'read',
        content: [{ type: 'text', text: 'p'.repeat(200) }],
        isError: false,
        metadata: { pinned: true },
      },
      'Go.',
    ]);
    expect(textOf(model.requests[0]!.messages[1]!)).toBe('p'.repeat(200));
  });

  it('clears images and files, and says so', async () => {
    const image = { type: 'image', data: 'AAAA', mimeType: 'image/png' } as const;
    const { agent, sent } = setup({ clearToolResultsAfterTokens: 1000, keep: 0 }, 1, [
      toolResult({ content: [{ type: 'text', text: 'A cat.' }, image, image] }),
    ]);
    await agent.run('Look.');
    expect(sent(1)[0]).toContain('6 characters and 2 attachments');
  });

  it.each<[object, string]>([
    [{ keep: -1 }, 'Expected `keep` to be an integer ≥ 0, got -1.'],
    [
      { clearToolResultsAfterTokens: '5' },
      'Expected `clearToolResultsAfterTokens` to be an integer ≥ 0, got "5".',
    ],
    [{ tokenCounter: 1 }, 'Expected `tokenCounter` to be a function, got 1.'],
    [{ keeps: 1 }, 'keeps'],
  ])('refuses %j', (options, message) => {
    expect(() => contextEditing(options as never)).toThrow(message);
  });
});
