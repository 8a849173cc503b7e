// The registry knows every middleware of the box: its table is what the folders say.

import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { middlewareTable, tablePath } from '../scripts/middleware-table.mjs';

it('the table of middleware is up to date: node scripts/middleware-table.mjs', () => {
  // Formatting, trailing commas and optional quotes are biome's.
  const plain = (code: string) =>
    code
      .replace(/\s+/g, '')
      .replace(/,(?=[}\])])/g, '')
      .replace(/["'`\\]/g, '');
  expect(plain(readFileSync(tablePath, 'utf8'))).toBe(plain(middlewareTable()));
});
