/** What importing a package adds to the start of a process. */
import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { atMost } from '../lib/checks.mjs';
import { byRound, summary } from '../lib/stats.mjs';

const BENCH = fileURLToPath(new URL('..', import.meta.url));
const REPEATS = 15;
const PEERS = ['@mariozechner/pi-agent-core', 'ai', 'langchain'];

export async function run({ settings, progress }) {
  const names = ['bare node', 'allium', ...(settings.quick ? [] : PEERS)];
  const taken = new Map(names.map((name) => [name, []]));
  const failed = new Map();
  for (let repeat = 0; repeat < REPEATS; repeat++) {
    progress(`import, ${repeat + 1} of ${REPEATS}`);
    for (const name of names) {
      if (failed.has(name)) continue;
      const { ms, ok } = startNode(name === 'bare node' ? '' : `await import('${name}')`);
      if (ok) taken.get(name).push(ms);
      else failed.set(name, 'cannot be imported');
    }
  }
  const results = names.map((label) =>
    failed.has(label)
      ? { label, error: failed.get(label) }
      : { label, cells: new Map([['start', summary(taken.get(label))]]) },
  );
  const [bare, own] = results.map(({ cells }) => cells?.get('start'));
  const added = own && byRound(own, bare, (a, b) => a - b);
  return {
    title: 'Import',
    about: `Wall time of a fresh process that imports the package and ends; ${REPEATS} processes each, in turn.${settings.quick ? ' Peers are left out of a quick run.' : ''}`,
    sections: [{ results, unit: 'ms', baseline: 'bare node' }],
    checks: [atMost('importing allium adds to bare node', added, 30, 'ms')],
  };
}

function startNode(code) {
  const start = performance.now();
  const { status } = spawnSync(process.execPath, ['--input-type=module', '-e', code], {
    cwd: BENCH,
    stdio: 'ignore',
  });
  return { ms: performance.now() - start, ok: status === 0 };
}
