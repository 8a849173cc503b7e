/** What importing a package adds to the start of a process. */
import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { atMost } from '../lib/checks.mjs';
import { medianOfMany } from '../lib/stats.mjs';

const BENCH = fileURLToPath(new URL('..', import.meta.url));
const PAIRS = { full: 61, quick: 15 };
/** Peers take long to load and are there for comparison: every so many pairs. */
const PEER_EVERY = 6;
const PEERS = ['@mariozechner/pi-agent-core', 'ai', 'langchain'];
const BARE = 'bare node';

export async function run({ settings, progress }) {
  const pairs = settings.quick ? PAIRS.quick : PAIRS.full;
  const names = [BARE, 'allium', ...(settings.quick ? [] : PEERS)];
  const taken = new Map(names.map((name) => [name, []]));
  const failed = new Map();
  // The first start of each reads files that are not in memory yet.
  for (const name of names) if (!startNode(name).ok) failed.set(name, 'cannot be imported');
  for (let pair = 0; pair < pairs; pair++) {
    progress(`import, ${pair + 1} of ${pairs}`);
    // Which of the two starts first alternates: the second may find a warmer machine, or a busier one.
    const two = pair % 2 === 0 ? [BARE, 'allium'] : ['allium', BARE];
    for (const name of [...two, ...(pair % PEER_EVERY === 0 ? names.slice(2) : [])])
      if (!failed.has(name)) taken.get(name).push(startNode(name).ms);
  }
  const results = names.map((label) =>
    failed.has(label)
      ? { label, error: failed.get(label) }
      : { label, cells: new Map([['start', medianOfMany(taken.get(label))]]) },
  );
  const own = taken.get('allium');
  const added = failed.has('allium')
    ? undefined
    : medianOfMany(own.map((ms, pair) => ms - taken.get(BARE)[pair]));
  return {
    title: 'Import',
    about: `Wall time of a fresh process that imports the package and ends. ${pairs} pairs of bare Node and allium, started right after each other; what the import adds is the median of the differences of the pairs. Spreads are the 95 % interval of the median.${settings.quick ? ' Peers are left out of a quick run.' : ''}`,
    sections: [{ results, unit: 'ms' }],
    checks: [atMost('importing allium adds to bare node', added, 30, 'ms')],
  };
}

function startNode(name) {
  const code = name === BARE ? '' : `await import('${name}')`;
  const start = performance.now();
  const { status } = spawnSync(process.execPath, ['--input-type=module', '-e', code], {
    cwd: BENCH,
    stdio: 'ignore',
  });
  return { ms: performance.now() - start, ok: status === 0 };
}
