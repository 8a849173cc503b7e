import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Span } from '../protocol/guard.js';
import { normalise } from './guard-returns.js';
import { SpanStage } from './redact-stream.js';

const matches = (pattern: RegExp, text: string): Span[] =>
  [...text.matchAll(pattern)].map((m) => ({ start: m.index, end: m.index + m[0].length }));

function stageOf(pattern: RegExp, hold: number) {
  const released: string[] = [];
  const looked: number[] = [];
  const stage = new SpanStage({
    hold,
    find: (text) => {
      looked.push(text.length);
      return normalise(matches(pattern, text), text, 'test');
    },
    replacement: () => '■',
    out: (text) => void released.push(text),
    outNext: () => void released.push('|'),
  });
  return { stage, released, looked };
}

function through(pattern: RegExp, hold: number, pieces: readonly string[]): string {
  const { stage, released } = stageOf(pattern, hold);
  for (const piece of pieces) stage.push(piece);
  stage.end();
  return released.join('');
}

function split(text: string, sizes: readonly number[]): string[] {
  const pieces: string[] = [];
  for (let at = 0, i = 0; at < text.length; i++) {
    const size = sizes[i % sizes.length]!;
    pieces.push(text.slice(at, at + size));
    at += size;
  }
  return pieces;
}

/** No match is longer than the window, and no look-around looks further. */
const PATTERNS: readonly { readonly pattern: RegExp; readonly hold: number }[] = [
  { pattern: /secret/g, hold: 6 },
  { pattern: /\bab\b/g, hold: 2 },
  { pattern: /\Bab|ba\B/g, hold: 2 },
  { pattern: /(?<=b)a(?!c)/g, hold: 4 },
  { pattern: /(?<!b)a(?=c)/g, hold: 4 },
  { pattern: /(?<=b)a|aa/g, hold: 4 },
  { pattern: /a{2,8}/g, hold: 8 },
  { pattern: /a{2,8}?b?/g, hold: 9 },
  { pattern: /aa/g, hold: 2 },
  { pattern: /aba/g, hold: 3 },
  { pattern: /[😀é]/gu, hold: 2 },
  { pattern: /a😀|😀b/g, hold: 3 },
  { pattern: /^ab|c$/g, hold: 3 },
  { pattern: /[abc]{1,5} /g, hold: 6 },
  { pattern: /(ab|b[ac]c)+?(?= |$)/g, hold: 24 },
];
const WORDS = ['a', 'b', 'c', ' ', 'ab', 'aa', 'secret', '😀', 'é', '\n', 'aaaaaa', 'bac'];
const texts = fc.array(fc.constantFrom(...WORDS), { maxLength: 200 }).map((words) => words.join(''));
const long = fc
  .array(fc.constantFrom(...WORDS), { minLength: 300, maxLength: 900 })
  .map((words) => words.join(''));
const sizes = fc.array(fc.integer({ min: 1, max: 40 }), { minLength: 1, maxLength: 8 });

describe('window(n): any match up to n characters is caught for any chunking', () => {
  it.each(PATTERNS)('$pattern cuts the same as in the whole text', ({ pattern, hold }) => {
    const law = (text: string, chunking: readonly number[]): void => {
      const whole = text.replace(pattern, '■');
      expect(through(pattern, hold, split(text, chunking))).toBe(whole);
    };
    fc.assert(fc.property(texts, sizes, law), { numRuns: 150 });
    fc.assert(fc.property(long, sizes, law), { numRuns: 30 });
  });

  it('cuts the same with a window that is longer than needed', () => {
    fc.assert(
      fc.property(
        fc.constantFrom(...PATTERNS),
        long,
        sizes,
        fc.integer({ min: 0, max: 120 }),
        (one, text, chunking, more) => {
          expect(through(one.pattern, one.hold + more, split(text, chunking))).toBe(
            text.replace(one.pattern, '■'),
          );
        },
      ),
      { numRuns: 100 },
    );
  });
});

describe('left context', () => {
  it('is forgotten only if a search without it finds the same', () => {
    // What the look-behind sees decides how the row of a's after it falls into pairs.
    const pattern = /(?<=b)a|aa/g;
    for (let before = 60; before < 200; before++) {
      const text = `${'x'.repeat(before)}b${'a'.repeat(400)}c`;
      expect(through(pattern, 4, [...text])).toBe(text.replace(pattern, '■'));
    }
  });
});

describe('a cut never falls inside a span or a surrogate pair', () => {
  it('releases whole characters only', () => {
    fc.assert(
      fc.property(sizes, (chunking) => {
        const { stage, released } = stageOf(/x/g, 3);
        for (const piece of split('😀'.repeat(60), chunking)) stage.push(piece);
        stage.end();
        for (const text of released) expect(text).toBe('😀'.repeat(text.length / 2));
      }),
    );
  });

  it('holds a match that has begun until it is complete', () => {
    const { stage, released } = stageOf(/<[^>]*>/g, 4);
    stage.push(`before the tag there is text <${'x'.repeat(40)}`);
    expect(released.join('')).not.toContain('x'.repeat(40));
    stage.push('> after');
    stage.end();
    expect(released.join('')).toContain(' after');
  });
});

describe('what is held back', () => {
  it('is at most the window and a step, however long the text', () => {
    const { stage, released } = stageOf(/secret/g, 64);
    let pushed = 0;
    for (let i = 0; i < 500; i++) {
      stage.push('lorem');
      pushed += 5;
      expect(pushed - released.join('').length).toBeLessThan(64 + 16 + 5);
    }
  });

  it('is released up to the window by settle(), and not a character further', () => {
    const { stage, released } = stageOf(/secret/g, 8);
    stage.push('hello world');
    expect(released).toEqual([]);
    stage.releaseFinal();
    expect(released.join('')).toBe('hel');
    stage.releaseFinal();
    expect(released.join('')).toBe('hel');
  });

  it('ends with the block: the next text starts fresh', () => {
    const { stage, released } = stageOf(/^ab/g, 2);
    for (let block = 0; block < 3; block++) {
      stage.push('abc');
      stage.end();
    }
    expect(released).toEqual(['■c', '■c', '■c']);
  });
});

describe('cost', () => {
  it('context that is looked at again stays bounded', () => {
    const { stage, looked } = stageOf(/secret/g, 32);
    for (let i = 0; i < 20_000; i++) stage.push('abcde');
    stage.end();
    expect(Math.max(...looked)).toBeLessThan(600);
  });

  it('a match without end is not looked at again and again', () => {
    const { stage, looked } = stageOf(/a+/g, 16);
    for (let i = 0; i < 20_000; i++) stage.push('aaaaa');
    stage.end();
    const characters = looked.reduce((sum, length) => sum + length, 0);
    expect(characters).toBeLessThan(100_000 * 12);
  });

  it('spans that depend on where a search begins keep their context, up to a bound', () => {
    // In a row of a's without a gap each search from another place gives other pairs.
    const { stage, looked } = stageOf(/(?<=^b)a|aa/g, 4);
    stage.push('b');
    for (let i = 0; i < 60_000; i++) stage.push('aaa');
    stage.end();
    expect(Math.max(...looked)).toBeLessThan(200_000);
  });
});

describe('normalise', () => {
  it('sorts spans, merges overlapping ones, keeps adjacent ones apart and drops empty ones', () => {
    const spans = [
      { start: 7, end: 9 },
      { start: 0, end: 3, replacement: 'x' },
      { start: 2, end: 5 },
      { start: 5, end: 6 },
      { start: 6, end: 6 },
    ];
    expect(normalise(spans, '0123456789', 'g')).toEqual([
      { start: 0, end: 5, replacement: 'x' },
      { start: 5, end: 6 },
      { start: 7, end: 9 },
    ]);
  });

  it.each([
    ['nothing', undefined],
    ['a match', 'secret'],
    ['a span that ends beyond the text', [{ start: 0, end: 11 }]],
    ['a span that begins before the text', [{ start: -1, end: 1 }]],
    ['a span that ends before it begins', [{ start: 3, end: 2 }]],
    ['a span with a fraction', [{ start: 0.5, end: 2 }]],
    ['a span without an end', [{ start: 0 }]],
    ['null for a span', [null]],
    ['a span with a misspelt field', [{ start: 0, end: 2, replacment: 'x' }]],
  ])('refuses %s, naming the guard', (_, spans) => {
    expect(() => normalise(spans, '0123456789', 'pii')).toThrowError(
      expect.objectContaining({ code: 'INVALID_HOOK_RESULT', message: expect.stringContaining('"pii"') }),
    );
  });
});

describe('how much is held back', () => {
  const heldBy = (windows: readonly number[], letters: string): number[] => {
    let released = 0;
    let push = (text: string): void => {
      released += text.length;
    };
    for (const hold of windows) {
      const out = push;
      const stage = new SpanStage({ hold, find: () => [], replacement: () => '', out, outNext: () => {} });
      push = (text) => stage.push(text);
    }
    return Array.from({ length: 6000 }, (_, i) => {
      push(letters[i % letters.length]!);
      return i + 1 - released;
    }).slice(-3000);
  };

  it.each([
    [1, 16],
    [19, 34],
    [64, 79],
    [100, 124],
    [1000, 1249],
  ])('a window of %i holds back that many characters at least, and %i at most', (n, most) => {
    const held = heldBy([n], 'abc');
    expect([Math.min(...held), Math.max(...held)]).toEqual([n, most]);
    expect(most).toBe(n + Math.max(16, n >> 2) - 1);
    // One more where the cut would fall into a pair.
    expect(Math.max(...heldBy([n], '🙂'))).toBeLessThanOrEqual(most + 1);
  });

  it('adds up for several guards in a row', () => {
    expect(Math.min(...heldBy([19, 64], 'abc'))).toBeGreaterThanOrEqual(19 + 64);
    expect(Math.max(...heldBy([19, 64], 'abc'))).toBeLessThanOrEqual(34 + 79);
  });
});

describe('text of several blocks', () => {
  it('comes out in its blocks, without what was cut over their ends, for any chunking', () => {
    const blocks = fc.array(fc.array(fc.constantFrom('se', 'cret', 'secret', ' ', 'x'), { maxLength: 8 }), {
      minLength: 1,
      maxLength: 5,
    });
    fc.assert(
      fc.property(blocks, fc.integer({ min: 1, max: 7 }), (given, size) => {
        const { stage, released } = stageOf(/secret/g, 6);
        for (const [i, words] of given.entries()) {
          if (i > 0) stage.next();
          for (const piece of split(words.join(''), [size])) stage.push(piece);
        }
        stage.end();
        const out = released.join('').split('|');
        const whole = given.map((words) => words.join('')).join('');
        expect(out.length).toBe(given.length);
        expect(out.join('')).toBe(whole.replace(/secret/g, '■'));
      }),
    );
  });

  it('puts the replacement where the match began', () => {
    const { stage, released } = stageOf(/secret/g, 6);
    for (const block of ['a se', 'cr', 'et b']) {
      stage.push(block);
      stage.next();
    }
    stage.end();
    expect(released.join('')).toBe('a ■|| b|');
  });
});
