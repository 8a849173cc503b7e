// Text that fits, colours where they are wanted, and what counts as somebody being there.

import { PassThrough } from 'node:stream';
import { describe, expect, it } from 'vitest';
import { makeIo } from './io.js';
import { wantsColour } from './style.js';
import { count, dollars, moment, plain, seconds, short, table, withTexts } from './text.js';

describe('plain', () => {
  it('takes out what could steer the terminal and leaves the text', () => {
    expect(plain('\u001b[31mred\u001b[0m \u001b]0;title\u0007\u0008a\tb\r\nc\u009b')).toBe('red a\tb\nc');
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
  it('changes texts and keys wherever they stand, and leaves JSON what it was', () => {
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

it('counts one and many', () => {
  expect([count(0, 'turn'), count(1, 'turn'), count(1200, 'turn')]).toEqual([
    '0 turns',
    '1 turn',
    '1,200 turns',
  ]);
});

it('tells the time where we are', () => {
  expect(moment(new Date(2026, 10, 15, 14, 2, 7).getTime())).toBe('2026-11-15 14:02:07');
});

it('lines up columns and leaves the last one alone', () => {
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
