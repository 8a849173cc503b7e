// One folder for everything that the files of a run share; see scripts/once.mjs.

import { openRun } from '../scripts/once.mjs';

/**
 * @import { TestProject } from 'vitest/node'
 */

/** @returns {() => void} */
export default function setup(/** @type {TestProject} */ project) {
  const run = openRun();
  // When a person watches, the sources change between two runs.
  project.onTestsRerun(() => {
    for (const name of ['build', 'packed']) run.forget(name);
  });
  return () => run.close();
}
