// One process that works on the session: node child.mjs '<JSON of Task>'. It says `ready` when it begins, `at <phase>`
// where it was told to halt, and `done` at the end. Exit code 3 means: another process has taken the session over.

import fs from 'node:fs';
import { openLedger } from './ledger.mjs';
import { drive } from './scenario.mjs';
import { stoppingStore } from './stopping-store.mjs';
import { openStore } from './stores.mjs';
import { TROUBLED_TIMEOUT_MS, troubled } from './troubles.mjs';

/**
 * @typedef {object} Task
 * @property {import('./stores.mjs').StoreAddress} store
 * @property {string} sessionId
 * @property {string} ledger
 * @property {string} acks
 * @property {number} seed Decides how long tools take.
 * @property {string} [saboteur]
 * @property {string} [trouble]
 * @property {{ phase: string, n: number }} [haltAt] The n-th time it gets there, it halts.
 * @property {string} [release] When this file appears, it goes on from there.
 * @property {boolean} [barrier] Waits for a byte on its input before it begins.
 * @property {number} [runs]
 */

/** @type {Task} */
const task = JSON.parse(process.argv[2] ?? '');
const still = new Int32Array(new SharedArrayBuffer(4));
let seen = 0;
/** What a troublesome store makes of a run. */
const PASSING = ['STORE_FAILED', 'STORE_TIMEOUT', 'SESSION_CONFLICT', 'REQUEST_UNKNOWN'];

/** Synchronous, so that nothing else of this process happens between the boundary and the kill. */
function at(/** @type {readonly string[]} */ phases) {
  const { haltAt, release } = task;
  if (!haltAt || !phases.includes(haltAt.phase) || ++seen !== haltAt.n) return;
  fs.writeSync(1, `at ${haltAt.phase}\n`);
  while (!release || !fs.existsSync(release)) Atomics.wait(still, 0, 0, release ? 2 : 60_000);
}

let state = task.seed;
/** Up to 3 ms. */
function delayMs() {
  state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
  return (state >>> 16) % 4;
}

const saboteur = task.saboteur && (await import(`./saboteurs/${task.saboteur}.mjs`)).default;
const opened = await openStore(task.store);
const odd = saboteur ? saboteur(opened) : opened;
const used = task.trouble ? troubled(odd, task.trouble, () => (delayMs() + Math.random()) / 4) : odd;
const store = stoppingStore(used, { at, acks: task.acks });
// Connects, and makes what is missing: from here on it is about the session only.
await store.head(task.sessionId);
const write = openLedger(task.ledger);
fs.writeSync(1, 'ready\n');
if (task.barrier) fs.readSync(0, Buffer.alloc(1));
/** On a store that fails now and then a process tries again, as it would after a restart. */
async function work(/** @type {number} */ tries) {
  try {
    await drive(
      task.sessionId,
      {
        store,
        delayMs,
        effect(effect) {
          at(['before effect']);
          write(effect);
          at(['after effect']);
        },
        posted: () => at(['after post']),
        ...(task.trouble && { storeTimeoutMs: TROUBLED_TIMEOUT_MS }),
      },
      task.runs,
    );
  } catch (error) {
    const { code = '' } = /** @type {{ code?: string }} */ (error);
    if (!task.trouble || tries === 0 || !PASSING.includes(code)) throw error;
    await work(tries - 1);
  }
}

try {
  await work(100);
  fs.writeSync(1, 'done\n');
} catch (error) {
  if (/** @type {{ code?: string }} */ (error).code === 'SESSION_CONFLICT') process.exitCode = 3;
  else {
    fs.writeSync(2, `${error instanceof Error ? error.stack : error}\n`);
    process.exitCode = 1;
  }
} finally {
  await store.close?.();
}
