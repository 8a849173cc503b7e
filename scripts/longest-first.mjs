// Starts the test files that take longest first, so that no core is idle while another works off a long one at the end.
// Without a cache of earlier runs, as in a fresh clone, vitest only knows how large a file is.

import { relative } from 'node:path';
import { BaseSequencer } from 'vitest/node';
import { root } from './repository.mjs';

/**
 * @import { TestSpecification } from 'vitest/node'
 */

/** The longest ones, measured in a whole run. A file that is not here has its turn after them. */
export const LONGEST = [
  'test/pairs/pairs.test.ts',
  'test/every-sink.test.ts',
  'test/crash/crash.test.ts',
  'test/every-sink-warn.test.ts',
  'test/every-sink-stores.test.ts',
  'test/browser/studio.test.ts',
  'packages/allium/src/testing/test-middleware.test.ts',
  'packages/cli/src/commands/approve.test.ts',
  'test/packed-cli.test.ts',
  'packages/allium/src/testing/sound-middleware.test.ts',
  'test/browser/chat.test.ts',
  'test/fleet/fleet.test.ts',
  'test/crash/sub-agents.test.ts',
  'test/foreign-packages.test.ts',
  'packages/cli/src/commands/worker.test.ts',
  'packages/store-postgres/src/index.test.ts',
  'test/crash/eight-processes.test.ts',
  'packages/mcp/src/mcp.test.ts',
  'packages/mcp/src/others.test.ts',
  'packages/worker/src/redis-down.test.ts',
  'test/demo.test.ts',
  'test/http-processes.test.ts',
  'test/plugins.test.ts',
  'test/packed-config.test.ts',
  'test/http-runtimes.test.ts',
  'packages/allium/src/stores/processes.test.ts',
  'test/tally-reporter.test.ts',
  'test/pairs/crowd.test.ts',
];

export class LongestFirst extends BaseSequencer {
  /**
   * @override
   * @param {TestSpecification[]} files
   * @returns {Promise<TestSpecification[]>}
   */
  async sort(files) {
    const sorted = await super.sort(files);
    return sorted
      .map((file, i) => ({ file, place: placeOf(file) ?? LONGEST.length + i }))
      .sort((a, b) => a.place - b.place)
      .map(({ file }) => file);
  }
}

/** @returns {number | undefined} */
function placeOf(/** @type {TestSpecification} */ { moduleId }) {
  const place = LONGEST.indexOf(relative(root, moduleId).replaceAll('\\', '/'));
  return place === -1 ? undefined : place;
}
