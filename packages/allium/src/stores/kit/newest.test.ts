import { expect, it } from 'vitest';
import { Newest } from './newest.js';

it('keeps the newest entries and returns what has to go', () => {
  const newest = new Newest<string, number>(2);
  expect(newest.set('a', 1)).toBeUndefined();
  expect(newest.set('b', 2)).toBeUndefined();
  expect(newest.set('a', 3)).toBeUndefined();
  expect(newest.set('c', 4)).toBe(3);
  newest.delete('b');
  expect(newest.set('a', 5)).toBeUndefined();
  expect(newest.set('d', 6)).toBe(4);
  expect(newest.keys()).toEqual(['a', 'd']);
  newest.delete('a');
  newest.delete('d');
  expect(newest.set('e', 7)).toBeUndefined();
  expect(newest.get('e')).toBe(7);
});

it('never holds more than its limit', () => {
  const newest = new Newest<number, number>(20_000);
  let removed = 0;
  for (let i = 0; i < 300_000; i++) if (newest.set(i, i) !== undefined) removed++;
  expect(removed).toBe(280_000);
  expect(newest.keys()[0]).toBe(280_000);
});
