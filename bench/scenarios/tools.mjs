/** Whether tools that are not called cost anything. */
import { atMost, reported } from '../lib/checks.mjs';
import { cell, compare } from '../lib/compare.mjs';
import { ratio } from '../lib/stats.mjs';

const TURNS = 100;
const COUNTS = [2, 200];

export async function run({ settings, progress }) {
  const variants = COUNTS.map((tools) => ({
    label: String(tools),
    params: { turns: TURNS, tools },
    units: TURNS,
  }));
  const results = await compare(
    [
      { label: 'bare loop', contender: 'bare', job: 'turns', variants },
      { label: 'allium run()', contender: 'allium', job: 'turns', variants },
    ],
    settings,
    progress,
    { together: 'cases' },
  );
  const growth = (label) => {
    const [few, many] = COUNTS.map((count) => cell(results, label, String(count)));
    return few && many && ratio(many, few);
  };
  return {
    title: 'Registered tools',
    about: `Runs of ${TURNS} turns with ${COUNTS[0]} and ${COUNTS[1]} registered tools, of which one is called. The bare loop shows the noise of the comparison.`,
    sections: [{ results, unit: 'µs per turn', variant: 'tools' }],
    checks: [
      atMost(`allium: ${COUNTS[1]} tools to ${COUNTS[0]}, per turn`, growth('allium run()'), 1.05, '×'),
      reported(`bare loop: ${COUNTS[1]} tools to ${COUNTS[0]}, per turn`, growth('bare loop'), '×'),
    ],
  };
}
