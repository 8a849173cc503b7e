/** `allium plugin`: make one, check one, see which are installed. */
import { existsSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join, resolve } from 'node:path';
import { codeOf, EXIT, UsageError } from '../outcome.js';
import { type AddCommand, quoted, type Shell } from '../shell.js';
import { note, print, printJson } from '../terminal/io.js';
import { table } from '../terminal/text.js';

export const addPlugin: AddCommand = (program, shell) => {
  const plugin = program
    .command('plugin')
    .summary('make, check and list plugins')
    .description(
      'Plugins are npm packages called allium-mw-<name>, allium-model-<name> or allium-store-<name>.',
    );
  plugin
    .command('new')
    .summary('write a middleware plugin, with tests that already run the laws')
    .argument('<name>', 'without the prefix: `foo` makes the package allium-mw-foo')
    .option('-d, --dir <folder>', 'where to put its folder', '.')
    .option('--json', 'print what was written as JSON')
    .action((name: string, options: { dir: string; json?: boolean }) => make(shell, name, options));
  plugin
    .command('check')
    .summary('check a plugin')
    .argument('[folder]', 'of the package', '.')
    .option('--json', 'print the report as JSON')
    .action((folder: string, options: { json?: boolean }) => check(shell, folder, options.json === true));
  plugin
    .command('list')
    .summary('the plugins that are installed here')
    .option('--json', 'print them as JSON')
    .action((options: { json?: boolean }) => list(shell, options.json === true));
};

async function make(
  { io }: Shell,
  name: string,
  { dir, json }: { dir: string; json?: boolean },
): Promise<void> {
  const { scaffoldPlugin } = await import('@allium/config');
  const { findRegistered } = await import('allium/registry');
  const made = await scaffoldPlugin(resolve(io.cwd, dir), name).catch((error: unknown) => {
    // A bad name, or a folder that exists: the config isn't to blame.
    throw codeOf(error) === 'INVALID_OPTION' ? new UsageError((error as Error).message) : error;
  });
  const plain = made.package.replace(/^allium-mw-/, '');
  if (findRegistered('middleware', plain))
    note(
      io,
      io.err.yellow(
        `warning: "${plain}" is in the box already, and a config finds that one first. Choose another name, or name the package in full: "${made.package}".`,
      ),
    );
  for (const file of made.files) note(io, io.err.dim(`  wrote ${file}`));
  if (json) printJson(io, made);
  else print(io, made.folder);
  const steps = hasAllium(made.folder) ? 'npm test' : 'npm install && npm test';
  note(io, `${made.package} is ready. Next:\n  cd ${quoted(made.folder)} && ${steps}`);
}

/** Is `allium` installed in a folder above, so that the tests can run at once? */
function hasAllium(folder: string): boolean {
  const folders = createRequire(join(folder, 'package.json')).resolve.paths('allium') ?? [];
  return folders.some((one) => existsSync(join(one, 'allium')));
}

async function check(shell: Shell, folder: string, json: boolean): Promise<void> {
  const { io } = shell;
  const { checkPlugin } = await import('@allium/config');
  const report = await checkPlugin(resolve(io.cwd, folder));
  if (!report.ok) shell.exitCode = EXIT.failed;
  if (json) return printJson(io, report);
  for (const { name, ok, message } of report.checks)
    print(io, `${ok ? io.out.green('✓') : io.out.red('✗')} ${name}: ${message}`);
}

async function list({ io }: Shell, json: boolean): Promise<void> {
  const { installedPlugins } = await import('@allium/config');
  const plugins = await installedPlugins(io.cwd);
  if (json) return printJson(io, plugins);
  if (plugins.length === 0) return note(io, 'No plugins are installed here.');
  const rows = plugins.map((one) => [one.name, one.type, `${one.package}@${one.version}`]);
  for (const line of table([['NAME', 'TYPE', 'PACKAGE'], ...rows])) print(io, line);
}
