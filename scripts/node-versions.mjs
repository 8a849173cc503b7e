// Other versions of Node to test on, from npm packages that carry the binary. They are kept in a cache folder, away from
// the repository's own dependencies.

import { existsSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { root } from './repository.mjs';
import { mustRun } from './run-command.mjs';

/**
 * The program of a Node version: this one, one from the cache, or one that is installed now.
 *
 * @param {number} major
 * @returns {Promise<string | undefined>} Undefined where it cannot be had; a warning has said so.
 */
export async function nodeProgram(major) {
  if (process.versions.node.startsWith(`${major}.`)) return process.execPath;
  const windows = process.platform === 'win32';
  const name = `node-${windows ? 'win' : process.platform}-${process.arch}`;
  const folder = join(root, 'node_modules/.cache/allium-node', String(major));
  const program = join(folder, 'node_modules', name, 'bin', windows ? 'node.exe' : 'node');
  if (existsSync(program)) return program;
  try {
    mkdirSync(folder, { recursive: true });
    const flags = [
      '--no-save',
      '--no-audit',
      '--no-fund',
      '--ignore-scripts',
      '--loglevel=error',
      '--prefix',
      folder,
    ];
    await mustRun('npm', ['install', ...flags, `${name}@${major}`], { cwd: folder, timeout: 300_000 });
  } catch (error) {
    console.warn(
      `\n!!! NOT TESTED ON NODE ${major}: ${name}@${major} could not be installed.\n!!! ${error instanceof Error ? error.message : error}\n`,
    );
  }
  return existsSync(program) ? program : undefined;
}
