/** What the command line understands: its commands with their options, and the help. */
import { Command } from 'commander';
import { COMMANDS, type LoadCommand } from './commands/index.js';
import { exitCodes, UsageError } from './outcome.js';
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
      refuseEmpty(command);
    });
  for (const add of await Promise.all(commands.map((load) => load()))) add(program, shell);
  nameOptions(program);
  program.addHelpText('after', `\n${START}\n\n${exitCodes()}`);
  return program;
}

/** Words that may be empty. All others are names, and an empty one is mostly a variable that isn't set. */
const MAY_BE_EMPTY = new Set(['prompt', 'edit', 'reason', 'reject', 'respond', 'tenant']);

function refuseEmpty(command: Command): void {
  const check = (name: string, shown: string, value: unknown): void => {
    if (!MAY_BE_EMPTY.has(name) && [value].flat().includes(''))
      throw new UsageError(`${shown} is empty. Is a variable not set?`);
  };
  for (const [i, argument] of command.registeredArguments.entries())
    check(argument.name(), `<${argument.name()}>`, command.processedArgs[i]);
  for (let at: Command | null = command; at; at = at.parent)
    for (const option of at.options)
      check(option.name(), option.flags, at.getOptionValue(option.attributeName()));
}

/** A value that makes no sense is reported with the name of its option. */
function nameOptions(command: Command): void {
  for (const option of command.options) {
    const parse = option.parseArg;
    if (!parse) continue;
    option.argParser((text, before) => {
      try {
        return parse(text, before);
      } catch (error) {
        throw error instanceof UsageError ? new UsageError(`${option.long}: ${error.message}`) : error;
      }
    });
  }
  for (const one of command.commands) nameOptions(one);
}

const START = `First steps:
  allium init                      write an allium.toml that works at once, without a key
  allium run "What can you do?"    ask one thing; the answer goes to stdout
  allium chat                      talk
  allium doctor                    find out what is missing`;
