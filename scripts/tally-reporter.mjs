// A vitest reporter that names every skipped test, fails the run for them in CI, and ends with one plain tally line.

import { record, tallyLine } from './tally.mjs';

/**
 * @import { Reporter, TestCase, TestModule, TestRunEndReason, Vitest } from 'vitest/node'
 * @import { SerializedError } from 'vitest'
 */

/** @implements {Reporter} */
export class TallyReporter {
  /** @type {Vitest | undefined} */
  #vitest;

  /** @param {Vitest} vitest */
  onInit(vitest) {
    this.#vitest = vitest;
  }

  /**
   * @param {readonly TestModule[]} modules
   * @param {readonly SerializedError[]} unhandledErrors
   * @param {TestRunEndReason} reason
   */
  onTestRunEnd(modules, unhandledErrors, reason) {
    const tally = { passed: 0, failed: unhandledErrors.length, skipped: 0 };
    /** @type {string[]} */
    const skips = [];

    for (const module of modules) {
      // A file that cannot be loaded, or a suite whose hook throws, has failed although no test says so.
      tally.failed += module.errors().length;
      for (const suite of module.children.allSuites()) tally.failed += suite.errors().length;
      for (const test of module.children.allTests()) {
        const result = test.result();
        if (result.state === 'passed') tally.passed++;
        else if (result.state === 'failed' || setupFailed(test)) tally.failed++;
        else {
          tally.skipped++;
          const why = result.state === 'skipped' && result.note ? result.note : 'no reason given';
          skips.push(`  ${module.relativeModuleId} > ${test.fullName}: ${why}`);
        }
      }
    }
    if (reason === 'failed' && tally.failed === 0) tally.failed = 1;

    // With a name filter (`-t`) everything else counts as skipped, and nobody needs to hear about it.
    const filtered = this.#vitest?.getGlobalTestNamePattern() !== undefined;
    if (skips.length > 0 && !filtered) {
      console.log(`Skipped tests:\n${skips.join('\n')}\n`);
      if (inCI()) {
        console.log('In CI a skipped test is a failure: make it run, or delete it.\n');
        process.exitCode = 1;
        tally.failed += tally.skipped;
        tally.skipped = 0;
      }
    }
    if (!record(tally)) console.log(tallyLine(tally));
  }
}

/** Vitest calls the tests of a suite whose `beforeAll` threw skipped; nobody skipped them. */
function setupFailed(/** @type {TestCase} */ test) {
  for (let parent = test.parent; ; parent = parent.parent) {
    if (parent.errors().length > 0) return true;
    if (parent.type === 'module') return false;
  }
}

function inCI() {
  return ['1', 'true'].includes((process.env.CI ?? '').toLowerCase());
}
