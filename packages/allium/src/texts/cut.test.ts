import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { beginning, cut, ending, splitsPair } from './cut.js';

describe('a text that is cut', () => {
  it('keeps its beginning, its end, or its beginning and an ellipsis', () => {
    expect(beginning('abc', 2)).toBe('ab');
    expect(beginning('abc', 5)).toBe('abc');
    expect(ending('abc', 2)).toBe('bc');
    expect(ending('abc', 5)).toBe('abc');
    expect(ending('abc', 0)).toBe('');
    expect(cut('abc', 2)).toBe('ab…');
    expect(cut('abc', 3)).toBe('abc');
  });

  it('has no half of a pair at the cut', () => {
    expect(beginning('a🙂b', 2)).toBe('a');
    expect(beginning('a🙂b', 3)).toBe('a🙂');
    expect(ending('a🙂b', 2)).toBe('b');
    expect(ending('a🙂b', 3)).toBe('🙂b');
    expect(cut('🙂🙂', 3)).toBe('🙂…');
    expect([0, 1, 2, 3, 4].map((at) => splitsPair('a🙂b', at))).toEqual([false, false, true, false, false]);
  });

  it('is never longer than asked for, and well-formed if it was', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), fc.nat(20), (text, chars) => {
        for (const short of [beginning(text, chars), ending(text, chars)]) {
          expect(short.length).toBeLessThanOrEqual(chars);
          expect(short.length).toBeGreaterThanOrEqual(Math.min(text.length, chars) - 1);
          expect(() => encodeURIComponent(short)).not.toThrow();
        }
      }),
    );
  });
});
