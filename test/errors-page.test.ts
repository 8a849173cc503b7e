// docs/reference/errors.md is the table of error codes, no more and no less. What has codes of its own explains them, too.

import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { ERROR_CODES } from 'allium';
import { describe, expect, it } from 'vitest';
import { errorsPage, errorsPagePath } from '../scripts/errors-page.mjs';
import { root } from '../scripts/repository.mjs';

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

/** Skills that can't be used are listed among the hazards, so nobody sees this code. */
const CAUGHT = ['INVALID_SKILL'];

describe('every error code in the source', () => {
  const read = (path: string) => readFileSync(join(root, path), 'utf8');
  const sources = readdirSync(join(root, 'packages')).flatMap((name) =>
    readdirSync(join(root, 'packages', name, 'src'), { recursive: true, encoding: 'utf8' })
      .filter((path) => path.endsWith('.ts') && !path.endsWith('.test.ts'))
      .map((path) => ({ name, path, source: read(join('packages', name, 'src', path)) })),
  );
  const thrown = sources.flatMap(({ name, source }) =>
    [...source.matchAll(/new \w+(?:Error|Failure)\(\s*(?:(\d+),\s*)?'([A-Z_]+)'/g)].map(
      ([, status, code]) => ({ name, status, code: code! }),
    ),
  );

  it('is explained in the reference, in the guide to HTTP, or in the README of its package', () => {
    const guide = read('docs/guide/http.md');
    const unexplained = thrown.filter(({ name, code }) => {
      if (code in ERROR_CODES || CAUGHT.includes(code)) return false;
      const page = name === 'allium' ? guide : read(`packages/${name}/README.md`);
      return !page.includes(`\`${code}\``);
    });
    expect(thrown.length).toBeGreaterThan(100);
    expect(unexplained).toEqual([]);
  });

  it('that is in the reference is thrown somewhere', () => {
    const quoted = new Set(
      sources.flatMap(({ path, source }) =>
        /error-codes\.ts$|lib[\\/]errors\.ts$/.test(path)
          ? []
          : [...source.matchAll(/'([A-Z_]+)'/g)].map(([, code]) => code!),
      ),
    );
    expect(Object.keys(ERROR_CODES).filter((code) => !quoted.has(code))).toEqual([]);
  });

  it('has its HTTP status in the guide', () => {
    const [, table = ''] = /^## Errors\n(.*?)^## /ms.exec(read('docs/guide/http.md')) ?? [];
    const rows = table.split('\n').flatMap((line) => {
      const [, status, codes = ''] = /^\| (\d+) \| (.+?) \|/.exec(line) ?? [];
      return [...codes.matchAll(/`(\w+)`/g)].map(([, code]) => `${status} ${code}`);
    });
    const known = read('packages/allium/src/http/failures.ts').matchAll(/^ {2}([A-Z_]+): (\d+),$/gm);
    const answered = [
      // 0: the client says so, not the server.
      ...thrown.flatMap(({ status = '0', code }) => (status === '0' ? [] : [`${status} ${code}`])),
      ...[...known].map(([, code, status]) => `${status} ${code}`),
    ];
    expect(rows.toSorted()).toEqual([...new Set(answered)].toSorted());
  });
});
