// Compiles every package with plain tsc, then removes outputs whose source is gone: what lies in dist is published.

import { existsSync, readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { root, tsc } from './repository.mjs';
import { runCommand } from './run-command.mjs';

/** Builds what has changed; throws with the compiler's messages when it does not compile. */
export async function build() {
  const packages = readdirSync(join(root, 'packages')).map((name) => join(root, 'packages', name));
  const projects = packages.filter((folder) => existsSync(join(folder, 'tsconfig.json')));
  const args = [tsc, '-b', ...projects, '--pretty', 'false'];
  const { code, stdout, stderr } = await runCommand(process.execPath, args, { cwd: root });
  if (code !== 0) throw new Error(`The build failed.\n${stdout}${stderr}`);
  for (const folder of projects) removeStale(join(folder, 'src'), join(folder, 'dist'));
}

function removeStale(/** @type {string} */ src, /** @type {string} */ dist) {
  for (const entry of existsSync(dist) ? readdirSync(dist, { withFileTypes: true }) : []) {
    const output = join(dist, entry.name);
    const source = join(src, entry.name.replace(/(\.d\.ts|\.js)(\.map)?$/, '.ts'));
    if (entry.isDirectory() && existsSync(source)) removeStale(source, output);
    else if (!existsSync(source) && entry.name !== '.tsbuildinfo') rmSync(output, { recursive: true });
  }
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href) {
  try {
    await build();
  } catch (error) {
    console.error(error instanceof Error ? error.message : error);
    process.exitCode = 1;
  }
}
