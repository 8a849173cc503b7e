// An empty project, outside the repository, with the packed `allium` installed in it: what a user gets, not what we have.

import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { build } from './build.mjs';
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

/**
 * Builds and packs `allium`, and installs the tarball into an empty project. Needs no network: the package
 * has no dependencies, and `--offline` makes npm say so if that ever stops being true.
 *
 * @param {object} [options]
 * @param {readonly string[]} [options.also] Further folders to pack and install, from the root: `packages/config`. What
 *   those depend on has to be among them: `node_modules/smol-toml`.
 * @returns {Promise<EmptyProject & { tarball: string }>}
 */
export async function packedProject({ also = [] } = {}) {
  await build();
  const project = emptyProject();
  try {
    const folders = [alliumFolder, ...also.map((path) => join(root, path))];
    // From outside: a package says in `devEngines` with what it is developed, which is not with what it is installed.
    const pack = ['pack', ...folders, '--ignore-scripts', '--loglevel=error'];
    const { stdout } = await mustRun('npm', pack, { cwd: project.folder });
    const names = stdout.split('\n').filter((line) => line.endsWith('.tgz'));
    if (names.length !== folders.length)
      throw new Error(`\`npm pack\` made ${names.length} tarballs of ${folders.length} packages:\n${stdout}`);
    const flags = [
      '--offline',
      '--ignore-scripts',
      '--no-audit',
      '--no-fund',
      '--no-package-lock',
      '--loglevel=error',
    ];
    await mustRun('npm', ['install', ...flags, ...names.map((name) => `./${name}`)], { cwd: project.folder });
    return { ...project, tarball: join(project.folder, names[0] ?? '') };
  } catch (error) {
    project.remove();
    throw error;
  }
}
