// A short run of the fault suite: workers killed and paused, Redis and Postgres restarted, and nothing lost or doubled.

import { join } from 'node:path';
import { beforeAll, expect, it } from 'vitest';
import { build } from '../../scripts/build.mjs';
import { root } from '../../scripts/repository.mjs';
import { runCommand } from '../../scripts/run-command.mjs';

beforeAll(() => build());

it('finishes every session, loses and doubles nothing, whatever dies meanwhile', async () => {
  const { code, stdout, stderr } = await runCommand(
    process.execPath,
    [join(root, 'test/fleet/run.mjs'), '--no-build', '--quick'],
    { cwd: root, timeout: 170_000 },
  );
  const lines = stdout.trimEnd().split('\n');
  expect(lines.at(-2), stdout + stderr).toBe('verdict: ok');
  expect(JSON.parse(lines.at(-1)!)).toMatchObject({
    finished: 12,
    lost: 0,
    doubled: 0,
    repeatedEffects: 0,
    missingCharges: 0,
    failed: 0,
    pauses: 1,
    restarts: 2,
  });
  expect(code).toBe(0);
});

it('the example finishes what a killed worker left behind', async () => {
  const { code, stdout, stderr } = await runCommand(
    process.execPath,
    [join(root, 'examples/fleet/run.mjs')],
    { cwd: root, timeout: 120_000 },
  );
  expect(stdout, stderr).toContain('done: Parcel 6 is in Bergen.\n6 done, ');
  expect(code).toBe(0);
});
