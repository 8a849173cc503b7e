// An empty project with the packed command line installed in it, and everything it depends on. Needs no network: the
// packages of others are packed from the repository's own node_modules.

import { existsSync, readdirSync, readFileSync, realpathSync } from 'node:fs';
import { join } from 'node:path';
import { build } from './build.mjs';
import { emptyProject } from './packed-project.mjs';
import { root } from './repository.mjs';
import { mustRun } from './run-command.mjs';

const OWN = ['allium', '@allium/config', '@allium/cli'];

/** @returns {Promise<import('./packed-project.mjs').EmptyProject & { program: string }>} `program` is what node runs. */
export async function packedCli() {
  await build();
  const project = emptyProject();
  try {
    const folders = withDependencies(OWN).map((name) => realpathSync(join(root, 'node_modules', name)));
    const pack = ['pack', '--ignore-scripts', '--pack-destination', project.folder, '--loglevel=error'];
    await mustRun('npm', [...pack, ...folders], { cwd: project.folder });
    const tarballs = readdirSync(project.folder).filter((file) => file.endsWith('.tgz'));
    const flags = [
      '--offline',
      '--ignore-scripts',
      '--no-audit',
      '--no-fund',
      '--no-package-lock',
      '--loglevel=error',
    ];
    await mustRun('npm', ['install', ...flags, ...tarballs.map((file) => `./${file}`)], {
      cwd: project.folder,
    });
    return { ...project, program: join(project.folder, 'node_modules/@allium/cli/bin/allium.mjs') };
  } catch (error) {
    project.remove();
    throw error;
  }
}

/** The packages, and those they cannot do without, all the way down. */
function withDependencies(/** @type {readonly string[]} */ names) {
  const all = new Set(names);
  for (const name of all) {
    const manifest = join(root, 'node_modules', name, 'package.json');
    if (!existsSync(manifest)) throw new Error(`${name} is not installed in the repository. Run: npm ci`);
    const { dependencies = {} } = JSON.parse(readFileSync(manifest, 'utf8'));
    for (const dependency of Object.keys(dependencies)) all.add(dependency);
  }
  return [...all];
}
