// What commands share.

import { describe, expect, it } from 'vitest';
import { quoted } from './shell.js';

describe('quoted', () => {
  it.each([
    ['ann', 'ann'],
    ['./allium.toml', './allium.toml'],
    ['my session', '"my session"'],
    ["ann's", `"ann's"`],
    ['a;b', '"a;b"'],
    ['', '""'],
    ['$HOME', "'$HOME'"],
    ['a"b', `'a"b'`],
    ["it's `x`", `'it'\\''s \`x\`'`],
  ])('%s is %s', (word, line) => {
    expect(quoted(word)).toBe(line);
  });
});
