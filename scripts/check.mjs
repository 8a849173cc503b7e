// The gate: runs every check, goes on after a failure so that one run shows everything, and ends with one tally line.
// With --quick it runs what one wants to know at every commit: lint, types, and how the kernel and the box behave.

import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { openRun } from './once.mjs';
import { root } from './repository.mjs';
import { readTally, tallyLine } from './tally.mjs';

/**
 * npm scripts. The two lanes run side by side, for the tests alone do not keep two cores busy: they begin and end on
 * one. Layout, exports and lockfile are tests like any other, in `test/`.
 */
const lanes = process.argv.includes('--quick')
  ? [['vitest:quick'], ['lint', 'types']]
  : [
      ['vitest'],
      // The other runtimes are 700 MB: CI fetches them, and everybody else says `npm run runtimes` once.
      ['browser', ...(process.env.CI ? ['runtimes'] : []), 'lint', 'types', 'docs'],
    ];

const run = openRun();
/** What installs something. Tests that need it wait for it. */
const promised = new Map(
  ['browser', 'runtimes']
    .filter((step) => lanes.some((steps) => steps.includes(step)))
    .map((step) => [step, run.promise(step)]),
);
const folder = mkdtempSync(join(tmpdir(), 'allium-check-'));
const total = { passed: 0, failed: 0, skipped: 0 };
/** @type {string[]} */
const summary = [];
try {
  // What is built is built once, by the first that needs it.
  const outputs = await Promise.all(lanes.map((steps, lane) => runSteps(steps, lane === 0)));
  console.log(outputs.join(''));
} finally {
  run.close();
  rmSync(folder, { recursive: true, force: true });
}
console.log(`\n${summary.join('\n')}\n\n${tallyLine(total)}`);

/** Runs them one after the other. What the first lane prints is shown as it comes, and what the others print is returned. */
async function runSteps(/** @type {readonly string[]} */ steps, /** @type {boolean} */ live) {
  let output = '';
  const tell = (/** @type {string} */ text) => {
    if (live) process.stdout.write(text);
    else output += text;
  };
  for (const step of steps) {
    tell(`\n> ${step}\n`);
    const file = join(folder, `${step.replaceAll(':', '-')}.json`);
    const started = performance.now();
    const ok = (await runScript(step, file, live ? undefined : tell)) === 0;
    // Installed or not: whoever waits looks what is there.
    promised.get(step)?.();
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
  return output;
}

/**
 * @param {string} step
 * @param {string} tallyFile
 * @param {((text: string) => void) | undefined} tell Without one it prints itself.
 * @returns {Promise<number | null>} Its exit code.
 */
function runScript(step, tallyFile, tell) {
  return new Promise((resolve, reject) => {
    const child = spawn('npm', ['run', '--silent', step], {
      cwd: root,
      stdio: tell ? ['ignore', 'pipe', 'pipe'] : 'inherit',
      env: { ...process.env, ALLIUM_TALLY_FILE: tallyFile },
      shell: process.platform === 'win32',
    });
    if (tell) for (const stream of [child.stdout, child.stderr]) stream?.setEncoding('utf8').on('data', tell);
    child.on('error', reject);
    child.on('close', resolve);
  });
}
