/** What tracing costs: a turn with five middleware that change something, traced and not. */
import { atMost, reported } from '../lib/checks.mjs';
import { cell, compare } from '../lib/compare.mjs';
import { ratio } from '../lib/stats.mjs';

const TURNS = [10, 100, 5000];

const ROWS = [
  ['not traced', undefined],
  ['traced', 'changes'],
];

export async function run({ settings, progress }) {
  const rows = ROWS.map(([label, trace]) => ({
    label,
    contender: 'allium-trace',
    job: 'turns',
    variants: TURNS.map((turns) => ({ label: String(turns), params: { turns, trace }, units: turns })),
  }));
  const results = await compare(rows, settings, progress, { together: 'cases' });
  const growth = (label) => {
    const [many, few] = [cell(results, label, '5000'), cell(results, label, '100')];
    return many && few && ratio(many, few);
  };
  const grown = () => {
    const [on, off] = [growth('traced'), growth('not traced')];
    return on && off && ratio(on, off);
  };
  const added = (turns) => {
    const [on, off] = [cell(results, 'traced', turns), cell(results, 'not traced', turns)];
    return on && off && ratio(on, off);
  };
  return {
    title: 'Tracing',
    about:
      'Runs of 10, 100 and 5,000 turns with one tool call each and five middleware: one adds a line to the system prompt, one sets a setting, one adds to the result of the tool, one wraps model and tool and changes nothing, one adds details to the result. `traced` is the same with `trace: "changes"`.',
    sections: [{ results, unit: 'µs per turn', variant: 'turns' }],
    checks: [
      atMost('a traced turn, of 100', added('100'), 1.5, '×'),
      atMost("growth from 100 to 5,000 turns, to the untraced run's own", grown(), 1.15, '×'),
      reported('traced: 5,000 turns to 100, per turn', growth('traced'), '×'),
      reported('not traced: 5,000 turns to 100, per turn', growth('not traced'), '×'),
    ],
  };
}
