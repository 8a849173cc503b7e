import { defineConfig } from 'vitest/config';
import { LongestFirst } from './scripts/longest-first.mjs';
import { TallyReporter } from './scripts/tally-reporter.mjs';

const sources = new URL('scripts/sources.mjs', import.meta.url).href;

/**
 * A test runs its code a few hundred times, not millions. Optimizing it took a fifth of the processor time, in threads
 * that no profile of the main one shows: so everything is compiled once, cheaply, and only what stays hot is optimized.
 * Most garbage dies young, and gets the room to. The budget before optimizing is called otherwise after Node 20.
 */
const SHORT_LIVED = [
  '--always-sparkplug',
  '--max-semi-space-size=64',
  ...(process.version.startsWith('v20.') ? ['--interrupt-budget=1000000'] : []),
];

export default defineConfig({
  test: {
    include: ['packages/*/src/**/*.test.ts', 'test/**/*.test.ts'],
    exclude: ['**/node_modules/**', '**/dist/**', '**/fixtures/**'],
    globalSetup: 'test/run-setup.mjs',
    pool: 'forks',
    // One more than CI has cores: tests of processes, servers and terminals wait most of their time.
    maxWorkers: 3,
    // Files of a worker share their modules: loading the sources anew for each file took longer than its tests. A test
    // that changes something global puts it back.
    isolate: false,
    // Tests import the public names but run the sources, so no build stands between an edit and its test. Node itself
    // loads them: see scripts/sources.mjs.
    experimental: { viteModuleRunner: false, nodeLoader: false },
    execArgv: ['--import', sources, ...SHORT_LIVED],
    // Only for what hangs: no test is about time, and on a busy machine a build or a real server takes its own.
    testTimeout: 600_000,
    hookTimeout: 600_000,
    expect: { poll: { timeout: 120_000 } },
    sequence: { sequencer: LongestFirst },
    reporters: ['default', new TallyReporter()],
  },
});
