// Text that fits, colours where they are wanted, and what counts as somebody being there.

import { PassThrough } from 'node:stream';
import { describe, expect, it } from 'vitest';
import { makeIo } from './io.js';
import { makePieces } from './pieces.js';
import { onScreen, styleFor, wantsColour } from './style.js';
import { block, count, dollars, logLine, moment, seconds, short, table, withTexts, word } from './text.js';

describe('text from elsewhere', () => {
  it('spells out what hides in a word, line breaks and tabs too', () => {
    expect(word('a\nb\tc\u202e')).toBe('a<U+000A>b<U+0009>c<U+202E>');
  });

  it('indents what follows the first line of a block', () => {
    expect(block('a\nb\u001b')).toBe('a\n    b<U+001B>');
  });

  it("removes colours from other programs' log lines", () => {
    expect(logLine('\u001b[31mred\u001b[0m a\tb\u0008')).toBe('red a\tb<U+0008>');
  });
});

describe('onScreen', () => {
  const style = styleFor({ isTTY: true }, {});

  it('shows our own styles as escape sequences, and those of others as text', () => {
    expect(onScreen(`${style.red('a\u001b[1mb')} ${style.dim('\u202e')}`)).toBe(
      '\u001b[31ma<U+001B>[1mb\u001b[39m \u001b[2m<U+202E>\u001b[22m',
    );
  });
});

describe('pieces of a text', () => {
  const family = '👨‍👩‍👧';
  const persian = 'می‌خواهم';

  it.each([family, persian, 'a\r\nb', 'abc \u202e é'])('come out whole however %j is cut', (text) => {
    for (let size = 1; size <= text.length; size++) {
      let out = '';
      const pieces = makePieces((piece) => {
        out += onScreen(piece);
      });
      for (let at = 0; at < text.length; at += size) pieces.add(text.slice(at, at + size));
      pieces.end();
      expect(out).toBe(onScreen(text));
    }
  });

  it('are shown at once if nothing can follow, and are dropped when they are taken back', () => {
    const out: string[] = [];
    const pieces = makePieces((piece) => out.push(piece));
    pieces.add('Hel');
    expect(out).toEqual(['Hel']);
    pieces.add('👨');
    pieces.drop();
    pieces.end();
    expect(out).toEqual(['Hel']);
  });
});

describe('short', () => {
  it('makes one line, and says where it was cut', () => {
    expect(short('a\n  b\tc')).toBe('a b c');
    expect(short('abcdef', 4)).toBe('abc…');
    expect(short('🙂🙂🙂', 2)).toBe('🙂…');
  });
});

describe('withTexts', () => {
  it('changes texts and keys at any depth, and keeps the JSON valid', () => {
    const change = (text: string): string => text.replaceAll('5', '*');
    const value = { a5: ['5"5', 5, true, null, { deep: 'x5' }], left: undefined };
    expect(withTexts(value, change)).toEqual({ 'a*': ['*"*', 5, true, null, { deep: 'x*' }] });
    expect(withTexts(undefined, change)).toBeNull();
  });
});

it.each([
  [0.4, '0 ms'],
  [999, '999 ms'],
  [1500, '1.5 s'],
  [61_000, '1 min 1 s'],
])('%d milliseconds are %s', (ms, text) => {
  expect(seconds(ms)).toBe(text);
});

it.each([
  [undefined, 'cost unknown'],
  [0, '$0.00'],
  [1.239, '$1.24'],
  [0.00469, '$0.0047'],
])('%d dollars are %s', (usd, text) => {
  expect(dollars(usd)).toBe(text);
});

it('singular and plural are right', () => {
  expect([count(0, 'turn'), count(1, 'turn'), count(1200, 'turn')]).toEqual([
    '0 turns',
    '1 turn',
    '1,200 turns',
  ]);
});

it('the time is shown in the local time zone', () => {
  expect(moment(new Date(2026, 10, 15, 14, 2, 7).getTime())).toBe('2026-11-15 14:02:07');
});

it('columns are aligned, except the last one', () => {
  expect(
    table([
      ['a', 'b'],
      ['long', 'c '],
    ]),
  ).toEqual(['a     b', 'long  c']);
});

it.each([
  [{ isTTY: true }, {}, true],
  [{ isTTY: false }, {}, false],
  [{ isTTY: true }, { NO_COLOR: '1' }, false],
  [{ isTTY: true }, { NO_COLOR: '' }, true],
  [{ isTTY: true }, { TERM: 'dumb' }, false],
  [{ isTTY: false }, { FORCE_COLOR: '1' }, true],
  [{ isTTY: true }, { FORCE_COLOR: '0' }, false],
  [{ isTTY: false }, { FORCE_COLOR: '1', NO_COLOR: '1' }, false],
])('colours for %j with %j: %s', (stream, env, expected) => {
  expect(wantsColour(stream, env as Record<string, string>)).toBe(expected);
});

it.each([
  [true, true, {}, true],
  [false, true, {}, false],
  [true, false, {}, false],
  [true, true, { CI: 'true' }, false],
  [true, true, { CI: 'false' }, true],
])('stdin %s, stderr %s, %j: interactive is %s', (input, output, env, expected) => {
  const stream = (isTTY: boolean) => Object.assign(new PassThrough(), { isTTY });
  const io = makeIo({
    stdin: stream(input),
    stdout: stream(true),
    stderr: stream(output),
    env: env as Record<string, string>,
    cwd: '.',
  });
  expect(io.interactive).toBe(expected);
});
