// The program as a whole: its help, its table of commands, and the page that describes them.

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { PassThrough } from 'node:stream';
import { AlliumError, RunError } from 'allium';
import type { Command } from 'commander';
import { describe, expect, it } from 'vitest';
import { root } from '../../../scripts/repository.mjs';
import { describeError, EXIT, EXIT_CODES, exitCodeOf, exitCodeOfError, UsageError } from './outcome.js';
import { makeParser } from './parser.js';
import { main } from './program.js';
import { makeIo } from './terminal/io.js';
import { ownVersion } from './versions.js';

function testIo({
  stdin = new PassThrough().end(),
  signal,
}: {
  stdin?: PassThrough;
  signal?: AbortSignal;
} = {}) {
  const [stdout, stderr] = [new PassThrough(), new PassThrough()];
  const text = (stream: PassThrough): string => stream.read()?.toString() ?? '';
  const io = makeIo({ stdin, stdout, stderr, env: {}, cwd: root, ...(signal && { signal }) });
  return { io, out: () => text(stdout), err: () => text(stderr) };
}

async function run(...args: string[]) {
  const { io, out, err } = testIo();
  const code = await main(args, io);
  return { code, stdout: out(), stderr: err() };
}

const page = readFileSync(join(root, 'docs/guide/command-line.md'), 'utf8');
const program = await makeParser({
  io: testIo().io,
  exitCode: 0,
  configFile: undefined,
  json: false,
  redact: (t) => t,
  redactError: (t) => t,
});

/** The commands that do something, and not only have others below them. */
const leaves = program.commands.flatMap((command) =>
  command.commands.length === 0
    ? [{ path: command.name(), command }]
    : command.commands.map((sub) => ({ path: `${command.name()} ${sub.name()}`, command: sub })),
);

describe('help', () => {
  it('goes to stdout with 0 when it is asked for, and to stderr with 2 when there is no command', async () => {
    const asked = await run('--help');
    expect(asked).toMatchObject({ code: 0, stderr: '' });
    expect(asked.stdout).toContain('First steps:');
    const none = await run();
    expect(none).toMatchObject({ code: 2, stdout: '' });
    expect(none.stderr).toContain('First steps:');
  });

  it.each([
    [['-c', 'run', 'trace', '--help'], 'Usage: allium trace'],
    [['--no-color', 'trace', '--help'], 'Usage: allium trace'],
    [['help', 'trace'], 'Usage: allium trace'],
    [['run', '--version'], ownVersion()],
  ])('finds the command in %j', async (args, shown) => {
    expect((await run(...args)).stdout).toContain(shown);
  });

  it('leaves standard input alone: for Node, a look at it opens it', async () => {
    const { io, out } = testIo();
    const opened = (): never => {
      throw new Error('opened');
    };
    const unread = Object.defineProperty({ ...io }, 'stdin', { get: opened });
    expect(await main(['--help'], makeIo(unread))).toBe(0);
    expect(out()).toContain('First steps:');
  });

  it('suggests the nearest command for an unknown name', async () => {
    expect((await run('tracee', 'run')).stderr).toContain('Did you mean trace?');
  });

  it.each(program.commands.map((command) => command.name()))('%s says what it does', async (name) => {
    const command = program.commands.find((one) => one.name() === name)!;
    expect(command.summary()).not.toBe('');
    const { code, stdout } = await run(name, '--help');
    expect(code).toBe(0);
    expect(stdout).toContain(`Usage: allium ${name}`);
    for (const sub of command.commands) expect(sub.summary(), `${name} ${sub.name()}`).not.toBe('');
  });

  it('says where a subcommand belongs', async () => {
    const { code, stderr } = await run('resume', 'show');
    expect(code).toBe(EXIT.usage);
    expect(stderr).toContain('That is: allium sessions resume\n');
    expect((await run('nonsense', 'show')).stderr).not.toContain('That is');
  });

  it('offers --json with every command that prints something, except chat', () => {
    const silent = ['init', 'chat', 'sessions delete'];
    const without = leaves.filter(({ command }) => !command.options.some(({ long }) => long === '--json'));
    expect(without.map(({ path }) => path)).toEqual(silent);
  });

  it.each(EXIT_CODES)('lists exit code %i', async (code, means) => {
    expect((await run('run', '--help')).stdout).toContain(`  ${String(code).padEnd(4)} ${means}`);
  });
});

describe('docs/guide/command-line.md', () => {
  it('names every command, and none that does not exist', () => {
    const table = page.slice(page.indexOf('| command |'), page.indexOf('Every command has'));
    const named = [...table.matchAll(/^\| `allium ([a-z]+)/gm)].map(([, name]) => name);
    expect(named).toEqual(program.commands.map((command) => command.name()));
    for (const command of program.commands)
      for (const sub of command.commands) expect(table).toMatch(new RegExp(`\`.*\\b${sub.name()}\``));
  });

  it('has every option beside its command, and none that does not exist', () => {
    const table = page.slice(page.indexOf('### Options'), page.indexOf('## Run'));
    const named = Object.fromEntries(
      [...table.matchAll(/^\| (?:`allium )?(.*?)`? \| (.*) \|$/gm)]
        .slice(1)
        .map(([, path, text]) => [path, [...text!.matchAll(/`(-[^`]*)`/g)].map(([, flags]) => flags)]),
    );
    const flagsOf = ({ options }: Pick<Command, 'options'>) => options.map(({ flags }) => flags);
    const real = leaves.map(({ path, command }) => [path, flagsOf(command)]);
    expect(named).toEqual(Object.fromEntries([['every command', flagsOf(program)], ...real]));
    // Options of a command that only has others below it would stand in no row.
    for (const { commands, options } of program.commands)
      if (commands.length > 0) expect(options).toEqual([]);
  });

  it('has the exit codes', () => {
    const rows = EXIT_CODES.map(([code, means]) => `| ${code} | ${means} |`).join('\n');
    expect(page).toContain(rows);
  });
});

describe('Ctrl-C while stdin is awaited', () => {
  it.each(['before', 'after'])('ends with 130 and no error, %s it is read', async (when) => {
    const abort = new AbortController();
    const stdin = new PassThrough();
    stdin.write('half a ');
    const { io, out, err } = testIo({ stdin, signal: abort.signal });
    if (when === 'before') abort.abort();
    const ended = main(['run', '--json', 'Read this:', '-'], io);
    await new Promise(setImmediate);
    abort.abort();
    expect(await ended).toBe(EXIT.aborted);
    expect(out() + err()).toBe('');
  });
});

describe('outcomes', () => {
  it('have a code each', () => {
    const statuses = ['done', 'stopped', 'suspended', 'error', 'aborted'] as const;
    expect(statuses.map(exitCodeOf)).toEqual([0, 4, 5, 1, 130]);
    expect(EXIT_CODES.map(([code]) => code)).toEqual(Object.values(EXIT));
  });

  it('of errors depend on the kind of error', () => {
    const result = { status: 'aborted' } as never;
    expect(exitCodeOfError(new RunError('ABORTED', 'aborted', result, undefined))).toBe(130);
    expect(exitCodeOfError(new UsageError('what?'))).toBe(2);
    expect(exitCodeOfError(new AlliumError('UNKNOWN_NAME', 'no such name'))).toBe(3);
    expect(exitCodeOfError(Object.assign(new Error('elsewhere'), { name: 'ConfigError' }))).toBe(3);
    expect(exitCodeOfError(new Error('other'))).toBe(1);
    expect(exitCodeOfError('text')).toBe(1);
  });

  it('add the causes of an error that say something new', () => {
    const deep = new Error('The model failed: no route', {
      cause: new Error('no route', { cause: new Error('cable') }),
    });
    expect(describeError(deep)).toBe('The model failed: no route\n  because: cable');
    expect(describeError('text')).toBe('text');
  });
});
