// The crash harness: `npm run test:crash`, or for a look `npm run test:crash -- --quick`.
//
// A process works on a session and is killed with SIGKILL; another one takes over. Afterwards the session must be what
// it would have been, up to tool calls that nobody can know about. The last line is JSON with the counts.
//
//   --quick            one kill for each phase, each on one of the stores, and a few random ones
//   --store NAME       file, sqlite or postgres; default: all of them, one after the other
//   --saboteur NAME    puts a store from saboteurs/ in between, which must be found out
//   --trouble NAME     makes the store slow, late or silent (see troubles.mjs), which must do no harm
//   --only PATTERN     only the phases that match
//   --each N           kills for each phase and store; default 20
//   --random N         random kills in all; default 500
//   --seed N           decides what is left to chance
//   --jobs N           sessions at a time
//   --no-build         takes the packages as they were built last

import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { parseArgs } from 'node:util';
import { build } from '../../scripts/build.mjs';
import { KINDS } from './stopping-store.mjs';

/** @import { Kill, Outcome, Site } from './trial.mjs' */

/** Each side of each kind of append, both sides of an effect, and between an answer in the inbox and its resume. */
const PHASES = [
  ...KINDS.flatMap((kind) => [`before ${kind}`, `after ${kind}`]),
  'before effect',
  'after effect',
  'after post',
];
/** Where a process is taken for dead that is not. */
const REVIVED = [
  'before user message',
  'before assistant message',
  'before tool_started',
  'before tool_finished',
  'before effect',
  'after effect',
  'before answer',
  'before run_end',
];

const { values: options } = parseArgs({
  options: {
    quick: { type: 'boolean', default: false },
    store: { type: 'string', multiple: true },
    saboteur: { type: 'string' },
    trouble: { type: 'string' },
    only: { type: 'string' },
    each: { type: 'string' },
    random: { type: 'string' },
    seed: { type: 'string' },
    jobs: { type: 'string' },
    'no-build': { type: 'boolean', default: false },
  },
});
const each = Number(options.each ?? (options.quick ? 1 : 20));
const randomKills = Number(options.random ?? (options.quick ? 12 : 500));
const seed = Number(options.seed ?? Date.now() % 1_000_000);
const jobs = Number(options.jobs ?? Math.max(2, os.availableParallelism()));
const wanted = new RegExp(options.only ?? '');

if (!options['no-build']) await build();
// These load the built packages.
const { STORES, openStore, startStore } = await import('./stores.mjs');
const { trial } = await import('./trial.mjs');

/** The counts of one store, or of all of them. */
const counts = () => ({
  kills: 0,
  byPhase: /** @type {Record<string, number>} */ ({}),
  lost: 0,
  doubled: 0,
  repeatedEffects: 0,
  inDoubt: 0,
  /** Trials that broke off for a reason of the harness's own. */
  broken: 0,
});
const total = counts();

const stores = STORES.filter((name) => !options.store || options.store.includes(name));
if (stores.length === 0)
  throw new Error(`Expected --store to be ${STORES.join(', ')}, got ${options.store}.`);
console.log(`seed ${seed}, ${jobs} sessions at a time`);
for (const [place, kind] of stores.entries()) {
  // Whatever goes wrong with one store, the others have their turn, and there is a verdict in the end.
  await onStore(kind, place).catch((error) => {
    total.broken++;
    console.error(`${kind}: the harness broke off: ${error instanceof Error ? error.stack : error}`);
  });
}
console.log(JSON.stringify(total));
if (total.lost + total.doubled + total.repeatedEffects + total.broken > 0) process.exitCode = 1;

async function onStore(/** @type {typeof STORES[number]} */ kind, /** @type {number} */ place) {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'allium-crash-'));
  const { address, stop } = await startStore(kind, folder);
  const store = await openStore(address);
  const { saboteur, trouble } = options;
  try {
    await on({ address, store, folder, ...(saboteur && { saboteur }), ...(trouble && { trouble }) }, place);
  } finally {
    await store.close?.();
    await stop();
    fs.rmSync(folder, { recursive: true, force: true });
  }
}

/** All trials on one store. */
async function on(/** @type {Site} */ site, /** @type {number} */ place) {
  const { address, store, folder } = site;
  const { kind } = address;
  const mine = (/** @type {string} */ phase, /** @type {number} */ i) =>
    wanted.test(phase) && (!options.quick || (i + seed) % stores.length === place);
  const phases = PHASES.filter(mine);
  const started = performance.now();
  const random = randomNumbers(seed);
  const own = counts();
  let sessions = 0;
  let revived = 0;
  const sessionId = () => `crash-${seed}-${++sessions}`;

  const uninterrupted = await trial({ address, store, folder }, sessionId(), [], undefined, 1);
  if (uninterrupted.violations.length > 0)
    throw new Error(`The uninterrupted session is not in order: ${JSON.stringify(uninterrupted.violations)}`);
  const baseline = uninterrupted.evidence;
  const [begin, end] = [baseline.entries[0]?.at ?? 0, baseline.entries.at(-1)?.at ?? 0];

  /** @returns {Promise<string[]>} The phases it was killed in. */
  const tried = async (/** @type {readonly Kill[]} */ kills) => {
    const id = sessionId();
    const outcome = await trial(site, id, kills, baseline, Math.floor(random() * 1e9)).catch((error) => {
      if (own.broken++ < 5) console.error(`${kind}: ${id} broke off: ${error.stack ?? error}`);
      return undefined;
    });
    // Counted as if it had been met: trying again and again would end nothing.
    if (outcome === undefined) return ['broken'];
    count(outcome, own, kind, kills);
    if (outcome.kills[0]?.startsWith('revived ')) revived++;
    return outcome.kills;
  };
  /** @type {(() => Promise<unknown>)[]} */
  const work = [];
  for (const phase of phases) {
    const reached = { times: Number.POSITIVE_INFINITY };
    for (let k = 0; k < each; k++)
      work.push(() => untilHit(reached, k, (n) => tried([{ type: 'phase', phase, n }])));
  }
  for (const phase of REVIVED.filter((name, i) => mine(`revived ${name}`, i))) {
    const reached = { times: Number.POSITIVE_INFINITY };
    for (let k = 0; k < Math.ceil(each / 4); k++)
      work.push(() => untilHit(reached, k, (n) => tried([{ type: 'revived', phase, n }])));
  }
  // Up to four in a row on the same session. A little longer than a session takes, so that its end is met as well.
  const random1 = () => /** @type {Kill} */ ({ type: 'random', afterMs: random() * (end - begin) * 1.2 });
  let open = wanted.test('random') ? Math.ceil(randomKills / stores.length) : 0;
  // A process that ends by itself each time is never killed: that is reported, and no reason to go on for ever.
  let inVain = 0;
  for (let job = 0; job < jobs; job++) {
    work.push(async () => {
      while (open > 0 && inVain < 20) {
        const some = Math.min(open, 1 + Math.floor(random() * 4));
        open -= some;
        const hits = await tried(Array.from({ length: some }, random1));
        open += some - hits.length;
        inVain = hits.length === 0 ? inVain + 1 : 0;
      }
    });
  }
  await inParallel(work);
  for (const [phase, n] of Object.entries(own.byPhase))
    total.byPhase[phase] = (total.byPhase[phase] ?? 0) + n;
  for (const key of /** @type {const} */ ([
    'kills',
    'lost',
    'doubled',
    'repeatedEffects',
    'inDoubt',
    'broken',
  ]))
    total[key] += own[key];
  const missed =
    options.saboteur || own.broken > 0 ? [] : phases.filter((phase) => (own.byPhase[phase] ?? 0) < each);
  if (missed.length > 0) {
    console.error(`${kind}: fewer than ${each} kills came about in: ${missed.join(', ')}.`);
    process.exitCode = 1;
  }
  console.log(
    `${kind}: ${own.kills} kills and ${revived} revived processes in ${sessions} sessions, ${((performance.now() - started) / 1000).toFixed(0)} s`,
  );
  console.log(JSON.stringify({ store: kind, ...own }));
}

/**
 * Kill number `k` of a phase: the n-th time a process gets there, for n = k + 1. Where it gets there less often, the
 * count starts over, so that every boundary has its turn.
 *
 * @param {{ times: number }} reached How often a process gets there at most, as far as known.
 * @param {number} k
 * @param {(n: number) => Promise<string[]>} attempt
 */
async function untilHit(reached, k, attempt) {
  while (reached.times > 0) {
    const n = (k % reached.times) + 1;
    if ((await attempt(n)).length > 0) return;
    reached.times = Math.min(reached.times, n - 1);
  }
}

function count(
  /** @type {Outcome} */ { kills, violations, inDoubt },
  /** @type {ReturnType<typeof counts>} */ into,
  /** @type {string} */ store,
  /** @type {readonly Kill[]} */ planned,
) {
  into.inDoubt += inDoubt;
  for (const phase of kills) {
    // Nobody was killed there.
    if (phase.startsWith('revived ')) continue;
    into.kills++;
    into.byPhase[phase] = (into.byPhase[phase] ?? 0) + 1;
  }
  for (const { kind, what } of violations) {
    // The first few tell; the rest is counted.
    if (into[kind]++ < 5) console.error(`${store}: ${kind}: ${what}\n  after ${JSON.stringify(planned)}`);
  }
}

async function inParallel(/** @type {(() => Promise<unknown>)[]} */ work) {
  const queue = [...work];
  const worker = async () => {
    for (let next = queue.shift(); next; next = queue.shift()) await next();
  };
  await Promise.all(Array.from({ length: jobs }, worker));
}

/** Numbers from 0 up to 1, the same for the same seed. */
function randomNumbers(/** @type {number} */ from) {
  let state = from >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}
