// `allium init`: from nothing to an agent that runs.

import { existsSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { root } from '../../../../scripts/repository.mjs';
import { useProject } from '../../test/project.js';
import { KEYS } from '../../test/terminal.js';

const here = useProject({ 'allium.toml': null, 'tools.mjs': null, 'package.json': null });

it('writes an agent that works at once, with --yes', async () => {
  const { code, stderr } = await here().allium(['init', '--yes']);
  expect(code).toBe(0);
  for (const file of ['allium.toml', 'tools.mjs', 'package.json']) expect(stderr).toContain(`wrote ${file}`);
  expect((await here().allium(['doctor'])).stdout).not.toContain('✗');
  const run = await here().allium(['run', 'Count the words of: "to be or not to be"']);
  expect(run).toMatchObject({ code: 0 });
  expect(run.stdout).toContain('count_words: 6 words');
});

it.each([
  ['npm/11.0.0 node/v20.19.0 linux x64 workspaces/false', 'npx allium', 'npm install'],
  ['pnpm/10.0.0 npm/? node/v20.19.0 linux x64', 'pnpm exec allium', 'pnpm add'],
])('run through %s it prints commands that work through it', async (agent, program, install) => {
  const env = { npm_config_user_agent: agent };
  const { stderr } = await here().allium(['init', '--yes', 'agent'], { env });
  expect(stderr).toContain(`  cd agent\n  ${install} @allium/cli\n  ${program} run "Count the words`);
  // Every other command does as well.
  await here().allium(['run', '--session', 'ann', 'hi'], { env, cwd: 'agent' });
  const again = await here().allium(['sessions', 'resume', 'ann'], { env, cwd: 'agent' });
  expect(again.stderr).toContain(`${program} run --session ann`);
  const unknown = await here().allium(['trace', 'bob'], { env, cwd: 'agent' });
  expect(unknown.stderr).toContain(`See: ${program} sessions list`);
  const none = await here().allium(['explain'], { env });
  expect(none.stderr).toContain(`Write one with: ${program} init`);
});

it('asks in a terminal, and writes what was chosen', async () => {
  // With it there is SQLite on every Node, and so the same list to choose from.
  symlinkSync(join(root, 'node_modules/libsql'), join(here().folder, 'node_modules/libsql'), 'junction');
  const init = here().terminal(['init', 'agent']);
  await init.until('Which model?');
  init.type(`${KEYS.down}${KEYS.enter}`);
  await init.until('Its name');
  init.type(KEYS.enter);
  await init.until('Where are sessions kept?');
  init.type(`${KEYS.down}${KEYS.down}${KEYS.enter}`);
  await init.until('Which middleware?');
  init.type(`${KEYS.down} ${KEYS.enter}`);
  await init.until('An example of a tool?');
  init.type(`n`);
  await init.until('Next:');
  expect(await init.exit()).toBe(0);
  expect(init.screen()).toContain('npm install @allium/ai-sdk @ai-sdk/anthropic');
  const config = here().read('agent/allium.toml');
  expect(config).toContain('model = "anthropic/claude-sonnet-4-5"');
  expect(config).toContain('store = "memory"');
  expect(config).toMatch(
    /chain = \[\n {2}\{ use = "max-turns", turns = 20 \},\n {2}"stopwatch",\n {2}"retry",\n\]/,
  );
  expect(existsSync(join(here().folder, 'agent/tools.mjs'))).toBe(false);
});

it('writes nothing when the person changes their mind', async () => {
  const init = here().terminal(['init']);
  await init.until('Which model?');
  init.type(KEYS.ctrlC);
  expect(await init.exit()).toBe(130);
  expect(init.screen()).toContain('Nothing was written.');
  expect(existsSync(join(here().folder, 'allium.toml'))).toBe(false);
});

it('keeps existing files', async () => {
  here().write('package.json', '{ "name": "mine", "type": "module" }\n');
  here().write('tools.mjs', '// mine\n');
  await here().allium(['init', '--yes']);
  expect(here().read('package.json')).toContain('"mine"');
  expect(here().read('tools.mjs')).toBe('// mine\n');
  const again = await here().allium(['init', '--yes']);
  expect(again.code).toBe(2);
  expect(again.stderr).toContain('already exists');
  expect((await here().allium(['init', '--yes', '--force', '--model', 'openai/gpt-5'])).code).toBe(0);
  expect(here().read('allium.toml')).toContain('model = "openai/gpt-5"');
  expect(here().read('package.json')).toContain('"mine"');
});

it('points to --yes if there is nobody to ask', async () => {
  const { code, stderr } = await here().allium(['init']);
  expect(code).toBe(2);
  expect(stderr).toContain('--yes');
});

it.each(['allium.json', 'allium.config.ts', 'allium.config.mjs'])(
  'writes nothing beside %s',
  async (name) => {
    here().write(name, '{ "allium": { "model": "offline" } }\n');
    for (const args of [
      ['init', '--yes'],
      ['init', '--yes', '--force'],
    ]) {
      const { code, stderr } = await here().allium(args);
      expect(code).toBe(2);
      expect(stderr).toContain(`${name} already configures this folder`);
    }
    expect(existsSync(join(here().folder, 'allium.toml'))).toBe(false);
  },
);

// Node's own way to make folders never comes back from /proc.
it.runIf(process.platform === 'linux')('says where it can write nothing', async () => {
  const { code, stderr } = await here().allium(['init', '--yes', '/proc/allium/agent']);
  expect(code).toBe(1);
  expect(stderr).toContain('cannot use /proc/allium/agent: its folder is not there.');
  const plugin = await here().allium(['plugin', 'new', 'brief', '--dir', '/proc/allium']);
  expect(plugin.code).toBe(1);
  expect(plugin.stderr).toContain('The new plugin cannot use /proc/allium/allium-mw-brief: its folder');
});
