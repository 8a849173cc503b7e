import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import type { TestSpecification, Vitest } from 'vitest/node';
import { LONGEST, LongestFirst } from '../scripts/longest-first.mjs';
import { root } from '../scripts/repository.mjs';

describe('the order of test files', () => {
  it('names files that exist', () => {
    expect(LONGEST.filter((file) => !existsSync(join(root, file)))).toEqual([]);
  });

  it('begins with the longest, and keeps the others as they come', async () => {
    const vitest = {
      cache: { getFileTestResults: () => undefined, getFileStats: () => ({ size: 1 }) },
      config: { root, sequence: { groupOrder: 0 } },
    } as unknown as Vitest;
    const spec = (file: string) =>
      ({
        moduleId: join(root, file),
        project: { name: '', config: { root, sequence: { groupOrder: 0 } } },
      }) as unknown as TestSpecification;
    const files = ['a.test.ts', LONGEST[1]!, 'b.test.ts', LONGEST[0]!].map(spec);
    const sorted = await new LongestFirst(vitest).sort(files);
    expect(sorted.map(({ moduleId }) => moduleId)).toEqual(
      [LONGEST[0]!, LONGEST[1]!, 'a.test.ts', 'b.test.ts'].map((file) => join(root, file)),
    );
  });
});
