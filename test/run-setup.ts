/** One folder for everything that the files of a run share; see scripts/once.mjs. */
import type { TestProject } from 'vitest/node';
import { openRun } from '../scripts/once.mjs';

export default function setup(project: TestProject): () => void {
  const run = openRun();
  // When a person watches, the sources change between two runs.
  project.onTestsRerun(() => {
    for (const name of ['build', 'packed']) run.forget(name);
  });
  return () => run.close();
}
