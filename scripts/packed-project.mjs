// An empty project, outside the repository, with the packed `allium` installed in it: what a user gets, not what we have.

import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { build } from './build.mjs';
import { oncePerRun, openRun } from './once.mjs';
import { alliumFolder, root } from './repository.mjs';
import { mustRun } from './run-command.mjs';

/**
 * @typedef {object} EmptyProject
 * @property {string} folder
 * @property {(name: string) => boolean} link Makes a package of the repository's node_modules importable; false when it has none.
 * @property {() => void} remove
 */

/** @returns {EmptyProject} A project with nothing in it but `"type": "module"`. */
export function emptyProject() {
  // The real path, because the compiler and node report real paths and so must we.
  const folder = realpathSync(mkdtempSync(join(tmpdir(), 'allium-project-')));
  writeFileSync(join(folder, 'package.json'), '{ "name": "empty", "private": true, "type": "module" }\n');
  return {
    folder,
    link(name) {
      const from = join(root, 'node_modules', name);
      const to = join(folder, 'node_modules', name);
      if (existsSync(to)) return true;
      if (!existsSync(from)) return false;
      mkdirSync(dirname(to), { recursive: true });
      symlinkSync(realpathSync(from), to, 'junction');
      return true;
    },
    remove() {
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

/** Where the packages are that are packed; those of others are packed from the repository's own node_modules. */
const FOLDERS = new Map([
  ['allium', alliumFolder],
  ['@allium/config', join(root, 'packages/config')],
  ['@allium/cli', join(root, 'packages/cli')],
  ['allium-mw-word-filter', join(root, 'examples/plugin')],
]);

/**
 * A project with the packed `allium` installed, and the packages that are named beside it, with what they depend on.
 *
 * @param {readonly string[]} [also]
 * @returns {Promise<EmptyProject & { tarball: string }>} The tarball is that of `allium`. It lies beside those of all
 *   packages, as long as the run lasts.
 */
export async function packedProject(also = []) {
  // First, so that it does not lie in the folder of a run that ends in here.
  const project = emptyProject();
  const run = openRun();
  try {
    const installed = await oncePerRun('packed', installEverything);
    const names = ['allium', ...also];
    const from = join(installed.folder, 'node_modules');
    const to = join(project.folder, 'node_modules');
    // Only what was asked for: a package that needs more than it says does not find it.
    for (const name of withDependencies(names)) cpSync(join(from, name), join(to, name), { recursive: true });
    if (names.includes('@allium/cli'))
      cpSync(join(from, '.bin'), join(to, '.bin'), { recursive: true, verbatimSymlinks: true });
    const manifest = join(project.folder, 'package.json');
    const dependencies = Object.fromEntries(names.map((name) => [name, '*']));
    writeFileSync(manifest, JSON.stringify({ ...JSON.parse(readFileSync(manifest, 'utf8')), dependencies }));
    return { ...project, tarball: installed.tarball };
  } catch (error) {
    project.remove();
    throw error;
  } finally {
    run.close();
  }
}

/**
 * Builds and packs everything, and installs the tarballs. Needs no network: `--offline` makes npm say so if a package
 * needs one that is not among them.
 */
async function installEverything(/** @type {string} */ run) {
  await build();
  const folder = join(run, 'packed');
  mkdirSync(folder);
  writeFileSync(join(folder, 'package.json'), '{ "private": true }\n');
  const folders = withDependencies([...FOLDERS.keys()]).map(
    (name) => FOLDERS.get(name) ?? join(root, 'node_modules', name),
  );
  // From outside: a package says in `devEngines` with what it is developed, which is not with what it is installed.
  const pack = ['pack', ...folders, '--ignore-scripts', '--loglevel=error'];
  const { stdout } = await mustRun('npm', pack, { cwd: folder });
  const tarballs = stdout.split('\n').filter((line) => line.endsWith('.tgz'));
  if (tarballs.length !== folders.length)
    throw new Error(
      `\`npm pack\` made ${tarballs.length} tarballs of ${folders.length} packages:\n${stdout}`,
    );
  const flags = '--offline --ignore-scripts --no-audit --no-fund --no-package-lock --loglevel=error'.split(
    ' ',
  );
  await mustRun('npm', ['install', ...flags, ...tarballs.map((name) => `./${name}`)], { cwd: folder });
  return { folder, tarball: join(folder, tarballs[0] ?? '') };
}

/** The packages, and those they cannot do without, all the way down. */
function withDependencies(/** @type {readonly string[]} */ names) {
  const all = new Set(names);
  for (const name of all) {
    const manifest = join(FOLDERS.get(name) ?? join(root, 'node_modules', name), 'package.json');
    if (!existsSync(manifest)) throw new Error(`${name} is not installed in the repository. Run: npm ci`);
    const { dependencies = {} } = JSON.parse(readFileSync(manifest, 'utf8'));
    for (const dependency of Object.keys(dependencies)) all.add(dependency);
  }
  return [...all];
}
