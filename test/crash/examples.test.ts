// The examples about durability come to their end and show what they are there to show.

import { join } from 'node:path';
import { beforeAll, expect, it } from 'vitest';
import { build } from '../../scripts/build.mjs';
import { root } from '../../scripts/repository.mjs';
import { mustRun } from '../../scripts/run-command.mjs';

beforeAll(() => build());

it.each([
  [
    'approve-tomorrow',
    [
      'evening',
      'suspended: 1 question',
      'office',
      '"euros":900',
      'morning',
      'Paid 40',
      'Paid 450',
      'never paid',
      'done',
    ],
  ],
  [
    'kill-and-resume',
    [
      'looking for the address',
      'buying a stamp',
      'mailing',
      'Killed (SIGKILL)',
      'One stamp.',
      'In doubt: "mail"',
      'done after 3 turns',
    ],
  ],
])('examples/%s.mjs', async (name, order) => {
  const { stdout, stderr } = await mustRun(process.execPath, [join(root, 'examples', `${name}.mjs`)], {
    cwd: root,
  });
  expect(stderr).toBe('');
  const places = order.map((text) => stdout.indexOf(text));
  expect(places).not.toContain(-1);
  expect(places).toEqual([...places].sort((a, b) => a - b));
});
