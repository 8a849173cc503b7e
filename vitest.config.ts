import { fileURLToPath } from 'node:url';
import { defineConfig } from 'vitest/config';
import { LongestFirst } from './scripts/longest-first.mjs';
import { TallyReporter } from './scripts/tally-reporter.mjs';

const source = (path: string) => fileURLToPath(new URL(`./packages/allium/src/${path}`, import.meta.url));

export default defineConfig({
  resolve: {
    // Tests import the public names but run the sources, so no build stands between an edit and its test.
    alias: [
      { find: /^allium$/, replacement: source('index.ts') },
      {
        find: /^allium\/(kit|testing|http|http\/client|json-schema|middleware|registry)$/,
        replacement: source('$1/index.ts'),
      },
      { find: /^allium\/(middleware|models|stores)\/([^/]+)$/, replacement: source('$1/$2/index.ts') },
      {
        find: /^@allium\/([^/]+)$/,
        replacement: fileURLToPath(new URL('./packages/$1/src/index.ts', import.meta.url)),
      },
    ],
  },
  test: {
    include: ['packages/*/src/**/*.test.ts', 'test/**/*.test.ts'],
    exclude: ['**/node_modules/**', '**/dist/**', '**/fixtures/**'],
    globalSetup: 'test/run-setup.ts',
    pool: 'forks',
    // One more than CI has cores: tests of processes, servers and terminals wait most of their time.
    maxWorkers: 3,
    // Files of a worker share their modules: loading the sources anew for each file took longer than its tests. A test
    // that changes something global puts it back.
    isolate: false,
    // What was built is run as it is, and knows nothing of the sources.
    server: { deps: { external: [/\/packages\/[^/]+\/dist\//] } },
    // Only for what hangs: no test is about time, and on a busy machine a build or a real server takes its own.
    testTimeout: 180_000,
    hookTimeout: 180_000,
    expect: { poll: { timeout: 120_000 } },
    sequence: { sequencer: LongestFirst },
    reporters: ['default', new TallyReporter()],
  },
});
