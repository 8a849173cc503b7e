// An empty project with the packed command line installed in it, and everything it depends on. Needs no network: the
// packages of others are packed from the repository's own node_modules.

import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { packedProject } from './packed-project.mjs';
import { root } from './repository.mjs';

/** @returns {Promise<import('./packed-project.mjs').EmptyProject & { program: string }>} `program` is what node runs. */
export async function packedCli() {
  const own = new Map([
    ['@allium/config', 'packages/config'],
    ['@allium/cli', 'packages/cli'],
  ]);
  const also = withDependencies([...own.keys()]).map((name) => own.get(name) ?? `node_modules/${name}`);
  const project = await packedProject({ also });
  return { ...project, program: join(project.folder, 'node_modules/@allium/cli/bin/allium.mjs') };
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
