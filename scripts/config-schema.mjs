// Writes packages/config/allium.schema.json, for editors, from the code. A test keeps it equal.
//   npm run build && node scripts/config-schema.mjs

import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { root } from './repository.mjs';

export const schemaPath = join(root, 'packages/config/allium.schema.json');

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href) {
  const { configJsonSchema } = await import('@allium/config');
  writeFileSync(schemaPath, `${JSON.stringify(configJsonSchema(), null, 2)}\n`);
}
