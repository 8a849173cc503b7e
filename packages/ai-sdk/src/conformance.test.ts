// The four provider packages over HTTP against the mock server: what the model port asks of every model.
import type { LLMock } from '@copilotkit/aimock';
import { Agent, tool } from 'allium';
import { structuredOutput } from 'allium/middleware/structured-output';
import { collect, testModel } from 'allium/testing';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { z } from 'zod';
import { startMock } from '../test/mock.js';
import { anthropic, google, openaiChat, openaiCompatible, openaiResponses, WIRES } from '../test/wires.js';

let mock: LLMock;
beforeAll(async () => {
  mock = await startMock();
});
afterAll(() => mock.stop());

for (const wire of WIRES) {
  // The chat wire of OpenAI has no thinking in it; theirs is on the wire of responses.
  const thinks = wire !== openaiChat;
  testModel(() => wire.model(mock.url), {
    name: wire.name,
    failing: {},
    ...(thinks && { thinking: { request: { settings: { provider: wire.thinking } } } }),
    // Both mint ids of their own for each answer.
    deterministic: wire !== openaiResponses && wire !== google,
    ...(!thinks && { skip: { thinking: 'This wire does not carry it.' } }),
    describe,
    it,
  });
}

const city = z.object({ city: z.string() });

describe.each(WIRES)('$name', (wire) => {
  const weather = (asked: string[] = []) =>
    tool({
      name: 'get_weather',
      description: 'The weather in a city right now.',
      input: city,
      execute: ({ city }) => {
        asked.push(city);
        return `${city}: sunny`;
      },
    });

  it('streams text in pieces that add up to the answer', async () => {
    const stream = new Agent({ model: wire.model(mock.url) }).stream('Greet me.');
    const { events, result } = await collect(stream);
    const deltas = events.flatMap((event) => (event.type === 'message_update' ? [event.delta] : []));
    expect(deltas.length).toBeGreaterThan(3);
    expect(result?.text).toBe('Good morning, and welcome to all of you.');
    expect(result?.usage).toMatchObject({ inputTokens: 7, outputTokens: 3, totalTokens: 10 });
  });

  it('makes several tool calls at once and goes on with their results', async () => {
    const asked: string[] = [];
    const agent = new Agent({ model: wire.model(mock.url), tools: [weather(asked)] });
    const { messages, text } = await agent.run('Compare the weather in Oslo and in Rome.');
    expect(asked).toEqual(['Oslo', 'Rome']);
    expect(text).toBe('Rome is warmer.');
    expect(messages.map(({ role }) => role)).toEqual(['user', 'assistant', 'tool', 'tool', 'assistant']);
  });

  it('returns structured output', async () => {
    const schema = z.object({ name: z.string(), people: z.number() });
    const agent = new Agent({ model: wire.model(mock.url), middleware: [structuredOutput({ schema })] });
    const { output } = await agent.run('What is the capital?');
    expect(output).toEqual({ name: 'Oslo', people: 700000 });
  });
});

describe('thinking', () => {
  it.each([
    [openaiResponses, { metadata: { provider: { openai: { itemId: expect.any(String) } } } }],
    [anthropic, { signature: 'sealed-by-the-maker' }],
    [google, {}],
    [openaiCompatible, {}],
  ] as const)('comes over $name', async (wire, more) => {
    const model = wire.model(mock.url);
    const { messages } = await new Agent({ model, settings: { provider: wire.thinking } }).run(
      'Is 221 a prime?',
    );
    expect(messages[1]?.content).toMatchObject([
      { type: 'thinking', text: 'Let me try 13. It fits.', ...more },
      { type: 'text', text: 'No: 13 times 17.' },
    ]);
  });
});
