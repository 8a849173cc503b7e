// Thinking keeps its signature through a file and into another process: providers refuse thinking with a broken one.
//   npm run build && node examples/models/thinking.ts
//   ANTHROPIC_API_KEY=… node examples/models/thinking.ts

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Agent, terminalText } from 'allium';
import { fileStore } from 'allium/stores/file';
import { openModels } from './loopback.ts';

const folder = mkdtempSync(join(tmpdir(), 'thinking-'));
const models = await openModels();
try {
  const model = models.open('anthropic/claude-haiku-4-5');
  const settings = {
    maxOutputTokens: 4000,
    provider: { anthropic: { thinking: { type: 'enabled', budgetTokens: 2000 } } },
  };
  // A store of its own each time, as another process would have.
  const session = () => new Agent({ model, settings, store: fileStore({ dir: folder }) }).session('primes');

  const first = await session().run('Is 221 a prime number? Think first.');
  for (const part of first.messages.at(-1)?.content ?? []) {
    if (part.type === 'thinking')
      console.log(terminalText(`  thinks: ${part.text} (${part.signature ? 'sealed' : 'not sealed'})`));
    if (part.type === 'text') console.log(terminalText(`  says:   ${part.text}`));
  }
  const second = await session().run('Are you sure?');
  console.log(terminalText(`  says:   ${second.text}`));
} finally {
  await models.close();
  rmSync(folder, { recursive: true, force: true });
}
