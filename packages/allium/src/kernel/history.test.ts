import { userMessage } from 'allium';
import { expect, it } from 'vitest';
import { History } from './history.js';

it('hands out frozen prefixes that later messages do not change', () => {
  const history = new History();
  const [one, two, three] = ['1', '2', '3'].map((text) => userMessage(text));
  history.append(one!);
  history.append(two!);
  const before = history.all();
  history.append(three!);
  expect(before).toEqual([one, two]);
  expect(Object.isFrozen(before)).toBe(true);
  expect(history.all()).toEqual([one, two, three]);
  expect(history.first(1)).toEqual([one]);
  expect(history.from(1)).toEqual([two, three]);
  expect([history.length, history.at(-1)]).toEqual([3, three]);
});

it('copies nothing while nobody appends', () => {
  const history = new History();
  history.append(userMessage('1'));
  expect(history.all()).toBe(history.all());
  expect(history.first(1)).toBe(history.all());
});
