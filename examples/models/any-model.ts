// One agent with a tool, on any model: the model's name decides which provider package is used.
//   npm run build && node examples/models/any-model.ts      every scheme; without a key, against a server on this machine
//   OPENAI_API_KEY=… node examples/models/any-model.ts openai/gpt-5-mini
//   node examples/models/any-model.ts openai-compatible/llama3.2@http://localhost:11434/v1

import { Agent, terminalText, tool } from 'allium';
import { retry } from 'allium/middleware/retry';
import { z } from 'zod';
import { openModels } from './loopback.ts';

const weather = tool({
  name: 'weather',
  description: 'The weather in a city right now.',
  input: z.object({ city: z.string() }),
  execute: ({ city }) => `${city}: 9 degrees, rain`,
});

const given = process.argv[2]?.includes('/') ? [process.argv[2]] : undefined;
const names = given ?? [
  'openai/gpt-5-mini',
  'anthropic/claude-haiku-4-5',
  'google/gemini-2.5-flash',
  'openai-compatible/llama3.2',
];

const models = await openModels();
try {
  for (const name of names) {
    const agent = new Agent({ model: models.open(name), tools: [weather], middleware: [retry()] });
    const stream = agent.stream('What do I wear in Bergen? Look at the weather first.');
    let said = '';
    for await (const event of stream) {
      if (event.type === 'tool_execution_start')
        console.log(terminalText(`  calls ${event.toolCall.name} ${event.toolCall.arguments}`));
      if (event.type === 'message_update' && event.delta.type === 'text') said += event.delta.text;
      if (event.type === 'message_reset') said = '';
    }
    const { usage } = await stream.result;
    console.log(terminalText(`  says  ${said}`));
    console.log(`  took  ${usage.inputTokens} tokens in, ${usage.outputTokens} out`);
  }
} finally {
  await models.close();
}
