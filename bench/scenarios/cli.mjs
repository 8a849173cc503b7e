/** How long the command line takes to start, beside Node alone. */
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { atMost, reported } from '../lib/checks.mjs';
import { medianOfMany } from '../lib/stats.mjs';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const PROGRAM = join(ROOT, 'packages/cli/bin/allium.mjs');
const ROUNDS = { full: 61, quick: 11 };

const CASES = {
  'node -e 0': ['-e', '0'],
  'allium --version': [PROGRAM, '--version'],
  'allium --help': [PROGRAM, '--help'],
  'allium run': [PROGRAM, 'run', 'hi'],
};
const [BARE] = Object.keys(CASES);

// Node 20 reads the certificates that this variable names whenever it starts, which can take longer than the rest.
const { NODE_EXTRA_CA_CERTS: extraCertificates, ...plainEnv } = process.env;

export async function run({ settings, progress }) {
  const rounds = settings.quick ? ROUNDS.quick : ROUNDS.full;
  const names = Object.keys(CASES);
  const taken = new Map(names.map((name) => [name, []]));
  const plain = new Map([BARE, 'allium run'].map((name) => [name, []]));
  const folder = project();
  try {
    // The first start of each reads files that are not in memory yet.
    const failed = new Set(names.filter((name) => !start(name, folder).ok));
    for (let round = 0; round < rounds; round++) {
      progress(`cli, ${round + 1} of ${rounds}`);
      // Every other round goes backwards, so that nothing always follows the same neighbour.
      for (const name of round % 2 === 0 ? names : [...names].reverse())
        if (!failed.has(name)) taken.get(name).push(start(name, folder).ms);
      if (extraCertificates !== undefined)
        for (const [name, times] of plain) times.push(start(name, folder, plainEnv).ms);
    }
    const results = names.map((label) =>
      failed.has(label)
        ? { label, error: 'ended with an error' }
        : { label, cells: new Map([['start', medianOfMany(taken.get(label))]]) },
    );
    const against = (name, times = taken) =>
      failed.has(name)
        ? undefined
        : medianOfMany(times.get(name).map((ms, round) => ms / times.get(BARE)[round]));
    return {
      title: 'Command line',
      about: `Wall time of a fresh process, ${rounds} times each, in turns. \`allium run\` has the config that \`allium init --yes\` writes: the offline model, a tool from a file, sessions in SQLite, \`max-turns\` and \`retry\`. Ratios are medians of those within a round; spreads are the 95 % interval of the median.`,
      sections: [{ results, unit: 'ms' }],
      checks: [
        atMost('`allium --version`, to `node -e 0`', against('allium --version'), 1.5, '×'),
        atMost('`allium run`, to `node -e 0`', against('allium run'), 2.5, '×'),
        ...(extraCertificates === undefined
          ? []
          : [
              reported(
                '`allium run`, to `node -e 0`, both without NODE_EXTRA_CA_CERTS',
                against('allium run', plain),
                '×',
              ),
            ]),
      ],
    };
  } finally {
    rmSync(folder, { recursive: true });
  }
}

/** A folder with the config that `allium init` writes. */
function project() {
  const folder = mkdtempSync(join(tmpdir(), 'allium-bench-cli-'));
  symlinkSync(join(ROOT, 'node_modules'), join(folder, 'node_modules'));
  writeFileSync(join(folder, 'package.json'), '{ "private": true, "type": "module" }\n');
  spawnSync(process.execPath, [PROGRAM, 'init', '--yes'], { cwd: folder, stdio: 'ignore' });
  return folder;
}

function start(name, cwd, env = process.env) {
  const before = performance.now();
  const { status } = spawnSync(process.execPath, CASES[name], { cwd, env, stdio: 'ignore' });
  return { ms: performance.now() - before, ok: status === 0 };
}
