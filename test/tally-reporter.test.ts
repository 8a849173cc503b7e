// The promise about skipped tests and the closing line, tried on a small run of vitest in a process of its own.

import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { root } from '../scripts/repository.mjs';
import { cleanEnvironment, runCommand } from '../scripts/run-command.mjs';

const vitest = join(root, 'node_modules/vitest/vitest.mjs');
const fixtures = join(root, 'test/fixtures/reporter');

describe('TallyReporter', () => {
  it('names skipped tests with their reasons and lets them pass outside CI', async () => {
    const { code, stdout } = await run(['skips'], undefined);
    expect(stdout).toContain('skips/some.test.mjs > needs another platform: only on Windows');
    expect(stdout).toContain('skips/some.test.mjs > a whole suite > never runs: no reason given');
    expect(lastLine(stdout)).toBe('1 passed, 0 failed, 3 skipped');
    expect(code).toBe(0);
  });

  it.each(['1', 'true'])('fails the run for skipped tests with CI=%s', async (CI) => {
    const { code, stdout } = await run(['skips'], CI);
    expect(stdout).toContain('skips/some.test.mjs > is not written yet');
    expect(lastLine(stdout)).toBe('1 passed, 3 failed');
    expect(code).toBe(1);
  });

  it('does not mind the tests a name filter leaves out', async () => {
    const { code, stdout } = await run(['skips', '-t', 'passes'], '1');
    expect(lastLine(stdout)).toBe('1 passed, 0 failed, 3 skipped');
    expect(code).toBe(0);
  });

  it('counts failing tests, failing hooks with the tests behind them, and files that cannot be loaded', async () => {
    const { code, stdout } = await run(['failures'], undefined);
    expect(lastLine(stdout)).toBe('1 passed, 4 failed');
    expect(code).toBe(1);
  });
});

function run(args: readonly string[], CI: string | undefined) {
  const { CI: _, ...env } = cleanEnvironment();
  return runCommand(process.execPath, [vitest, 'run', ...args], {
    cwd: fixtures,
    env: { ...env, NO_COLOR: '1', ...(CI ? { CI } : {}) },
  });
}

function lastLine(output: string): string | undefined {
  return output.trimEnd().split('\n').at(-1);
}
