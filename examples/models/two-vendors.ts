// A conversation that goes from one vendor to another and back. What one thought, signed or stored never reaches the
// other; each gets its own back.
//   npm run build && node examples/models/two-vendors.ts
//   OPENAI_API_KEY=… ANTHROPIC_API_KEY=… node examples/models/two-vendors.ts

import { Agent, memoryStore, terminalText, tool } from 'allium';
import { fallback } from 'allium/middleware/fallback';
import { z } from 'zod';
import { openModels } from './loopback.ts';

const weather = tool({
  name: 'weather',
  description: 'The weather in a city right now.',
  input: z.object({ city: z.string() }),
  execute: ({ city }) => `${city}: 9 degrees, rain`,
});

const models = await openModels();
const [openai, anthropic] = [models.open('openai/gpt-5-mini'), models.open('anthropic/claude-haiku-4-5')];

// Fails the second call, which is in the middle of the tool loop.
let calls = 0;
const flaky = {
  ...openai,
  stream: (...args: Parameters<typeof openai.stream>) => {
    if (++calls === 2) throw Object.assign(new Error('overloaded'), { status: 529 });
    return openai.stream(...args);
  },
};

try {
  const agent = new Agent({
    model: flaky,
    tools: [weather],
    middleware: [fallback({ models: [anthropic] })],
    // Options by provider; each sees its own.
    settings: {
      provider: { openai: { reasoningEffort: 'low' }, anthropic: { metadata: { userId: 'example' } } },
    },
    store: memoryStore(),
  });
  const session = agent.session('trip');
  for (const question of [
    'What do I wear in Bergen? Look at the weather first.',
    'Do you still know where I go?',
  ]) {
    const { messages } = await session.run(question);
    for (const message of messages) {
      if (message.role !== 'assistant') continue;
      const parts = message.content.map((part) => (part.type === 'text' ? part.text : `[${part.type}]`));
      console.log(terminalText(`  ${message.model}: ${parts.join(' ')}`));
    }
  }
} finally {
  await models.close();
}
