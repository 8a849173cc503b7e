// `allium explain` and `allium version`.

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { useProject } from '../../test/project.js';

const here = useProject();

it('explains the plan, and where it came from', async () => {
  const { code, stdout } = await here().allium(['explain']);
  expect(code).toBe(0);
  expect(stdout).toContain(
    `Config: ${join(here().folder, 'allium.toml')}\nModel: allium/offline\nPlan: 1 middleware, 4 tools`,
  );
  const json = JSON.parse((await here().allium(['explain', '--json'])).stdout);
  expect(json).toMatchObject({ model: 'allium/offline', middleware: [{ name: 'approval' }] });
});

it('finds the config from a folder below', async () => {
  here().write('a/b/file', '');
  const { stdout } = await here().allium(['explain', '--config', '../../allium.toml'], { cwd: 'a/b' });
  expect(stdout).toContain('Plan: 1 middleware');
  expect((await here().allium(['explain'], { cwd: 'a/b' })).stdout).toBe(stdout);
});

it('tells the versions', async () => {
  const { version } = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8'));
  expect((await here().allium(['--version'])).stdout).toBe(`${version}\n`);
  const { stdout } = await here().allium(['version']);
  expect(stdout).toBe(
    `@allium/cli ${version}\n@allium/config 0.1.0\nallium 0.1.0\nnode ${process.versions.node}\n`,
  );
  expect(JSON.parse((await here().allium(['version', '--json'])).stdout)).toMatchObject({ allium: '0.1.0' });
});
