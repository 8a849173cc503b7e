/** Whether a consumer that reads slowly makes the process grow. */
import { atMost } from '../lib/checks.mjs';
import { cell, probe } from '../lib/compare.mjs';

const TASK = { count: 100_000, bytes: 100, everyMs: 10, seconds: 30 };

export async function run({ settings, progress }) {
  const title = 'Slow consumer';
  if (settings.quick) return { title, skipped: 'it reads for 30 s; run without --quick.' };
  const results = await probe(
    [
      { label: 'bare generator', contender: 'bare', job: 'slowConsumer', probe: TASK },
      { label: 'allium', contender: 'allium', job: 'slowConsumer', probe: TASK },
    ],
    1,
    progress,
    { atOnce: true },
  );
  return {
    title,
    about:
      '100,000 deltas of 100 bytes, offered at once and read at one event per 10 ms for 30 s: the highest resident memory of the process above that of its 50th event.',
    sections: [{ results, unit: 'value', variant: 'figure' }],
    checks: [atMost('resident memory grows by', cell(results, 'allium', 'growthMB'), 20, 'MB')],
  };
}
