// What the comments say about the options of middleware is what the code does with them.

import { readFileSync } from 'node:fs';
import type { Fields } from 'allium/kit';
import { describe, expect, it } from 'vitest';
import { BUILT_IN } from '../packages/allium/src/registry/built-in-middleware.js';
import { middlewareNames, optionDocs } from '../scripts/option-docs.mjs';
import { readmeOf, withTable } from '../scripts/option-tables.mjs';

it('every middleware is in the list that the registry loads', () => {
  expect(Object.keys(BUILT_IN)).toEqual(middlewareNames());
});

/** As it is written in a comment: `10_000`, `'full'`, `[]`; undefined for what is described in words. */
function written(value: unknown): string | undefined {
  if (typeof value === 'number') return String(value).replace(/\B(?=(\d{3})+$)/g, value < 10_000 ? '' : '_');
  if (typeof value === 'boolean') return String(value);
  return typeof value === 'string' && value.length < 40 ? `'${value}'` : undefined;
}

describe.each(middlewareNames())('the options of %s', (name) => {
  it('are in the table of its README: npm run build && node scripts/option-tables.mjs', async () => {
    const { OPTIONS } = await BUILT_IN[name]!();
    expect(readFileSync(readmeOf(name), 'utf8')).toBe(withTable(name, OPTIONS));
  });

  it('are all described, with the defaults they have', async () => {
    const fields: Fields = (await BUILT_IN[name]!()).OPTIONS;
    const docs = optionDocs(name);
    expect(docs.map((option) => option.name)).toEqual(Object.keys(fields));
    for (const option of docs) {
      const { default: value, required } = fields[option.name]!;
      const said = written(value);
      if (option.name === 'name') continue;
      if (said !== undefined) expect(option.default.split(',')[0], option.name).toBe(said);
      if (required) expect(option.default, option.name).toBe('');
      expect(option.text + option.default, option.name).not.toBe('');
    }
  });
});
