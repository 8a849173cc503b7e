/** Measures Allium beside a bare loop and other runtimes. See README.md. */
import os from 'node:os';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { HOW_TO_INSTALL, node24 } from './lib/node24.mjs';
import { missingLines, outcomeText, verdictLine, writeResults } from './lib/report.mjs';
import { installPeers, isAlliumBuilt } from './lib/setup.mjs';

const SCENARIOS = [
  ...['turns', 'layers', 'deltas', 'concurrent', 'tools', 'import', 'slow-consumer', 'observer', 'trace'],
  ...['stores', 'many-sessions', 'box', 'adapter', 'context', 'http', 'mcp', 'cli'],
];

const FULL = {
  quick: false,
  rounds: 7,
  peerRounds: 2,
  timing: {
    // Ten async layers still got a tenth faster between 0.3 and 1 second of work, the bare loop did not.
    warmUp: { minMs: 1000, units: 150_000, maxMs: 3000 },
    sampleMs: 30,
    samples: 9,
    budgetMs: 1000,
  },
  peerTiming: { warmUp: { minMs: 600, units: 0, maxMs: 600 }, sampleMs: 40, samples: 5, budgetMs: 500 },
};
const QUICK = {
  quick: true,
  rounds: 2,
  peerRounds: 1,
  timing: { warmUp: { minMs: 60, units: 10_000, maxMs: 300 }, sampleMs: 10, samples: 3, budgetMs: 100 },
  peerTiming: { warmUp: { minMs: 60, units: 0, maxMs: 60 }, sampleMs: 10, samples: 2, budgetMs: 100 },
};

const { values: flags } = parseArgs({
  options: {
    quick: { type: 'boolean', default: false },
    only: { type: 'string', multiple: true, default: [] },
  },
});
for (const name of flags.only) {
  if (!SCENARIOS.includes(name)) {
    console.error(`Expected --only with one of ${SCENARIOS.join(', ')}, got "${name}".`);
    process.exit(1);
  }
}

installPeers();
if (!isAlliumBuilt())
  console.log('packages/allium is not built: its rows will fail. Run `npm run build` first.\n');
if (!node24()) console.log(`!!! The rows of ai 7 will be missing. Run: ${HOW_TO_INSTALL}\n`);
const load = os.loadavg()[0];
if (load > 0.5)
  console.log(`!!! The machine is busy (load ${load.toFixed(1)}): the figures will be worth little.\n`);

const settings = flags.quick ? QUICK : FULL;
const chosen = flags.only.length > 0 ? flags.only : SCENARIOS;
const started = performance.now();
const outcomes = [];
for (const name of chosen) {
  const { run } = await import(`./scenarios/${name}.mjs`);
  const outcome = await run({ settings, progress });
  clearProgress();
  outcomes.push(outcome);
  console.log(`${outcomeText(outcome)}\n`);
}
const seconds = (performance.now() - started) / 1000;
for (const line of missingLines(outcomes)) console.log(line);
console.log(`${verdictLine(outcomes)} ${Math.round(seconds)} s.`);

// A part of the scenarios is for looking at something; only a whole run is worth keeping.
if (flags.only.length === 0) {
  const file = flags.quick ? 'RESULTS.quick.md' : 'RESULTS.md';
  writeResults(fileURLToPath(new URL(file, import.meta.url)), outcomes, {
    quick: flags.quick,
    seconds,
    load,
  });
  console.log(`Written to bench/${file}.`);
}

function progress(text) {
  if (process.stderr.isTTY) process.stderr.write(`\r\x1b[K… ${text}`);
}

function clearProgress() {
  if (process.stderr.isTTY) process.stderr.write('\r\x1b[K');
}
