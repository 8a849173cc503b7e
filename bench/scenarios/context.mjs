/** Whether compaction that has nothing to do costs more in a long session than in a short one. */
import { atMost, reported } from '../lib/checks.mjs';
import { cell, probe } from '../lib/compare.mjs';
import { difference } from '../lib/stats.mjs';

const SIZES = [50, 5000];
const [SHORT, LONG] = SIZES;
const TURNS = 100;
/** Each takes the median of many runs by itself. */
const ROUNDS = 3;
const ROWS = [
  { name: 'no middleware', compacting: false },
  { name: 'idle compaction', compacting: true },
];

const number = (value) => value.toLocaleString('en');
const labelOf = (name, messages) => `${name}, ${number(messages)} messages`;

export async function run({ settings, progress }) {
  const missing = await whyMissing();
  const rows = missing ? [] : ROWS;
  const results = await probe(
    SIZES.flatMap((messages) =>
      rows.map(({ name, compacting }) => ({
        label: labelOf(name, messages),
        contender: 'allium-context',
        job: 'turnsAfter',
        probe: { messages, turns: TURNS, runs: settings.quick ? 60 : 150, compacting },
      })),
    ),
    Math.min(settings.rounds, ROUNDS),
    progress,
  );
  const grown = (name) => {
    const [short, long] = [SHORT, LONG].map((size) => cell(results, labelOf(name, size), 'perTurn'));
    return short && long && difference(long, short);
  };
  const about = `Runs of ${TURNS} turns in a session that already has ${number(SHORT)} or ${number(LONG)} messages, without middleware and with a compaction whose threshold is far away. Loading the session is not part of the time.`;
  return {
    title: 'Long sessions',
    about,
    missing,
    sections: missing ? [] : [{ results, unit: 'µs', variant: 'figure' }],
    checks: [
      atMost(
        `idle compaction: a turn after ${number(LONG)} messages, less one after ${number(SHORT)}`,
        grown('idle compaction'),
        20,
        'µs',
      ),
      reported(
        `no middleware: a turn after ${number(LONG)} messages, less one after ${number(SHORT)}`,
        grown('no middleware'),
        'µs',
      ),
    ],
  };
}

async function whyMissing() {
  try {
    await import('allium/middleware/compaction');
    return undefined;
  } catch (error) {
    if (error.code !== 'ERR_MODULE_NOT_FOUND') throw error;
    return 'NOT MEASURED: this build of allium has no `allium/middleware/compaction`.';
  }
}
