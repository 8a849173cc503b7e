// Writes packages/config/allium.schema.json, for editors, from the code and its JSDoc. A test keeps it equal.
//   npm run build && node scripts/config-schema.mjs

import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { optionDescriptions } from './option-docs.mjs';
import { root } from './repository.mjs';

export const schemaPath = join(root, 'packages/config/allium.schema.json');

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href) {
  const { editorSchema } = await import(join(root, 'packages/config/build/editor-schema.js'));
  const { OPTIONS } = await import(join(root, 'packages/mcp/dist/options.js'));
  writeFileSync(
    schemaPath,
    `${JSON.stringify(await editorSchema(optionDescriptions(), OPTIONS), null, 2)}\n`,
  );
}
