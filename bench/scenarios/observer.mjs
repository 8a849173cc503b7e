/** Whether an observer that takes a second per event delays the run it watches. */
import { atMost, reported } from '../lib/checks.mjs';
import { cell, compare } from '../lib/compare.mjs';
import { ratio } from '../lib/stats.mjs';

const TURNS = 20;
const OBSERVERS = ['none', 'instant', 'asleep'];

const row = (label, latencyMs) => ({
  label,
  contender: 'allium',
  job: 'observed',
  variants: OBSERVERS.map((observer) => ({
    label: observer,
    params: { turns: TURNS, latencyMs, observer },
    units: TURNS,
  })),
});

export async function run({ settings, progress }) {
  const results = await compare([row('model of 1 ms', 1), row('instant model', 0)], settings, progress, {
    together: 'cases',
  });
  const divide = (label, one, other) => {
    const [a, b] = [one, other].map((observer) => cell(results, label, observer));
    return a && b && ratio(a, b);
  };
  return {
    title: 'Sleeping observer',
    about: `Runs of ${TURNS} turns of allium without an observer, with one that returns at once, and with one that sleeps 1 s per event. With an instant model the price of making events shows; with a model that takes 1 ms, delay would.`,
    sections: [{ results, unit: 'µs per turn', variant: 'observer' }],
    checks: [
      atMost('model of 1 ms: asleep to none', divide('model of 1 ms', 'asleep', 'none'), 1.1, '×'),
      atMost('instant model: asleep to instant', divide('instant model', 'asleep', 'instant'), 1.1, '×'),
      reported('instant model: asleep to none', divide('instant model', 'asleep', 'none'), '×'),
    ],
  };
}
