/** A project of a user's, outside the repository, with a config and tools; and the built command line to run in it. */
import {
  mkdirSync,
  mkdtempSync,
  readFileSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterEach, beforeAll, beforeEach } from 'vitest';
import { build } from '../../../scripts/build.mjs';
import { alliumFolder, root } from '../../../scripts/repository.mjs';
import { cleanEnvironment, type RunOutcome, runCommand } from '../../../scripts/run-command.mjs';
import { isRunning, runInProcess } from './in-process.js';
import { openTerminal, type TestTerminal } from './terminal.js';

export const program = join(root, 'packages/cli/bin/allium.mjs');

export interface Project {
  readonly folder: string;
  /**
   * Runs a command without a terminal; `input` is its stdin, nothing by default. It runs in this process, or in
   * one of its own where that would make a difference.
   */
  allium(
    args: readonly string[],
    options?: { input?: string; env?: Record<string, string>; cwd?: string },
  ): Promise<RunOutcome>;
  /** Runs a command in a terminal. */
  terminal(args: readonly string[], options?: { env?: Record<string, string>; cols?: number }): TestTerminal;
  write(path: string, text: string): void;
  read(path: string): string;
  remove(): void;
}

/** `files` are written on top of the usual config and tools; null leaves one out. */
export function makeProject(files: Readonly<Record<string, string | null>> = {}): Project {
  const folder = realpathSync(mkdtempSync(join(tmpdir(), 'allium-cli-')));
  mkdirSync(join(folder, 'node_modules'));
  symlinkSync(alliumFolder, join(folder, 'node_modules/allium'), 'junction');
  const terminals: TestTerminal[] = [];
  /** This process keeps the modules it has loaded: when one is written anew, only another process sees that. */
  let stale = false;
  let ran = false;
  const write = (path: string, text: string): void => {
    stale ||= ran && /(\.[cm]?[jt]s|package\.json)$/.test(path);
    mkdirSync(dirname(join(folder, path)), { recursive: true });
    writeFileSync(join(folder, path), text);
  };
  const usual = { 'package.json': '{ "type": "module" }\n', 'allium.toml': CONFIG, 'tools.mjs': TOOLS };
  for (const [path, text] of Object.entries({ ...usual, ...files })) if (text !== null) write(path, text);
  return {
    folder,
    async allium(args, { input = '', env = {}, cwd = '.' } = {}) {
      const options = { cwd: join(folder, cwd), env: { ...cleanEnvironment(), ...env }, input };
      if (stale || isRunning()) return await runCommand(process.execPath, [program, ...args], options);
      ran = true;
      return await runInProcess(args, options);
    },
    terminal(args, { env = {}, cols = 100 } = {}) {
      const opened = openTerminal(process.execPath, [program, ...args], { cwd: folder, env, cols });
      terminals.push(opened);
      return opened;
    },
    write,
    read: (path) => readFileSync(join(folder, path), 'utf8'),
    remove() {
      for (const one of terminals) one.kill();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

const CONFIG = `[allium]
model = "offline"
systemPrompt = "Be brief."
store = { use = "file", dir = ".allium/sessions" }
tools = ["./tools.mjs"]

[allium.middleware]
chain = [
  { use = "approval", policy = { pay = "ask", "*" = "allow" } },
]
`;

/** Names are what the offline model goes by. \`gate\` waits for a file, so that tests decide how long it takes. */
const TOOLS = `
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { tool } from 'allium';

const schema = (properties) => ({
  '~standard': {
    version: 1,
    vendor: 'test',
    validate: (value) => ({ value }),
    jsonSchema: { input: () => ({ type: 'object', properties, required: Object.keys(properties) }) },
  },
});

export const add = tool({
  name: 'add',
  description: 'Adds.',
  input: schema({ a: { type: 'number' }, b: { type: 'number' } }),
  idempotent: true,
  execute: ({ a, b }) => String(a + b),
});

export const pay = tool({
  name: 'pay',
  description: 'Pays.',
  input: schema({ amount: { type: 'number' } }),
  execute: ({ amount }) => 'paid ' + amount,
});

export const gate = tool({
  name: 'gate',
  description: 'Waits.',
  input: schema({}),
  async execute(_, ctx) {
    while (!existsSync(join(process.cwd(), 'open'))) {
      ctx.signal.throwIfAborted();
      await new Promise((resolve) => setTimeout(resolve, 10));
    }
    return 'open';
  },
});

export const crash = tool({
  name: 'crash',
  description: 'Fails.',
  input: schema({}),
  execute() {
    throw new Error('it broke');
  },
});
`;

/** Declares a fresh project for every test of the file, and builds the command line before the first. */
export function useProject(files: Readonly<Record<string, string | null>> = {}): () => Project {
  let project: Project;
  beforeAll(build);
  beforeEach(() => {
    project = makeProject(files);
  });
  afterEach(() => project.remove());
  return () => project;
}

/** The objects of JSON lines. */
export function jsonLines(text: string): Record<string, unknown>[] {
  return text
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line));
}
