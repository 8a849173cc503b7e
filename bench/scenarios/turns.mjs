/** Time per turn, and whether it stays the same as a run grows. */
import { atMost, reported } from '../lib/checks.mjs';
import { cell, compare } from '../lib/compare.mjs';
import { ratio } from '../lib/stats.mjs';

const LENGTHS = [10, 100, 500];
const LONG = 5000;

const variant = (turns) => ({ label: String(turns), params: { turns }, units: turns });

export async function run({ settings, progress }) {
  const own = [...LENGTHS, LONG].map(variant);
  const peers = settings.quick ? [variant(100)] : LENGTHS.map(variant);
  const results = await compare(
    [
      { label: 'bare loop', contender: 'bare', job: 'turns', variants: own },
      { label: 'allium run()', contender: 'allium', job: 'turns', variants: own },
      { label: 'allium for await', contender: 'allium', job: 'events', variants: own },
      { label: 'pi prompt()', contender: 'pi', job: 'turns', variants: peers, peer: true },
      { label: 'pi for await', contender: 'pi', job: 'events', variants: peers, peer: true },
      { label: 'ai generateText', contender: 'ai', job: 'turns', variants: peers, peer: true },
      { label: 'ai streamText', contender: 'ai', job: 'events', variants: peers, peer: true },
      { label: 'langchain invoke()', contender: 'langchain', job: 'turns', variants: peers, peer: true },
      { label: 'langchain stream()', contender: 'langchain', job: 'events', variants: peers, peer: true },
    ],
    settings,
    progress,
  );
  return {
    title: 'Per turn',
    about:
      'One call of an async tool with validated arguments per turn, no middleware, then a closing text answer. The model of the bare loop is one async function. Starting a run is part of its time.',
    sections: [{ results, unit: 'µs per turn', variant: 'turns', baseline: 'bare loop' }],
    checks: [
      ...LENGTHS.map((turns) => againstBare('allium run()', turns, 5)),
      ...LENGTHS.map((turns) => againstBare('allium for await', turns, 7)),
      ...['allium run()', 'allium for await'].flatMap((label) => [
        atMost(`${label}: growth to ${LONG} turns, to the bare loop's own`, growth(label), 1.15, '×'),
        reported(`${label}: ${LONG} turns to 10, per turn`, flatness(label), '×'),
      ]),
      reported(`bare loop: ${LONG} turns to 10, per turn`, flatness('bare loop'), '×'),
    ],
  };

  function againstBare(label, turns, limit) {
    return atMost(
      `${label}, ${turns} turns, to the bare loop`,
      divide(label, turns, 'bare loop', turns),
      limit,
      '×',
    );
  }
  function flatness(label) {
    return divide(label, LONG, label, 10);
  }
  function growth(label) {
    const [own, bare] = [flatness(label), flatness('bare loop')];
    return own && bare && ratio(own, bare);
  }
  function divide(label, turns, otherLabel, otherTurns) {
    const figure = cell(results, label, String(turns));
    const other = cell(results, otherLabel, String(otherTurns));
    return figure && other && ratio(figure, other);
  }
}
