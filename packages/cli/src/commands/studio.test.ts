import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { expect, it } from 'vitest';
import { cleanEnvironment } from '../../../../scripts/run-command.mjs';
import { program, useProject } from '../../test/project.js';

const here = useProject();

/** Starts it, asks for something with the token it printed, and ends it. */
async function visit(
  args: readonly string[],
  path: string,
): Promise<{ body: any; code: number; told: string }> {
  const child = spawn(process.execPath, [program, 'studio', '--json', ...args], {
    cwd: here().folder,
    env: cleanEnvironment(),
  });
  let told = '';
  child.stderr.on('data', (data) => {
    told += data;
  });
  const [line] = await Promise.race([
    once(child.stdout, 'data'),
    once(child, 'close').then(() => Promise.reject(new Error(told))),
  ]);
  const { url } = JSON.parse(String(line)) as { url: string };
  const entered = await fetch(url, { redirect: 'manual' });
  const cookie = entered.headers.get('set-cookie')!.split(';')[0]!;
  const answer = await fetch(new URL(path, url), { headers: { cookie } });
  const body = await answer.json();
  child.kill('SIGINT');
  const [code] = await once(child, 'close');
  return { body, code, told };
}

it('shows the runs of the store of the config, read-only', async () => {
  await here().allium(['run', '--session', 'ann', 'add 2 and 3']);
  const { body, code, told } = await visit([], '/api/runs');
  expect(body.rows).toMatchObject([{ sessionId: 'ann', input: 'add 2 and 3', status: 'done' }]);
  expect(told).toContain('Ctrl-C ends it');
  expect(code).toBe(0);
  expect((await visit([], '/api/info')).body).toMatchObject({
    allowAnswers: false,
    agents: [{ name: 'agent' }],
  });
  expect((await visit(['--allow-answers'], '/api/info')).body).toMatchObject({ allowAnswers: true });
});

it.each(['0', '65536', 'abc'])('--port %s: says which ports there are', async (port) => {
  const { code, stderr } = await here().allium(['studio', '--port', port]);
  expect(stderr).toContain(`Expected a port from 1 to 65535, got "${port}".`);
  expect(code).toBe(2);
});

it('has a demo that needs no config', async () => {
  here().write('allium.toml', 'this is no config');
  const { body } = await visit(['--demo'], '/api/runs');
  expect(body.rows.length).toBeGreaterThan(20);
});
