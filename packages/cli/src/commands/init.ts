/** `allium init`: writes a first agent. */
import fs, { existsSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join, relative, resolve } from 'node:path';
import {
  type Choices,
  DEFAULTS,
  filesFor,
  MIDDLEWARE,
  type MiddlewareName,
  packagesFor,
} from '../init/files.js';
import { EXIT, UsageError } from '../outcome.js';
import { type AddCommand, installLine, programName, quoted, type Shell } from '../shell.js';
import { type Io, note } from '../terminal/io.js';
import { askText, askWhether, askWhich, askWhichOf, begin, finish } from '../terminal/prompts.js';
import { installedVersions } from '../versions.js';

interface Options {
  readonly yes?: boolean;
  readonly force?: boolean;
  readonly model?: string;
}

export const addInit: AddCommand = (program, shell) => {
  program
    .command('init')
    .summary('write an allium.toml to begin with')
    .description(
      'Writes allium.toml, an example of a tool and, where there is none, a package.json. Asks what you want; --yes takes the defaults.',
    )
    .argument('[folder]', 'where to', '.')
    .option('-y, --yes', 'do not ask: the offline model, SQLite, retries, an example tool')
    .option(
      '-m, --model <name>',
      'the model: "offline", "anthropic/…", "openai/…", "openai-compatible/…@http://…"',
    )
    .option('-f, --force', 'overwrite existing files')
    .action((folder: string, options: Options) => init(shell, folder, options));
};

async function init(shell: Shell, folder: string, options: Options): Promise<void> {
  const { io } = shell;
  const dir = resolve(io.cwd, folder);
  if (!options.yes && !io.interactive)
    throw new UsageError('There is no terminal to ask in. Pass --yes to take the defaults.');
  await refuseTwins(dir, options.force === true);
  const defaults = {
    ...DEFAULTS,
    store: hasSqlite(dir) ? DEFAULTS.store : ('file' as const),
    ...(options.model && { model: options.model }),
  };
  const choices = options.yes ? defaults : await ask(io, defaults, options.model);
  if (!choices) {
    note(io, 'Nothing was written.');
    shell.exitCode = EXIT.aborted;
    return;
  }
  await write(shell, dir, choices, options.force === true);
}

/** A folder has one config: with two, every later command would fail. */
async function refuseTwins(dir: string, force: boolean): Promise<void> {
  const { CONFIG_FILES } = await import('@allium/config');
  for (const name of CONFIG_FILES.filter((one) => existsSync(join(dir, one)))) {
    const file = join(dir, name);
    if (name !== 'allium.toml')
      throw new UsageError(
        `${file} already configures this folder. Remove it first, or choose another folder.`,
      );
    if (!force) throw new UsageError(`${file} already exists. Pass --force to overwrite it.`);
  }
}

async function write(shell: Shell, dir: string, choices: Choices, force: boolean): Promise<void> {
  const { makeFolder, pathError } = await import('allium/kit');
  const { io } = shell;
  const program = programName(io);
  try {
    makeFolder(fs, dirname, dir);
    for (const [path, content] of filesFor(choices, installedVersions())) {
      const kept = existsSync(join(dir, path)) && (!force || path === 'package.json');
      if (!kept) writeFileSync(join(dir, path), content);
      note(io, io.err.dim(`  ${kept ? 'kept ' : 'wrote'} ${path}`));
    }
  } catch (error) {
    throw pathError('`allium init`', dir, error);
  }
  // If it is not in the project, a package manager would look for the program elsewhere and find another one.
  const own = program === 'allium' ? [] : ['@allium/cli'];
  const missing = ['allium', ...own, ...packagesFor(choices, nodeHasSqlite())].filter(
    (name) => !canResolve(dir, name),
  );
  const here = relative(io.cwd, dir);
  const steps = [
    ...(here === '' ? [] : [`cd ${quoted(here)}`]),
    ...(missing.length > 0 ? [installLine(io, missing)] : []),
    `${program} run "Count the words of 'to be or not to be'"`,
  ];
  note(io, `Next:\n${steps.map((step) => `  ${step}`).join('\n')}`);
}

/** Undefined: they changed their mind. */
async function ask(io: Io, defaults: Choices, given: string | undefined): Promise<Choices | undefined> {
  await begin(io, 'An agent to begin with');
  const model = given ?? (await askModel(io));
  if (model === undefined) return undefined;
  const stores = [
    { value: 'sqlite', label: 'SQLite', hint: '.allium/sessions.db' },
    { value: 'file', label: 'Files', hint: '.allium/sessions' },
    { value: 'memory', label: 'Nowhere', hint: 'gone when the program ends' },
  ] as const;
  const store = await askWhich<Choices['store']>(io, 'Where are sessions kept?', stores, defaults.store);
  if (store === undefined) return undefined;
  const offered = (Object.keys(MIDDLEWARE) as MiddlewareName[]).map((value) => ({
    value,
    label: MIDDLEWARE[value].label,
    hint: MIDDLEWARE[value].hint,
  }));
  const middleware = await askWhichOf(io, 'Which middleware? (space selects)', offered, defaults.middleware);
  if (middleware === undefined) return undefined;
  const tool = await askWhether(io, 'An example of a tool?', defaults.tool);
  if (tool === undefined) return undefined;
  await finish(io, 'Writing');
  return { model, store, middleware, tool };
}

async function askModel(io: Io): Promise<string | undefined> {
  const scheme = await askWhich(io, 'Which model?', [
    { value: 'offline', label: 'offline', hint: 'no key, no network: for first steps and tests' },
    { value: 'anthropic/claude-sonnet-4-5', label: 'Anthropic' },
    { value: 'openai/gpt-5', label: 'OpenAI' },
    { value: 'google/gemini-2.5-pro', label: 'Google' },
    {
      value: 'openai-compatible/llama3.2@http://localhost:11434/v1',
      label: 'A server of your own',
      hint: 'Ollama, vLLM, …',
    },
  ]);
  if (scheme === undefined || scheme === 'offline') return scheme;
  return askText(io, 'Its name', { initialValue: scheme });
}

/** By version, because loading the module prints a warning that it is experimental. */
function nodeHasSqlite(): boolean {
  const [major = 0, minor = 0] = process.versions.node.split('.').map(Number);
  return major > 22 || (major === 22 && minor >= 13);
}

function hasSqlite(dir: string): boolean {
  return nodeHasSqlite() || canResolve(dir, 'libsql');
}

function canResolve(dir: string, name: string): boolean {
  try {
    createRequire(join(dir, 'package.json')).resolve(/allium/.test(name) ? `${name}/package.json` : name);
    return true;
  } catch {
    return false;
  }
}
