// Runs tests again and again while other processes keep every core busy: no test may depend on how fast the machine is.
//
//   node scripts/under-load.mjs [--runs 10] [what vitest takes: paths, -t ...]

import { spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { availableParallelism, tmpdir } from 'node:os';
import { join } from 'node:path';
import { root } from './repository.mjs';
import { runCommand } from './run-command.mjs';

const [first, count, ...rest] = process.argv.slice(2);
const [runs, args] = first === '--runs' ? [Number(count), rest] : [10, process.argv.slice(2)];
if (!Number.isInteger(runs) || runs < 1) throw new Error(`--runs takes a number from 1, got ${count}.`);

const busy = Array.from({ length: availableParallelism() }, () =>
  spawn(process.execPath, ['-e', 'for (;;);'], { stdio: 'ignore' }),
);
const folder = mkdtempSync(join(tmpdir(), 'allium-load-'));
/** Name of the test → in how many runs it failed. @type {Map<string, number>} */
const failures = new Map();
try {
  for (let run = 1; run <= runs; run++) {
    const started = performance.now();
    const failed = await runTests(join(folder, `${run}.json`));
    for (const name of failed) failures.set(name, (failures.get(name) ?? 0) + 1);
    const seconds = ((performance.now() - started) / 1000).toFixed(0);
    console.log(`run ${run} of ${runs}: ${failed.length} failed, ${seconds} s`);
    for (const name of failed) console.log(`  ${name}`);
  }
} finally {
  for (const process of busy) process.kill('SIGKILL');
  rmSync(folder, { recursive: true, force: true });
}
for (const [name, times] of failures) console.log(`${times} of ${runs}: ${name}`);
console.log(
  failures.size === 0 ? `green ${runs} times in a row` : `${failures.size} tests depend on the load`,
);
process.exitCode = failures.size === 0 ? 0 : 1;

/** @returns {Promise<string[]>} What failed. */
async function runTests(/** @type {string} */ file) {
  const vitest = [join(root, 'node_modules/vitest/vitest.mjs'), 'run', ...args];
  const report = ['--reporter=json', `--outputFile=${file}`];
  const { code, stdout, stderr } = await runCommand(process.execPath, [...vitest, ...report], {
    cwd: root,
    timeout: 3_600_000,
  });
  const names = failedTests(file);
  // An error outside of any test, or none that could be run.
  if (code !== 0 && names.length === 0) return [`vitest ended with ${code}\n${stdout}${stderr}`];
  return names;
}

/** @returns {string[]} */
function failedTests(/** @type {string} */ file) {
  /** @type {{ testResults: { name: string, status: string, assertionResults: { status: string, fullName: string, failureMessages?: string[] }[] }[] }} */
  const { testResults } = JSON.parse(readFileSync(file, 'utf8'));
  return testResults.flatMap(({ name, status, assertionResults }) => {
    const tests = assertionResults.filter((test) => test.status === 'failed');
    const path = name.slice(root.length + 1);
    if (status === 'failed' && tests.length === 0) return [`${path} (the file itself)`];
    return tests.map(({ fullName }) => `${path} > ${fullName}`);
  });
}
