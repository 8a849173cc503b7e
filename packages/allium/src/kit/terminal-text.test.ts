// What a terminal is given of text that came from elsewhere.

import { describe, expect, it } from 'vitest';
import { terminalJson, terminalText } from './terminal-text.js';

describe('terminalText', () => {
  it.each([
    ['a colour', 'a\u001b[31mb', 'a<U+001B>[31mb'],
    ['a title', '\u001b]0;owned\u0007', '<U+001B>]0;owned<U+0007>'],
    ['the clipboard', '\u001b]52;c;cm0=\u001b\\', '<U+001B>]52;c;cm0=<U+001B>\\'],
    ['C1 controls', 'a\u009b2J\u0085b', 'a<U+009B>2J<U+0085>b'],
    ['what overwrites the line', 'rm -rf /\rls\b\u007f', 'rm -rf /<U+000D>ls<U+0008><U+007F>'],
    ['turned writing', 'a\u202eb\u2066c\u200fd', 'a<U+202E>b<U+2066>c<U+200F>d'],
    ['no width', 'pay\u200b \u200dpay\u200d\ufeff\u00ad', 'pay<U+200B> <U+200D>pay<U+200D><U+FEFF><U+00AD>'],
    ['blank letters', '\u3164\u115f', '<U+3164><U+115F>'],
    ['tags', 'hi\u{e0041}\u{e0062}', 'hi<U+E0041><U+E0062>'],
    ['other ends of lines', 'a\u2028b\u2029', 'a<U+2028>b<U+2029>'],
  ])('shows %s', (_, given, expected) => {
    expect(terminalText(given)).toBe(expected);
  });

  it.each([
    ['lines and tabs', 'a\n\tb'],
    ['emoji of several parts', '👨‍👩‍👧 ❤️‍🔥 👍🏽 1️⃣ ☎︎ 🇳🇴 🏴󠁧󠁢󠁥󠁮󠁧󠁿'],
    ['joiners of Persian', 'می‌خواهم'],
    ['joiners of Hindi', 'क्‍ष'],
    ['letters of any script', 'Grüße, 世界, שלום'],
  ])('leaves %s alone', (_, text) => {
    expect(terminalText(text)).toBe(text);
  });

  it('takes a Windows line break as one line break', () => {
    expect(terminalText('a\r\nb')).toBe('a\nb');
  });

  it('changes nothing the second time', () => {
    const once = terminalText('\u001b[2J\u202e👨‍👩‍👧\u200b');
    expect(terminalText(once)).toBe(once);
  });
});

describe('terminalJson', () => {
  it('escapes what JSON itself leaves unescaped, and keeps the same value', () => {
    const value = { 'k\u009by': 'a\u202eb\u200d\u007f\u{e0041}\u2028\n', emoji: '👨‍👩‍👧' };
    const json = terminalJson(JSON.stringify(value));
    expect(json).toContain('k\\u009by');
    expect(json).toContain('a\\u202eb\\u200d\\u007f\\udb40\\udc41\\u2028\\n');
    expect(json).not.toMatch(/[\p{Cc}\p{Cf}]/u);
    expect(JSON.parse(json)).toEqual(value);
  });

  it('leaves the line breaks between members alone', () => {
    const json = JSON.stringify({ a: 1 }, null, 2);
    expect(terminalJson(json)).toBe(json);
  });
});
