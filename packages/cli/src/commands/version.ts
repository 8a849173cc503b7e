/** `allium version`: what is installed. */
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import type { AddCommand } from '../shell.js';
import { print, printJson } from '../terminal/io.js';

export const addVersion: AddCommand = (program, shell) => {
  program
    .version(versionOf('@allium/cli'), '-V, --version', 'print the version of the command line')
    .command('version')
    .summary('print the versions of everything involved')
    .option('--json', 'print them as JSON')
    .action((options: { json?: boolean }) => {
      const versions = installedVersions();
      if (options.json) printJson(shell.io, versions);
      else for (const [name, version] of Object.entries(versions)) print(shell.io, `${name} ${version}`);
    });
};

export function installedVersions(): Record<string, string> {
  const packages = ['@allium/cli', '@allium/config', 'allium'];
  return {
    ...Object.fromEntries(packages.map((name) => [name, versionOf(name)])),
    node: process.versions.node,
  };
}

function versionOf(name: string): string {
  const url =
    name === '@allium/cli'
      ? new URL('../../package.json', import.meta.url)
      : createRequire(import.meta.url).resolve(`${name}/package.json`);
  return JSON.parse(readFileSync(url, 'utf8')).version;
}
