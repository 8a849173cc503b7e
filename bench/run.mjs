/** Measures Allium beside a bare loop and other runtimes. See README.md. */
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { outcomeText, verdictLine, writeResults } from './lib/report.mjs';
import { installPeers, isAlliumBuilt } from './lib/setup.mjs';

const SCENARIOS = ['turns', 'layers', 'deltas', 'concurrent', 'tools', 'import', 'slow-consumer', 'observer'];

const FULL = {
  quick: false,
  rounds: 5,
  peerRounds: 3,
  timing: { warmMs: 300, sampleMs: 40, samples: 15 },
  peerTiming: { warmMs: 600, sampleMs: 40, samples: 5 },
};
const QUICK = {
  quick: true,
  rounds: 2,
  peerRounds: 1,
  timing: { warmMs: 100, sampleMs: 15, samples: 5 },
  peerTiming: { warmMs: 100, sampleMs: 15, samples: 2 },
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
console.log(`${verdictLine(outcomes)} ${Math.round(seconds)} s.`);

// A part of the scenarios is for looking at something; only a whole run is worth keeping.
if (flags.only.length === 0) {
  const file = flags.quick ? 'RESULTS.quick.md' : 'RESULTS.md';
  writeResults(fileURLToPath(new URL(file, import.meta.url)), outcomes, { quick: flags.quick, seconds });
  console.log(`Written to bench/${file}.`);
}

function progress(text) {
  if (process.stderr.isTTY) process.stderr.write(`\r\x1b[K… ${text}`);
}

function clearProgress() {
  if (process.stderr.isTTY) process.stderr.write('\r\x1b[K');
}
