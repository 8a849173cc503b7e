// The map in ARCHITECTURE.md names every file of the kernel, each once.

import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { alliumFolder, root } from '../scripts/repository.mjs';

it('ARCHITECTURE.md maps the kernel as it is', () => {
  const page = readFileSync(join(root, 'ARCHITECTURE.md'), 'utf8');
  const map = page.slice(page.indexOf('| concern | files |'));
  const named = [...map.matchAll(/`([\w-]+)`/g)].map(([, name]) => name);
  const files = readdirSync(join(alliumFolder, 'src/kernel')).filter((file) => /^[\w-]+\.ts$/.test(file));
  expect(named.sort()).toEqual(files.map((file) => file.replace(/\.ts$/, '')).sort());
});
