// The gate: runs every check, goes on after a failure so that one run shows everything, and ends with one tally line.
// With --quick it runs what one wants to know at every commit: lint, types, and how the kernel and the box behave.

import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { openRun } from './once.mjs';
import { root } from './repository.mjs';
import { readTally, tallyLine } from './tally.mjs';

/** npm scripts, cheapest first. Layout, exports and lockfile are tests like any other, in `test/`. */
const steps = process.argv.includes('--quick')
  ? ['lint', 'types', 'vitest:quick']
  : ['format:check', 'lint', 'types', 'build', 'docs', 'browser', 'vitest'];

const run = openRun();
const folder = mkdtempSync(join(tmpdir(), 'allium-check-'));
const total = { passed: 0, failed: 0, skipped: 0 };
/** @type {string[]} */
const summary = [];
try {
  for (const step of steps) {
    console.log(`\n> ${step}`);
    const file = join(folder, `${step.replaceAll(':', '-')}.json`);
    const started = performance.now();
    const { status } = spawnSync('npm', ['run', '--silent', step], {
      cwd: root,
      stdio: 'inherit',
      env: { ...process.env, ALLIUM_TALLY_FILE: file },
      shell: process.platform === 'win32',
    });
    const ok = status === 0;
    // A step that counts nothing itself counts as one; one that failed has failed something, whatever it counted.
    const tally = readTally(file) ?? { passed: ok ? 1 : 0, failed: ok ? 0 : 1, skipped: 0 };
    total.passed += tally.passed;
    total.failed += ok ? tally.failed : Math.max(1, tally.failed);
    total.skipped += tally.skipped;
    summary.push(
      `${ok ? 'ok    ' : 'FAILED'} ${step.padEnd(14)}${((performance.now() - started) / 1000).toFixed(1)} s`,
    );
    if (!ok) process.exitCode = 1;
  }
} finally {
  run.close();
  rmSync(folder, { recursive: true, force: true });
}
console.log(`\n${summary.join('\n')}\n\n${tallyLine(total)}`);
