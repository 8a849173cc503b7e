// `.ci/run` runs what the README tells a newcomer to run, and nothing when it tells nothing.

import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { root } from '../scripts/repository.mjs';
import { cleanEnvironment, runCommand } from '../scripts/run-command.mjs';

let folder: string;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'allium-ci-'));
  mkdirSync(join(folder, '.ci'));
  cpSync(join(root, '.ci/run'), join(folder, '.ci/run'));
});

afterEach(() => rmSync(folder, { recursive: true }));

async function ciRun(readme?: string) {
  if (readme !== undefined) writeFileSync(join(folder, 'README.md'), readme);
  const { CI: _, ...env } = cleanEnvironment();
  return await runCommand('bash', ['.ci/run'], { cwd: folder, env });
}

it('runs the first fence under "## Test" at the root of the clone, with CI=true', async () => {
  const { code, stdout } = await ciRun(
    '# A\n\n## Use\n\n```sh\nexit 3\n```\n\n## Test\n\nLike this:\n\n```sh\necho "CI is $CI" && ls\necho done\n```\n\n```sh\nexit 4\n```\n',
  );
  expect(stdout).toContain('CI is true\nREADME.md\ndone\n');
  expect(code).toBe(0);
});

it('fails when any line of the command fails', async () => {
  expect((await ciRun('## Test\n\n```sh\nfalse\necho on\n```\n')).code).not.toBe(0);
});

it.each([
  ['there is no README', undefined, 'there is no README.md'],
  ['the heading is missing', '# A\n\n```sh\necho no\n```\n', 'no code fence'],
  ['the fence is missing', '## Test\n\n## Next\n\n```sh\necho no\n```\n', 'no code fence'],
  ['the fence is empty', '## Test\n\n```sh\n\n```\n', 'no code fence'],
])('says so when %s', async (_, readme, message) => {
  const { code, stderr } = await ciRun(readme);
  expect(stderr).toContain(message);
  expect(code).toBe(1);
});

it('finds the complete gate behind `npm test`', () => {
  const { scripts } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
  expect(scripts.test).toMatch(/\bcheck$/);
});
