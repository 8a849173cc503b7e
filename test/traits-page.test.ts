// The table of traits in docs/guide/composition.md is that of the code.

import { readFileSync } from 'node:fs';
import { TRAITS } from 'allium';
import { expect, it } from 'vitest';

it('lists every trait with what it means, and no other', () => {
  const page = readFileSync(new URL('../docs/guide/composition.md', import.meta.url), 'utf8');
  const [, table] = page.split('| trait | the middleware |\n|---|---|\n');
  const rows = table!.slice(0, table!.indexOf('\n\n')).split('\n');
  const listed = rows.map((row) => row.match(/^\| `([\w-]+)` \| (.+) \|$/)!.slice(1));
  expect(Object.fromEntries(listed)).toEqual(TRAITS);
});
