import { defineConfig } from 'vitest/config';
import { LongestFirst } from './scripts/longest-first.mjs';
import { TallyReporter } from './scripts/tally-reporter.mjs';

const sources = new URL('scripts/sources.mjs', import.meta.url).href;

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
    // loads them: see scripts/sources.mjs. Most garbage of a test dies young, so it gets room to.
    experimental: { viteModuleRunner: false, nodeLoader: false },
    execArgv: ['--import', sources, '--max-semi-space-size=64'],
    // Only for what hangs: no test is about time, and on a busy machine a build or a real server takes its own.
    testTimeout: 180_000,
    hookTimeout: 180_000,
    expect: { poll: { timeout: 120_000 } },
    sequence: { sequencer: LongestFirst },
    reporters: ['default', new TallyReporter()],
  },
});
