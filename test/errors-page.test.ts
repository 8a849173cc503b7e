// docs/reference/errors.md is the table of error codes, no more and no less.

import { readFileSync } from 'node:fs';
import { ERROR_CODES } from 'allium';
import { describe, expect, it } from 'vitest';
import { errorsPage, errorsPagePath } from '../scripts/errors-page.mjs';

describe('docs/reference/errors.md', () => {
  it('is what scripts/errors-page.mjs writes', () => {
    const page = readFileSync(errorsPagePath, 'utf8');
    expect(page, 'Run: npm run build && node scripts/errors-page.mjs').toBe(errorsPage(ERROR_CODES));
  });

  it('says of every code what it means, in one sentence or two', () => {
    for (const [code, meaning] of Object.entries(ERROR_CODES)) {
      expect(code).toMatch(/^[A-Z]+(_[A-Z]+)*$/);
      expect(meaning, code).toMatch(/^[A-Z].*\.$/);
    }
  });
});
