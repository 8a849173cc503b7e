import { Agent } from 'allium';
import { chunks, scriptedModel, testMiddleware, text } from 'allium/testing';
import { describe, expect, it } from 'vitest';
import { linearPattern, wordPattern } from '../scan/patterns.js';
import { type ContentFilterOptions, contentFilter } from './index.js';

testMiddleware(() => contentFilter({ keywords: ['falcon'], patterns: [/ACME-\d+/] }), {
  name: 'content-filter',
  describe,
  it,
  scenarios: [{ name: 'a word in an answer', answers: [text('Project Falcon is ACME-12.')] }],
});

async function answered(said: readonly string[], options: ContentFilterOptions) {
  return new Agent({ model: scriptedModel([chunks(...said)]), middleware: [contentFilter(options)] }).run(
    'Well?',
  );
}

function searched(words: readonly string[], given: string): string[] {
  const found: string[] = [];
  wordPattern(words)(given, (start, end) => found.push(given.slice(start, end)));
  return found;
}

describe('content-filter', () => {
  it('cuts words and phrases in any case, across pieces and runs of spaces', async () => {
    const options = { keywords: ['project falcon', 'ACME'] };
    const { text: left } = await answered(['Acme runs PRO', 'JECT \n ', ' Falcon. Acmeology.'], options);
    expect(left).toBe('[removed] runs [removed]. Acmeology.');
  });

  it.each([
    ['zero-width', 'pro\u200bject fal\u200dcon'],
    ['zero-width, everywhere', [...'project falcon'].join('\u200b')],
    ['full-width', 'ｐｒｏｊｅｃｔ ｆａｌｃｏｎ'],
    ['percent', 'project%20falcon'],
    ['entities', 'project f&#97;lcon'],
  ])('sees through disguises, in pieces of any size: %s', async (_, written) => {
    for (let size = 1; size <= 8; size++) {
      const pieces = `It is ${written}, ok.`.match(new RegExp(`.{1,${size}}`, 'gsu'))!;
      expect((await answered(pieces, { keywords: ['project falcon'] })).text).toBe('It is [removed], ok.');
      expect((await answered(pieces, { patterns: [/project\s+falcon/] })).text).toBe('It is [removed], ok.');
    }
  });

  it('cuts patterns', async () => {
    expect((await answered(['See ACM', 'E-12', '34.'], { patterns: [/acme-\d+/i] })).text).toBe(
      'See [removed].',
    );
    expect((await answered(['See ACME-1.'], { patterns: ['ACME-\\d+'], replacement: '…' })).text).toBe(
      'See ….',
    );
  });

  it('refuses what it is told to refuse', async () => {
    const result = await answered(['Falcon'], { keywords: ['falcon'], action: 'block' });
    expect(result).toMatchObject({ status: 'stopped', stop: { reason: 'guardrail', by: 'content-filter' } });
  });

  it('finds whole words only: the longest, of any script', () => {
    expect(
      searched(['bar', 'bar none', 'straße', 'привет'], 'Bar BAR  NONE bars foobar STRASSE Straße ПРИВЕТ!'),
    ).toEqual(['Bar', 'BAR  NONE', 'Straße', 'ПРИВЕТ']);
    expect(searched(['c++', '.net'], 'C++ and .NET, not c+')).toEqual(['C++', '.NET']);
  });

  it.each([
    ['(a)\\1', 'without look-around and back-references'],
    ['(?=a)b', 'without look-around and back-references'],
    ['(', 'a pattern that runs in linear time'],
  ])('refuses the pattern %s with the reason', (pattern, message) => {
    expect(() => contentFilter({ patterns: [pattern] })).toThrow(message);
  });

  it('runs a pattern that backtracks for ever elsewhere in time proportional to the text', () => {
    const search = linearPattern('pattern', /^(a+)+$/);
    const given = `${'a'.repeat(200_000)}!`;
    const started = process.cpuUsage();
    search(given, () => {});
    expect(process.cpuUsage(started).user).toBeLessThan(5_000_000);
  });

  it('refuses options it does not know', () => {
    expect(() => contentFilter({ words: [] } as never)).toThrow('Unknown option `words` of contentFilter()');
    expect(() => contentFilter({ patterns: [5] } as never)).toThrow(
      'Expected `patterns[0]` to be a regular expression',
    );
  });
});
