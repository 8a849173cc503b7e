// Where lines break, and how wide they are.

import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { breakAt, widthOf } from './screen.js';

describe('widthOf', () => {
  it.each([
    ['', 0],
    ['abc', 3],
    ['é', 1],
    ['e\u0301', 1],
    ['日本', 4],
    ['🙂', 2],
  ])('%j is %i wide', (text, width) => {
    expect(widthOf(text)).toBe(width);
  });
});

describe('breakAt', () => {
  it('breaks after the last space that fits', () => {
    expect('one two three'.slice(0, breakAt('one two three', 10))).toBe('one two ');
  });

  it('cuts a word that is too long, never a letter', () => {
    expect(breakAt('abcdefghij', 4)).toBe(3);
    expect('🙂🙂🙂'.slice(0, breakAt('🙂🙂🙂', 6))).toBe('🙂🙂');
  });

  it('always takes something and never more than fits', () => {
    fc.assert(
      fc.property(
        fc.string({ minLength: 1, unit: 'grapheme' }),
        fc.integer({ min: 3, max: 30 }),
        (text, columns) => {
          const end = breakAt(text, columns);
          expect(end).toBeGreaterThan(0);
          if (end > 2) expect(widthOf(text.slice(0, end))).toBeLessThan(columns);
        },
      ),
    );
  });
});
