import { describe, expect, it } from 'vitest';
import { IdSet } from './id-set.js';

describe('a set of ids', () => {
  it('knows what was added, however much that is, and nothing else', () => {
    const ids = new IdSet();
    for (let i = 0; i < 100; i++) {
      expect(ids.has(`call-${i}`)).toBe(false);
      ids.add(`call-${i}`);
      for (let j = 0; j <= i; j++) expect(ids.has(`call-${j}`)).toBe(true);
    }
    expect(ids.has('call')).toBe(false);
  });

  it('takes the same id twice', () => {
    const ids = new IdSet();
    for (let i = 0; i < 20; i++) ids.add('one');
    expect(ids.has('one')).toBe(true);
    expect(ids.has('two')).toBe(false);
  });
});
