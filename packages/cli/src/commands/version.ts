/** `allium version`: what is installed. */
import type { AddCommand } from '../shell.js';
import { print, printJson } from '../terminal/io.js';
import { installedVersions } from '../versions.js';

export const addVersion: AddCommand = (program, shell) => {
  program
    .command('version')
    .summary('print the versions of everything involved')
    .option('--json', 'print them as JSON')
    .action((options: { json?: boolean }) => {
      const versions = installedVersions();
      if (options.json) printJson(shell.io, versions);
      else for (const [name, version] of Object.entries(versions)) print(shell.io, `${name} ${version}`);
    });
};
