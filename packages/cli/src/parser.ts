/** What the command line understands: its commands with their options, and the help. */
import { Command } from 'commander';
import { COMMANDS, type LoadCommand } from './commands/index.js';
import { exitCodes } from './outcome.js';
import type { Shell } from './shell.js';
import { write } from './terminal/io.js';
import { ownVersion } from './versions.js';

export async function makeParser(
  shell: Shell,
  commands: readonly LoadCommand[] = Object.values(COMMANDS),
): Promise<Command> {
  const { io } = shell;
  const program = new Command('allium')
    .description('Runs agents that a config file describes (allium.toml), and shows what they did.')
    .usage('<command> [options]')
    .option('-c, --config <file>', 'use this config file instead of searching upward for allium.toml')
    .option('--no-color', 'no colours; the same as NO_COLOR=1')
    .version(ownVersion(), '-V, --version', 'print the version of the command line')
    .helpCommand('help [command]', 'show how a command is used')
    .configureOutput({
      writeOut: (text) => write(io, 'stdout', text),
      writeErr: (text) => write(io, 'stderr', text),
      getOutHelpWidth: () => io.stdout.columns ?? 100,
      getErrHelpWidth: () => io.stderr.columns ?? 100,
      getOutHasColors: () => false,
      getErrHasColors: () => false,
    })
    .configureHelp({ showGlobalOptions: true })
    .showSuggestionAfterError()
    .showHelpAfterError('(add --help for how it is used)')
    .exitOverride()
    .hook('preAction', (_, command) => {
      const { config, json } = command.optsWithGlobals() as { config?: string; json?: boolean };
      shell.configFile = config;
      shell.json = json === true;
    });
  for (const add of await Promise.all(commands.map((load) => load()))) add(program, shell);
  program.addHelpText('after', `\n${START}\n\n${exitCodes()}`);
  return program;
}

const START = `First steps:
  allium init                      write an allium.toml that works at once, without a key
  allium run "What can you do?"    ask one thing; the answer goes to stdout
  allium chat                      talk
  allium doctor                    find out what is missing`;
