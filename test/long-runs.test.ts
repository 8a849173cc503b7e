// The picture and the table of docs/guide/long-runs.md are what the scripted run gives, and it gives what the page says.

import { readFileSync } from 'node:fs';
import { beforeAll, describe, expect, it } from 'vitest';
import { measureAll, pagePath, picture, picturePath, withTable } from '../scripts/long-runs-picture.mjs';
import { MAX_TOKENS, measure, type Sizes, total } from '../scripts/long-runs-sizes.mjs';

const HOW = 'Run: npm run build && node scripts/long-runs-picture.mjs';
let measured: Map<string, Sizes>;
const sizes = (list: string) => measured.get(list)!;
const longest = (list: string) => Math.max(...sizes(list).turns.map(total));

beforeAll(async () => {
  measured = await measureAll();
});

describe('docs/guide/long-runs.md', () => {
  it('shows the picture that scripts/long-runs-picture.mjs draws', () => {
    expect(readFileSync(picturePath, 'utf8') === picture(measured), HOW).toBe(true);
  });

  it('has the table that scripts/long-runs-picture.mjs writes', () => {
    const page = readFileSync(pagePath, 'utf8');
    expect(page, HOW).toBe(withTable(page, measured));
  });

  it('is refused when it has lost the place of the table', () => {
    expect(() => withTable('# Long runs\n', measured)).toThrow('no place for the table');
  });
});

describe('the scripted run', () => {
  it('gives the same result each time', async () => {
    const [again, once] = [await measure(() => []), await measure(() => [])];
    expect(again).toEqual(once);
    expect(again).toEqual(sizes('nothing'));
  });

  it('grows at every turn without middleware', () => {
    const totals = sizes('nothing').turns.map(total);
    expect(totals).toHaveLength(500);
    expect(totals.every((tokens, index) => index === 0 || tokens > totals[index - 1]!)).toBe(true);
  });

  it('stays below `maxTokens` with compaction, whatever stands beside it', () => {
    const lists = [...measured.keys()].filter((list) => list.includes('compaction'));
    expect(lists.length).toBeGreaterThan(3);
    for (const list of lists) expect(longest(list), list).toBeLessThan(MAX_TOKENS);
  });

  it('keeps the pinned task in every request', () => {
    for (const [list, { turns }] of measured)
      expect(new Set(turns.map(({ pinned }) => pinned)), list).toEqual(new Set([turns[0]!.pinned]));
    expect(sizes('nothing').turns[0]!.pinned).toBeGreaterThan(0);
  });

  it('shows the todo list from the turn after it was written, and summaries after the first round', () => {
    const { turns } = sizes('compaction, todoList');
    expect(turns[0]!.todos).toBe(0);
    expect(turns.slice(1).every(({ todos }) => todos > 0)).toBe(true);
    const first = turns.findIndex(({ summary }) => summary > 0);
    expect(first).toBeGreaterThan(0);
    expect(turns.slice(first).every(({ summary }) => summary > 0)).toBe(true);
  });

  it('confirms what the page says about costs', () => {
    const cached = (list: string) => sizes(list).sent - 0.9 * sizes(list).seen + sizes(list).read;
    const sent = (list: string) => sizes(list).sent + sizes(list).read;
    expect(cached('historyTruncator')).toBeGreaterThan(3 * cached('compaction'));
    for (const list of measured.keys()) expect(cached('compaction')).toBeLessThanOrEqual(cached(list));
    expect(sent('compaction, contextEditing')).toBeLessThan(sent('compaction'));
    expect(sent('compaction, contextEditing')).toBeLessThan(sent('contextEditing, compaction'));
    expect(sizes('compaction, contextEditing').calls).toBeLessThan(sizes('compaction').calls / 2);
  });
});
