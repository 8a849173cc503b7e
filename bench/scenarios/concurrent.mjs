/** Many runs at once: their time, and what each weighs while it waits. */
import { atMost, reported } from '../lib/checks.mjs';
import { cell, compare, probe } from '../lib/compare.mjs';
import { ratio } from '../lib/stats.mjs';

const RUNS = 100;
const TURNS = 20;
const CROWDS = { full: [1000, 10_000], quick: [100, 1000] };
const WEIGHED = 'bytesPerRun';

export async function run({ settings, progress }) {
  const crowds = settings.quick ? CROWDS.quick : CROWDS.full;
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
      crowds.map((runs) => ({
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
  const [few, many] = crowds.map((runs) => cell(weighed, crowdLabel('allium', runs), WEIGHED));
  return {
    title: 'Concurrent runs',
    about: `Runs of ${TURNS} turns started together. Weight: heap per run while all of them wait in turn ${TURNS / 2}, and heap per run left when all have finished and the agent is still there.`,
    sections: [
      { results: timed, unit: 'µs per turn', baseline: 'bare loop' },
      { results: weighed, unit: 'bytes', variant: 'weight' },
    ],
    checks: [
      atMost(`${RUNS} runs, to the bare loop`, time && bare && ratio(time, bare), 6, '×'),
      reported(`bytes per run, ${number(crowds[0])} runs`, few, 'B'),
      reported(`bytes per run, ${number(crowds[1])} runs`, many, 'B'),
      atMost(
        `${number(crowds[1])} runs finish; bytes per run to ${number(crowds[0])} runs`,
        few && many && ratio(many, few),
        1.15,
        '×',
      ),
    ],
  };
}

const number = (value) => value.toLocaleString('en');
const crowdLabel = (contender, runs) => `${contender}, ${number(runs)} runs`;
