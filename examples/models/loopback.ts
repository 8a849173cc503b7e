// Lets these examples run without a key: where none is set, a server on this machine speaks the provider's protocol and
// knows a few answers. Node runs these files as they are from 22.18 on; before that, write `npx tsx` instead of `node`.

import { type ResolveModelOptions, resolveModel } from '@allium/ai-sdk';
import { LLMock } from '@copilotkit/aimock';

/** Scheme of a model → the variables its key may be in, and the path of its API on the server. */
const SCHEMES = {
  openai: { keys: ['OPENAI_API_KEY'], path: '/v1' },
  anthropic: { keys: ['ANTHROPIC_API_KEY'], path: '/v1' },
  google: { keys: ['GOOGLE_GENERATIVE_AI_API_KEY', 'GEMINI_API_KEY'], path: '/v1beta' },
  'openai-compatible': { keys: ['OPENAI_COMPATIBLE_BASE_URL'], path: '/v1' },
};

// Each API has its own names for the two counts.
const usage = {
  prompt_tokens: 40,
  completion_tokens: 12,
  input_tokens: 40,
  output_tokens: 12,
  promptTokenCount: 40,
  candidatesTokenCount: 12,
};

/** Opens models by name, for real or on this machine. `close()` when done. */
export async function openModels() {
  const mock = new LLMock({ port: 0, chunkSize: 8, logLevel: 'silent' });
  mock.on(
    { userMessage: 'Bergen', hasToolResult: true },
    { content: 'Bergen has 9 degrees and rain. Take a coat.', usage },
  );
  mock.on(
    { userMessage: 'Bergen' },
    { toolCalls: [{ id: 'call_1', name: 'weather', arguments: '{"city":"Bergen"}' }], usage },
  );
  mock.onMessage('221', {
    content: 'No, 221 is 13 times 17.',
    reasoning: 'It is odd. Not by 3, 5, 7 or 11. By 13: 13 times 17 is 221.',
    reasoningSignature: 'c2VhbA==',
    usage,
  });
  mock.onMessage(/.*/, { content: 'Yes, I still know what we spoke about.', usage });
  await mock.start();

  return {
    open(name: string, options: ResolveModelOptions = {}) {
      const scheme = SCHEMES[name.split('/')[0] as keyof typeof SCHEMES];
      const real = !scheme || name.includes('@http') || scheme.keys.some((key) => process.env[key]);
      console.log(`${name}: ${real ? 'the real one' : `no ${scheme.keys[0]}, so a server on this machine`}`);
      return real
        ? resolveModel(name, options)
        : resolveModel(name, { ...options, apiKey: 'none', baseUrl: `${mock.url}${scheme.path}` });
    },
    /** The address of the server, to send a model to one that fails. */
    url: mock.url,
    close: () => mock.stop(),
  };
}
