import { createOpenAICompatible } from '@ai-sdk/openai-compatible';
import { MockLanguageModelV3, simulateReadableStream } from 'ai/test';
import { Agent } from 'allium';
import { cacheMark } from 'allium/middleware/prompt-caching';
import { expect, it } from 'vitest';
import { fromAiSdk } from './index.js';

it('sends blocks of the system prompt one by one, each with its own options', async () => {
  const prompts: unknown[] = [];
  const sdk = new MockLanguageModelV3({
    provider: 'anthropic.messages',
    doStream: async ({ prompt }) => {
      prompts.push(prompt);
      return {
        stream: simulateReadableStream({
          chunks: [
            { type: 'text-start', id: '1' },
            { type: 'text-delta', id: '1', delta: 'ok' },
            { type: 'text-end', id: '1' },
            {
              type: 'finish',
              finishReason: { unified: 'stop', raw: 'stop' },
              usage: {
                inputTokens: { total: 1, noCache: 1, cacheRead: 0, cacheWrite: 0 },
                outputTokens: { total: 1, text: 1, reasoning: 0 },
              },
            },
          ],
        }),
      };
    },
  });
  const systemPrompt = [{ text: 'The rules.', metadata: cacheMark() }, 'Today is Monday.'];
  const systemOptions = { anthropic: { cacheControl: { type: 'ephemeral', ttl: '1h' } } };
  await new Agent({ model: fromAiSdk(sdk), systemPrompt }).run('go');
  await new Agent({ model: fromAiSdk(sdk, { systemOptions }), systemPrompt }).run('go');
  const marked = { anthropic: { cacheControl: { type: 'ephemeral' } } };
  expect(prompts).toMatchObject([
    [
      { role: 'system', content: 'The rules.', providerOptions: marked },
      { role: 'system', content: 'Today is Monday.' },
      { role: 'user' },
    ],
    [
      { role: 'system', content: 'The rules.', providerOptions: marked },
      { role: 'system', content: 'Today is Monday.', providerOptions: systemOptions },
      { role: 'user' },
    ],
  ]);
});

it('knows which models have no JSON mode, and takes it as an option', () => {
  const plain = new MockLanguageModelV3();
  expect(fromAiSdk(plain)).not.toHaveProperty('jsonMode');
  expect(fromAiSdk(plain, { jsonMode: false }).jsonMode).toBe(false);
  const compatible = createOpenAICompatible({ name: 'local', baseURL: 'http://localhost:1' });
  expect(fromAiSdk(compatible('llama') as never).jsonMode).toBe(false);
});

it.each([
  ['gemini-2.5-flash', 'without-tools'],
  ['models/gemini-1.5-pro', 'without-tools'],
  ['google/gemini-2.0-flash', 'without-tools'],
  ['gemini-3-pro-preview', undefined],
  ['gemini-flash-latest', undefined],
  ['my-gemini-2', undefined],
])('knows of %s whether it has a JSON mode beside tools: %s', (modelId, known) => {
  expect(fromAiSdk(new MockLanguageModelV3({ modelId })).jsonMode).toBe(known);
  expect(fromAiSdk(new MockLanguageModelV3({ modelId }), { jsonMode: true }).jsonMode).toBe(true);
});
