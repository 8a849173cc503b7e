// `allium plugin`: from a name to a plugin that is found.

import { cpSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { useProject } from '../../test/project.js';

const here = useProject();

it('makes a plugin that passes its own check, is listed when installed, and works by name', async () => {
  const made = await here().allium(['plugin', 'new', 'shout']);
  expect(made.code).toBe(0);
  expect(made.stdout).toBe(`${join(here().folder, 'allium-mw-shout')}\n`);
  const check = await here().allium(['plugin', 'check', 'allium-mw-shout']);
  expect(check.stdout).not.toContain('✗');
  expect(check).toMatchObject({ code: 0 });

  expect((await here().allium(['plugin', 'list'])).stderr).toContain('No plugins are installed here.');
  cpSync(join(here().folder, 'allium-mw-shout'), join(here().folder, 'node_modules/allium-mw-shout'), {
    recursive: true,
  });
  expect((await here().allium(['plugin', 'list'])).stdout).toMatch(/shout +middleware +allium-mw-shout@/);
  expect(JSON.parse((await here().allium(['plugin', 'list', '--json'])).stdout)).toMatchObject([
    { name: 'shout' },
  ]);
  here().write('allium.toml', here().read('allium.toml').replace('chain = [', 'chain = [\n  "shout",'));
  expect((await here().allium(['explain'])).stdout).toContain('shout');
});

it('names the command that runs the tests: at once if allium is installed above, otherwise after npm install', async () => {
  const inside = await here().allium(['plugin', 'new', 'shout']);
  expect(inside.stderr).toContain('allium-mw-shout && npm test');
  const elsewhere = mkdtempSync(join(tmpdir(), 'allium-plugin-'));
  const outside = await here().allium(['plugin', 'new', 'shout', '--dir', elsewhere]);
  expect(outside.stderr).toContain('allium-mw-shout && npm install && npm test');
  rmSync(elsewhere, { recursive: true });
});

it('prints what it made as JSON', async () => {
  const { stdout } = await here().allium(['plugin', 'new', '--json', 'shout']);
  expect(JSON.parse(stdout)).toMatchObject({
    folder: join(here().folder, 'allium-mw-shout'),
    package: 'allium-mw-shout',
    files: expect.arrayContaining(['package.json']),
  });
});

it('says what is wrong with a package that is not a plugin', async () => {
  here().write('nothing/package.json', '{ "name": "nothing", "version": "1.0.0", "type": "module" }');
  const { code, stdout } = await here().allium(['plugin', 'check', 'nothing']);
  expect(code).toBe(1);
  expect(stdout).toContain('✗');
  expect(JSON.parse((await here().allium(['plugin', 'check', '--json', 'nothing'])).stdout)).toMatchObject({
    ok: false,
  });
});

it('warns of a built-in name, and refuses bad names and existing folders as wrong usage', async () => {
  const taken = await here().allium(['plugin', 'new', 'retry']);
  expect(taken.code).toBe(0);
  expect(taken.stderr).toContain('warning: "retry" is in the box already');
  expect(await here().allium(['plugin', 'new', 'retry'])).toMatchObject({
    code: 2,
    stderr: expect.stringContaining('already exists'),
  });
  expect(await here().allium(['plugin', 'new', 'No Name'])).toMatchObject({ code: 2 });
});
