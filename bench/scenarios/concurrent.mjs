/** Many runs at once: their time, and what each weighs while it waits. */
import { atMost, reported } from '../lib/checks.mjs';
import { cell, compare, probe } from '../lib/compare.mjs';
import { ratio } from '../lib/stats.mjs';

const RUNS = 100;
const TURNS = 20;
const CROWDS = [1000, 10_000];
const WEIGHED = 'bytesPerRun';

export async function run({ settings, progress }) {
  const variants = [{ label: `${RUNS} runs`, params: { runs: RUNS, turns: TURNS }, units: RUNS * TURNS }];
  const timed = await compare(
    [
      { label: 'bare loop', contender: 'bare', job: 'concurrent', variants },
      { label: 'allium run()', contender: 'allium', job: 'concurrent', variants },
    ],
    settings,
    progress,
  );
  const weighed = await probe(
    ['bare', 'allium'].flatMap((contender) =>
      CROWDS.map((runs) => ({
        label: crowdLabel(contender, runs),
        contender,
        job: 'crowd',
        probe: { runs, turns: TURNS, pauseAt: TURNS / 2 },
      })),
    ),
    settings.quick ? 1 : 3,
    progress,
  );
  const time = cell(timed, 'allium run()', `${RUNS} runs`);
  const bare = cell(timed, 'bare loop', `${RUNS} runs`);
  const [few, many] = CROWDS.map((runs) => cell(weighed, crowdLabel('allium', runs), WEIGHED));
  return {
    title: 'Concurrent runs',
    about: `Runs of ${TURNS} turns started together. Weight: heap per run while all of them wait in turn ${TURNS / 2}, and heap per run left when all have finished and the agent is still there.`,
    sections: [
      { results: timed, unit: 'µs per turn', baseline: 'bare loop' },
      { results: weighed, unit: 'bytes', variant: 'weight' },
    ],
    checks: [
      atMost(`${RUNS} runs, to the bare loop`, time && bare && ratio(time, bare), 4, '×'),
      reported(`bytes per run, ${CROWDS[0].toLocaleString('en')} runs`, few, 'B'),
      reported(`bytes per run, ${CROWDS[1].toLocaleString('en')} runs`, many, 'B'),
      atMost('10,000 runs finish; bytes per run to 1,000 runs', few && many && ratio(many, few), 1.15, '×'),
    ],
  };
}

const crowdLabel = (contender, runs) => `${contender}, ${runs.toLocaleString('en')} runs`;
