// One session from its start to its end: processes that work on it, the kills, and the evidence.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import fs from 'node:fs';
import path from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { cleanEnvironment } from '../../scripts/run-command.mjs';
import { verify } from './checks.mjs';
import { readLines } from './ledger.mjs';
import { historyOf, prepare } from './scenario.mjs';
import { addressFor, untilGone } from './stores.mjs';

/**
 * @import { Store } from 'allium'
 * @import { Baseline, Snapshot, Violation } from './checks.mjs'
 * @import { Task } from './child.mjs'
 */

/**
 * @typedef {object} Site Where trials take place.
 * @property {import('./stores.mjs').StoreAddress} address
 * @property {Store} store The same store, for looking at it from outside.
 * @property {string} folder
 * @property {string} [saboteur]
 * @property {string} [trouble]
 */

/**
 * How a process comes to its end: killed where it halts (`phase`), killed after a while (`random`), or halted, taken
 * for dead by another process that finishes the session, and then going on (`revived`).
 *
 * @typedef {{ type: 'phase' | 'revived', phase: string, n: number } | { type: 'random', afterMs: number }} Kill
 */

/** @typedef {{ kills: string[], violations: Violation[], inDoubt: number }} Outcome `kills`: the phases of those that came about. */

const program = fileURLToPath(new URL('child.mjs', import.meta.url));
/** No process of a trial takes longer than this, or it hangs. */
const PATIENCE_MS = 60_000;

/** Starts a process that works on a session. */
export function start(/** @type {Task} */ task) {
  const child = spawn(process.execPath, [program, JSON.stringify(task)], {
    stdio: ['pipe', 'pipe', 'pipe'],
    env: cleanEnvironment(),
  });
  const timer = setTimeout(() => child.kill('SIGKILL'), PATIENCE_MS);
  const lines = createInterface({ input: child.stdout });
  /** @type {string[]} */
  const said = [];
  lines.on('line', (line) => said.push(line));
  let errors = '';
  child.stderr.setEncoding('utf8').on('data', (text) => (errors += text));
  const ended = once(child, 'close').then(([code]) => {
    clearTimeout(timer);
    return { code: /** @type {number | null} */ (code), errors };
  });
  /** True when it says so, false when it ends before. */
  const says = (/** @type {string} */ begin) =>
    new Promise((/** @type {(heard: boolean) => void} */ resolve) => {
      if (said.some((line) => line.startsWith(begin))) resolve(true);
      lines.on('line', (line) => line.startsWith(begin) && resolve(true));
      void ended.then(() => resolve(said.some((line) => line.startsWith(begin))));
    });
  return { child, says, ended };
}

/**
 * @param {Site} site
 * @param {string} sessionId
 * @param {readonly Kill[]} kills One process each; one more brings the session to its end.
 * @param {Baseline | undefined} baseline None for the session that becomes it.
 * @param {number} seed
 * @returns {Promise<Outcome & { evidence: Baseline }>}
 */
export async function trial(site, sessionId, kills, baseline, seed) {
  const { store, folder } = site;
  const [ledger, acks] = ['ledger', 'acks'].map((name) => path.join(folder, `${sessionId}.${name}`));
  /** @type {Task} */
  const task = {
    store: addressFor(site.address, sessionId),
    sessionId,
    ledger: ledger ?? '',
    acks: acks ?? '',
    seed,
    ...(site.saboteur && { saboteur: site.saboteur }),
    ...(site.trouble && { trouble: site.trouble }),
  };
  /** @type {Snapshot[]} */
  const snapshots = [];
  /** @type {Violation[]} */
  const violations = [];
  /** @type {string[]} */
  const done = [];
  const look = async (effects = readLines(task.ledger).length) =>
    snapshots.push({ entries: [...(await store.read(sessionId, 1))], effects });
  const finish = async () => {
    const { code, errors } = await start({ ...task, seed: seed + 99 }).ended;
    if (code !== 0)
      violations.push({
        kind: 'lost',
        what: `the session could not be brought to its end: exit ${code} ${errors}`,
      });
  };

  await prepare(store, sessionId);
  for (const [i, kill] of kills.entries()) {
    const own = { ...task, seed: seed + i };
    if (kill.type === 'revived') {
      const release = path.join(folder, `${sessionId}.release${i}`);
      const zombie = start({ ...own, haltAt: kill, release });
      if (!(await zombie.says('at '))) break;
      await look();
      await finish();
      // The journal stays as it is now. What it was doing when it halted, it may still do: nobody can stop that.
      await look(Number.POSITIVE_INFINITY);
      fs.writeFileSync(release, '');
      const { code, errors } = await zombie.ended;
      done.push(`revived ${kill.phase}`);
      if (code !== 3 && code !== 0)
        violations.push({ kind: 'doubled', what: `a process that came back ended with ${code}: ${errors}` });
      continue;
    }
    const victim = start(kill.type === 'phase' ? { ...own, haltAt: kill } : own);
    const halted = await victim.says(kill.type === 'phase' ? 'at ' : 'ready');
    if (halted && kill.type === 'random') await new Promise((resolve) => setTimeout(resolve, kill.afterMs));
    victim.child.kill('SIGKILL');
    const { code, errors } = await victim.ended;
    // It came to its end before the kill.
    if (code === 0) break;
    if (code !== null || !halted) {
      const how = code === null ? `did nothing for ${PATIENCE_MS} ms` : `failed by itself: exit ${code}`;
      violations.push({ kind: 'lost', what: `a process ${how} ${errors}` });
      break;
    }
    done.push(kill.type === 'phase' ? kill.phase : 'random');
    await untilGone(site.address, sessionId);
    await look();
  }
  await finish();

  const entries = await store.read(sessionId, 1);
  /** @type {Awaited<ReturnType<typeof historyOf>>} */
  let messages = [];
  try {
    messages = await historyOf(store, sessionId);
  } catch (error) {
    violations.push({ kind: 'doubled', what: `the journal cannot be read: ${error}` });
  }
  const evidence = { entries, messages };
  const found = verify(
    {
      ...evidence,
      ledger: readLines(task.ledger),
      acks: readLines(task.acks),
      snapshots,
      failing: site.trouble !== undefined,
    },
    baseline ?? evidence,
  );
  return { kills: done, violations: [...violations, ...found.violations], inDoubt: found.inDoubt, evidence };
}
