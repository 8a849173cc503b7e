/** The command line: reads the arguments, runs one command, and answers with an exit code. */
import { type Command, CommanderError } from 'commander';
import { COMMANDS, type LoadCommand } from './commands/index.js';
import { exitCodeOfEnding } from './ending.js';
import { codeOf, describeError, EXIT, exitCodeOfError } from './outcome.js';
import { makeParser } from './parser.js';
import { programName, type Shell, tellStack, writeAConfig } from './shell.js';
import { type Io, note, printJson } from './terminal/io.js';
import { styleFor } from './terminal/style.js';

/** Runs the command that `args` name (without node and script). Never throws, never ends the process. */
export async function main(args: readonly string[], given: Io): Promise<number> {
  const io = args.includes('--no-color') ? withoutColour(given) : given;
  const shell: Shell = {
    io,
    exitCode: EXIT.done,
    configFile: undefined,
    json: false,
    redact: (text) => text,
    redactError: (text) => text,
  };
  const program = await makeParser(shell, commandsFor(args));
  try {
    await program.parseAsync([...args], { from: 'user' });
    return exitCodeOfEnding(io.signal) ?? shell.exitCode;
  } catch (error) {
    // Commander has shown the requested help, or has said what is wrong; a program reads that on stdout.
    const helped = error instanceof CommanderError && error.exitCode === 0;
    if (helped) return EXIT.done;
    if (io.signal.aborted && isAbort(error)) return exitCodeOfEnding(io.signal) ?? EXIT.aborted;
    const advice = adviceFor(shell, error, program);
    const text = shell.redactError(describeError(error)) + advice;
    if (shell.json || args.includes('--json'))
      printJson(io, { type: 'error', code: codeOf(error), message: text }, 0);
    if (error instanceof CommanderError) {
      if (advice) note(io, advice.trim());
      return EXIT.usage;
    }
    note(io, `${io.err.red('error')}: ${text}`);
    tellStack(shell, error);
    return exitCodeOfEnding(io.signal) ?? exitCodeOfError(error);
  }
}

/** They know that they pressed Ctrl-C. */
function isAbort(error: unknown): boolean {
  return error instanceof Error && error.name === 'AbortError';
}

/** What a person at the command line does next, if the error is written for programs. */
function adviceFor({ io }: Shell, error: unknown, program: Command): string {
  if (codeOf(error) === 'CONFIG_NOT_FOUND') return `\n${writeAConfig(io)}`;
  if (codeOf(error) !== 'commander.unknownCommand') return '';
  // `allium resume` is `allium sessions resume`.
  const [word] = program.args;
  const above = program.commands.find(({ commands }) => commands.some((one) => one.name() === word));
  return above ? `\nThat is: ${programName(io)} ${above.name()} ${word}` : '';
}

/** The command that is named first. If it isn't one of ours, all of them: for the help, and to suggest one. */
function commandsFor(args: readonly string[]): readonly LoadCommand[] {
  const first = args.find((arg, i) => !arg.startsWith('-') && !['-c', '--config'].includes(args[i - 1]!));
  const named = Object.hasOwn(COMMANDS, first ?? '') ? COMMANDS[first!] : undefined;
  return named ? [named] : Object.values(COMMANDS);
}

function withoutColour(io: Io): Io {
  const env = { ...io.env, NO_COLOR: '1' };
  return { ...io, env, out: styleFor(io.stdout, env), err: styleFor(io.stderr, env) };
}
