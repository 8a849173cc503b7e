// What is made once per run of the tests, and waited for.

import { expect, it } from 'vitest';
import { openRun, whenMade } from '../scripts/once.mjs';

it('waits until promised work is done', async () => {
  const made = openRun().promise('promised');
  const waiting = whenMade('promised');
  const later = new Promise((resolve) => setTimeout(resolve, 60, 'not yet'));
  expect(await Promise.race([waiting, later])).toBe('not yet');
  made();
  await waiting;
  await whenMade('promised');
});

it('does not wait for work that nobody promised', async () => {
  await whenMade('not promised');
});
