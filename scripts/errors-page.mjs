// Writes docs/reference/errors.md from the table of error codes. A test keeps the page equal to it.
//   npm run build && node scripts/errors-page.mjs

import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { root } from './repository.mjs';

export const errorsPagePath = join(root, 'docs/reference/errors.md');

/** @returns {string} The page, as Markdown. */
export function errorsPage(/** @type {Readonly<Record<string, string>>} */ codes) {
  const rows = Object.entries(codes).map(([code, meaning]) => `| \`${code}\` | ${meaning} |`);
  return `${intro}\n| code | meaning |\n|---|---|\n${rows.join('\n')}\n${outro}`;
}

const intro = `<!-- Written by scripts/errors-page.mjs from the table in packages/allium/src/kit/error-codes.ts. Do not edit. -->

# Errors

Every error Allium raises is an \`AlliumError\` with a stable \`code\`, a message that says what happened, what was received and
what to do, and \`data\` for programs. Test the \`code\`, never the message.

\`run()\` rejects with a \`RunError\`: an \`AlliumError\` with the \`result\` so far and, as \`cause\`, the very object that was thrown.
A run that is done, stopped or suspended resolves; a stopped run is not an error. A run that could not begin has no result
and rejects with a plain \`AlliumError\`: wrong options, a busy session, a store that fails while the session is loaded.

\`\`\`ts output
import { Agent, attribution, RunError } from 'allium';
import { failWith, scriptedModel } from 'allium/testing';

const down = new Error('connection lost');
const agent = new Agent({ model: scriptedModel([failWith(down)]) });
try {
  await agent.run('Hi');
} catch (error) {
  if (!(error instanceof RunError)) throw error;
  console.log(error.code, error.cause === down, error.result.status, attribution(down));
}
\`\`\`

\`\`\`text
MODEL_ERROR true error { hook: 'model', attempts: 1 }
\`\`\`

Errors pass through layers as the same object. Who raised one is recorded beside it: \`attribution(error)\` gives the
middleware and hook, or that it came from the model, a tool or the store, and after how many attempts.
Where a hook threw an error of its own while it dealt with another one, that one is in \`handling\`.

## Codes
`;

const outro = `
These have codes of their own: [HTTP](../guide/http.md#errors), [MCP](../../packages/mcp/README.md),
[workers](../../packages/worker/README.md) and [models for the AI SDK](../../packages/ai-sdk/README.md). So may middleware of
other authors.
`;

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href) {
  const { ERROR_CODES } = await import('allium');
  writeFileSync(errorsPagePath, errorsPage(ERROR_CODES));
}
