/** Times functions inside one process. */
import { median } from './stats.mjs';

/**
 * Takes `samples` samples of each variant, in turn, and returns the median microseconds per unit of each.
 * A sample repeats the run for about `sampleMs`, so that every variant does a comparable amount of work in it.
 *
 * @param {{ run: () => Promise<number>, units: number }[]} variants `run` returns the units it did
 */
export async function measure(variants, { warmMs, sampleMs, samples }) {
  for (const { run, units } of variants) {
    const did = await run();
    if (did !== units) throw new Error(`The run did ${did} units of work, expected ${units}.`);
  }
  await warm(variants, warmMs);
  const taken = variants.map(() => []);
  for (let sample = 0; sample < samples; sample++) {
    for (const [i, { run, units }] of variants.entries())
      taken[i].push(await takeSample(run, units, sampleMs));
  }
  return taken.map(median);
}

/** Runs every variant for `warmMs`, in alternating slices: what one teaches the compiler, another may unteach. */
async function warm(variants, warmMs) {
  const spent = variants.map(() => 0);
  while (Math.min(...spent) < warmMs) {
    for (const [i, { run }] of variants.entries()) {
      if (spent[i] < warmMs) spent[i] += (await repeatFor(run, warmMs / 4)).spent;
    }
  }
}

/**
 * Sweeps the young garbage of others first. Only that: a full collection drops the shapes that optimised code was
 * made for, and what follows would measure recompiling (three times the time per turn in one peer).
 */
async function takeSample(run, units, sampleMs) {
  globalThis.gc({ type: 'minor' });
  const { each } = await repeatFor(run, sampleMs / 4);
  const runs = Math.max(1, Math.round(sampleMs / each));
  const start = performance.now();
  for (let i = 0; i < runs; i++) await run();
  return ((performance.now() - start) * 1000) / (runs * units);
}

async function repeatFor(run, ms) {
  const start = performance.now();
  let runs = 0;
  let spent;
  do {
    await run();
    runs += 1;
    spent = performance.now() - start;
  } while (spent < ms);
  return { spent, each: spent / runs };
}
