// The example in a factory's JSDoc is compiled and run: it stands in a fence of its README, and those are.

import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { fencesOf } from '../scripts/markdown.mjs';
import { alliumFolder } from '../scripts/repository.mjs';

const middleware = join(alliumFolder, 'src/middleware');
const folders = readdirSync(middleware).filter((name) => existsSync(join(middleware, name, 'index.ts')));

describe.each(folders)('the example of %s', (folder) => {
  it('stands in a fence of its README that is run', () => {
    const example = exampleIn(readFileSync(join(middleware, folder, 'index.ts'), 'utf8'));
    const fences = fencesOf(readFileSync(join(middleware, folder, 'README.md'), 'utf8'));
    const run = fences.filter(({ language, flags }) => language === 'ts' && !flags.includes('no-run'));
    expect(example).not.toBe('');
    expect(run.some(({ code }) => flat(code).includes(flat(example)))).toBe(true);
  });
});

/** The lines after the first `@example`, up to the end of the comment. */
function exampleIn(code: string): string {
  const [, example = ''] = /@example\n([\s\S]*?)\*\//.exec(code) ?? [];
  return example.replace(/^\s*\* ?/gm, '').trim();
}

function flat(code: string): string {
  return code.replace(/\s+/g, ' ').trim();
}
