/** A store, the same runs in memory, and what writes the same messages without an agent: in turns in one process. */
import { mkdirSync, mkdtempSync } from 'node:fs';
import { join } from 'node:path';
import { median } from '../lib/stats.mjs';
import * as own from './allium-stores.mjs';
import * as raw from './raw-append.mjs';

export const what =
  'one process: some 30 ms of runs on the store, as many in memory, as many of the raw way, and again; the medians of all';

/** What is measured beside each store. */
const BESIDE = {
  file: ['writeSync', 'appendFileSync', 'memory'],
  sqlite: ['inserts', 'writeSync', 'memory'],
};

const MAKE = {
  writeSync: (task) => raw.turns({ ...task, way: 'writeSync' }),
  appendFileSync: (task) => raw.turns({ ...task, way: 'appendFileSync' }),
  inserts: (task) => raw.inserts(task),
  memory: (task) => own.turns({ ...task, store: 'memory' }),
  file: (task) => own.turns({ ...task, store: 'file' }),
  sqlite: (task) => own.turns({ ...task, store: 'sqlite' }),
};

/** Microseconds per turn of each side: `<side>` by the clock, `<side>Cpu` of the processor. */
export async function inTurns({ store, turns, folder, timing }) {
  const parent = mkdtempSync(join(folder, `${store}-${turns}-`));
  const sides = [];
  for (const name of [...BESIDE[store], store]) {
    const place = join(parent, name);
    mkdirSync(place);
    const run = await MAKE[name]({ turns, folder: place });
    const did = await run();
    if (did !== turns) throw new Error(`${name} did ${did} units of work, expected ${turns}.`);
    sides.push({ name, run, each: await warm(run, turns, timing.warmUp), clock: [], cpu: [] });
  }
  for (let sample = 0; sample < timing.samples; sample++)
    for (const side of sample % 2 === 0 ? sides : sides.toReversed())
      await take(side, turns, timing.sampleMs);
  return Object.fromEntries(
    sides.flatMap(({ name, clock, cpu }) => [
      [name, median(clock)],
      [`${name}Cpu`, median(cpu)],
    ]),
  );
}

/** Returns the milliseconds of one run in the last quarter of a second, or so. */
async function warm(run, turns, { minMs, units, maxMs }) {
  const begun = performance.now();
  let [start, runs, done] = [begun, 0, 0];
  for (let spent = 0; spent < minMs || (done < units && spent < maxMs); spent = performance.now() - begun) {
    if (performance.now() - start > 250) [start, runs] = [performance.now(), 0];
    await run();
    runs += 1;
    done += turns;
  }
  return (performance.now() - start) / runs;
}

/** The young garbage of the other sides is not this one's. */
async function take(side, turns, sampleMs) {
  const runs = Math.max(1, Math.round(sampleMs / side.each));
  globalThis.gc({ type: 'minor' });
  const cpu = process.cpuUsage();
  const start = performance.now();
  for (let i = 0; i < runs; i++) await side.run();
  const ms = performance.now() - start;
  const { user, system } = process.cpuUsage(cpu);
  side.each = ms / runs;
  side.clock.push((ms * 1000) / runs / turns);
  side.cpu.push((user + system) / runs / turns);
}
