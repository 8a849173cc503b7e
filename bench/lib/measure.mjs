/** Times one function in a process of its own. */
import { median } from './stats.mjs';

/** Samples taken whatever the time: a median needs some. */
const MIN_SAMPLES = 2;

/**
 * Returns the median microseconds per unit. A sample repeats the run for about `sampleMs`. Where single runs are long,
 * sampling ends after `budgetMs`.
 *
 * @param {() => Promise<number>} run returns the units it did
 * @param {number} units
 */
export async function measure(run, units, { warmUp, sampleMs, samples, budgetMs }) {
  const did = await run();
  if (did !== units) throw new Error(`The run did ${did} units of work, expected ${units}.`);
  await warm(run, units, warmUp);
  let each = await repeatFor(run, sampleMs / 4);
  const taken = [];
  const end = performance.now() + budgetMs;
  while (taken.length < samples && (taken.length < MIN_SAMPLES || performance.now() < end)) {
    each = await takeSample(run, Math.max(1, Math.round(sampleMs / each)));
    taken.push((each * 1000) / units);
  }
  return median(taken);
}

/**
 * A process of its own starts with cold code. How long that lasts is a matter of work done more than of time, and much
 * code takes longer than little: at least `minMs`, until `units` are done, and no longer than `maxMs`.
 */
async function warm(run, units, { minMs, units: wanted, maxMs }) {
  const start = performance.now();
  let done = 0;
  let spent;
  do {
    await run();
    done += units;
    spent = performance.now() - start;
  } while (spent < minMs || (done < wanted && spent < maxMs));
}

/**
 * Sweeps the young garbage of the sample before first. Only that: a full collection drops the shapes that optimised
 * code was made for, and what follows would measure recompiling (three times the time per turn in one peer).
 */
async function takeSample(run, runs) {
  globalThis.gc({ type: 'minor' });
  const start = performance.now();
  for (let i = 0; i < runs; i++) await run();
  return (performance.now() - start) / runs;
}

/** Returns the milliseconds of one run. */
async function repeatFor(run, ms) {
  const start = performance.now();
  let runs = 0;
  let spent;
  do {
    await run();
    runs += 1;
    spent = performance.now() - start;
  } while (spent < ms);
  return spent / runs;
}
