import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';

it('README has at most 900 words outside its fences', () => {
  const readme = readFileSync(new URL('../README.md', import.meta.url), 'utf8');
  const words = readme.replace(/^```[\s\S]*?^```$/gm, '').split(/\s+/);
  expect(words.length).toBeGreaterThan(300);
  expect(words.length).toBeLessThanOrEqual(900);
});
