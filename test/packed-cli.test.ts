// The command line as users install it: packed, in a project of theirs, on every version of Node that is supported.

import {
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { publint } from 'publint';
import { formatMessage } from 'publint/utils';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { KEYS, openTerminal } from '../packages/cli/test/terminal.js';
import { nodeProgram } from '../scripts/node-versions.mjs';
import { npmRegistry } from '../scripts/npm-registry.mjs';
import { packedCli } from '../scripts/packed-cli.mjs';
import { root, tsc } from '../scripts/repository.mjs';
import { cleanEnvironment, mustRun, runCommand } from '../scripts/run-command.mjs';

let project: Awaited<ReturnType<typeof packedCli>>;

beforeAll(async () => {
  project = await packedCli();
});
afterAll(() => project?.remove());

describe.each([20, 22, 24])('the packed command line on Node %i', (major) => {
  let node: string | undefined;
  let folder: string;

  beforeAll(async () => {
    node = await nodeProgram(major);
    folder = join(project.folder, `node-${major}`);
    mkdirSync(folder);
  });

  it('is that version, and goes from nothing to an answer', async ({ skip }) => {
    if (!node) return skip(`Node ${major} could not be installed.`);
    const allium = (...args: string[]) => mustRun(node!, [project.program, ...args], { cwd: folder });
    expect((await allium('version')).stdout).toContain(`node ${major}.`);
    await allium('init', '--yes');
    expect((await allium('doctor')).stdout).not.toContain('✗');
    const { stdout, stderr } = await allium(
      'run',
      '--session',
      'ann',
      'Count the words of "to be or not to be".',
    );
    expect(stdout).toContain('count_words: 6 words');
    expect(stderr).not.toContain('Warning');
    expect((await allium('trace', 'ann')).stdout).toContain('✓ 6 words');
    expect((await allium('sessions')).stdout).toMatch(/^ann .* done/m);
  });

  it('chats in a terminal', async ({ skip }) => {
    if (!node) return skip(`Node ${major} could not be installed.`);
    const chat = openTerminal(node, [project.program, 'chat', '--session', 'bob'], { cwd: folder });
    try {
      await chat.until('Session bob');
      chat.type(`Count the words of "one two three".${KEYS.enter}`);
      await chat.until('count_words: 3 words');
      await chat.until(/done · 2 turns/);
      chat.type(KEYS.ctrlC);
      expect(await chat.exit()).toBe(0);
    } finally {
      chat.kill();
    }
  });
});

it('is found by npx, under the name allium', async () => {
  const { stdout } = await mustRun('npx', ['--no-install', 'allium', '--version'], { cwd: project.folder });
  expect(stdout).toMatch(/^\d+\.\d+\.\d+\n$/);
});

describe('begun with npx', () => {
  let registry: Awaited<ReturnType<typeof npmRegistry>>;
  let env: NodeJS.ProcessEnv;

  beforeAll(async () => {
    registry = await npmRegistry(dirname(project.tarball));
    env = {
      ...cleanEnvironment(),
      npm_config_registry: registry.url,
      npm_config_cache: join(project.folder, 'npm-cache'),
      npm_config_yes: 'true',
      npm_config_audit: 'false',
      npm_config_fund: 'false',
      npm_config_update_notifier: 'false',
    };
  });
  afterAll(() => registry?.close());

  it.each([
    ['in an empty folder', 'npx @allium/cli init --yes', ['npm install', 'npx allium run']],
    ['into a new folder', 'npx @allium/cli init --yes "my agent"', ['cd', 'npm install', 'npx allium run']],
    ['in a project that has it', 'npx allium init --yes agent', ['cd', 'npx allium run']],
  ])('%s, `init` prints commands that work as they are', async (_, begin, expected) => {
    // Only inside of the project is it installed.
    const installed = begin.startsWith('npx allium');
    const folder = installed ? project.folder : realpathSync(mkdtempSync(join(tmpdir(), 'allium-npx-')));
    try {
      const { stderr } = await mustRun('bash', ['-c', begin], { cwd: folder, env });
      const [, next = ''] = stderr.split('Next:\n');
      const steps = next.trim().split(/\n */);
      expect(steps.map((step, i) => step.slice(0, expected[i]?.length))).toEqual(expected);
      const { stdout } = await mustRun('bash', ['-c', steps.join(' && ')], { cwd: folder, env });
      expect(stdout).toContain('count_words: 6 words');
    } finally {
      if (!installed) rmSync(folder, { recursive: true, force: true });
    }
  });
});

it('holds the build, the program, README and licence, and no tests', () => {
  const files = readdirSync(join(project.folder, 'node_modules/@allium/cli'), {
    recursive: true,
    encoding: 'utf8',
  });
  expect(files).toEqual(
    expect.arrayContaining(['LICENSE', 'README.md', join('bin', 'allium.mjs'), join('dist', 'main.js')]),
  );
  expect(files.filter((file) => /\.test\.|tsbuildinfo/.test(file))).toEqual([]);
});

it('has declarations that need nothing but what is installed', async () => {
  const file = join(project.folder, 'types.mts');
  writeFileSync(file, "import { main, makeIo } from '@allium/cli';\nvoid main([], makeIo(null as never));\n");
  const options = ['--noEmit', '--strict', '--module', 'nodenext', '--target', 'es2022', '--pretty', 'false'];
  const types = ['--typeRoots', join(root, 'node_modules/@types'), '--types', 'node'];
  const { stdout } = await runCommand(process.execPath, [tsc, ...options, ...types, file], {
    cwd: project.folder,
  });
  expect(stdout).toBe('');
});

it.each([
  ['packages/cli/dist/LICENSE-commander', ['Copyright (c) 2011 TJ Holowaychuk']],
  ['packages/config/dist/LICENSE-smol-toml', ['Copyright (c) Squirrel Chat']],
  ['packages/studio/web/dist/licenses.md', ['## preact ', '## @preact/signals ', '## uplot ', '## diff ']],
])('what is built into a package comes with its licence: %s', (file, texts) => {
  for (const text of texts) expect(readFileSync(join(root, file), 'utf8')).toContain(text);
});

it('is in ASCII, with the kernel: other texts take longer to read at every start', () => {
  const modules = join(project.folder, 'node_modules');
  for (const file of [
    '@allium/cli/dist/main.js',
    '@allium/config/dist/index.js',
    'allium/dist/shared/kernel.js',
  ])
    expect(readFileSync(join(modules, file), 'utf8'), file).not.toMatch(/[^\t\n -~]/);
});

it('gives publint nothing to complain about', async () => {
  const { messages, pkg } = await publint({
    pkgDir: join(root, 'packages/cli'),
    level: 'warning',
    pack: 'npm',
  });
  expect(messages.map((message) => formatMessage(message, pkg, { color: false }))).toEqual([]);
});

it('ends quietly when its output is cut off', async () => {
  const { code, stderr } = await runCommand(
    'bash',
    ['-c', `set -o pipefail; "${process.execPath}" "${project.program}" --help | head -n 1`],
    { cwd: project.folder },
  );
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
});
