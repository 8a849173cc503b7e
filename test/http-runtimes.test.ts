// The examples of examples/http in the runtimes they are for, as processes of their own.

import { type ChildProcess, spawn } from 'node:child_process';
import { cpSync, mkdtempSync, rmSync } from 'node:fs';
import { createServer } from 'node:http';
import { createRequire } from 'node:module';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { rolldown } from 'rolldown';
import { afterEach, beforeAll, describe, expect, it } from 'vitest';
import { build } from '../scripts/build.mjs';
import { whenMade } from '../scripts/once.mjs';
import { root } from '../scripts/repository.mjs';
import { findRuntime, runtimeFolder } from '../scripts/runtimes.mjs';
import { tryExample } from './http-example.js';

const examples = join(root, 'examples', 'http');
await whenMade('runtimes');
const bun = findRuntime('bun');
const deno = findRuntime('deno');
const next = findRuntime('next');
const miniflare = findRuntime('miniflare');
for (const [name, found] of Object.entries({ bun, deno, next, miniflare }))
  if (!found) process.stderr.write(`SKIPPED: ${name}. It is not installed: run \`npm run runtimes\`.\n`);

const ends: (() => unknown)[] = [];
afterEach(async () => {
  for (const end of ends.splice(0).reverse()) await end();
});
beforeAll(build);

async function freePort(): Promise<number> {
  const probe = createServer();
  await new Promise<void>((resolve) => probe.listen(0, '127.0.0.1', resolve));
  const { port } = probe.address() as AddressInfo;
  await new Promise((resolve) => probe.close(resolve));
  return port;
}

/** Starts a server, and waits until it says that it listens. */
async function started(program: string, args: readonly string[], cwd: string, says: string): Promise<string> {
  const port = await freePort();
  const child: ChildProcess = spawn(
    program,
    args.map((arg) => arg.replace('PORT', String(port))),
    {
      cwd,
      env: { ...process.env, PORT: String(port), NEXT_TELEMETRY_DISABLED: '1', NODE_OPTIONS: '' },
      stdio: ['ignore', 'pipe', 'pipe'],
    },
  );
  ends.push(async () => {
    const gone = new Promise((resolve) => child.once('exit', resolve));
    if (child.exitCode === null && child.kill('SIGKILL')) await gone;
  });
  let said = '';
  await new Promise<void>((resolve, reject) => {
    for (const stream of [child.stdout!, child.stderr!])
      stream.on('data', (chunk) => {
        said += chunk;
        if (said.includes(says)) resolve();
      });
    child.once('exit', () => reject(new Error(`It ended: ${said}`)));
  });
  return `http://127.0.0.1:${port}`;
}

/** The example with what it imports, as tools for workers make it. */
async function workerScript() {
  const bundled = await rolldown({ input: join(examples, 'worker.mjs'), platform: 'browser' });
  const { output } = await bundled.generate({ format: 'esm', codeSplitting: false });
  await bundled.close();
  return output[0];
}

describe('the example for', () => {
  it.skipIf(!bun)('Bun', async () => {
    await tryExample(await started(bun!, ['bun.mjs'], examples, '/api/agent'));
  });

  it.skipIf(!deno)('Deno', async () => {
    const args = ['run', '--no-prompt', '--allow-net', '--allow-env', '--allow-read', 'deno.mjs'];
    await tryExample(await started(deno!, args, examples, '/api/agent'));
  });

  it.skipIf(!next)('Next.js, in its own server', async () => {
    // A project as users have it: the packages are in its `node_modules`, not linked from elsewhere.
    const project = mkdtempSync(join(tmpdir(), 'allium-next-'));
    ends.push(() => rmSync(project, { recursive: true, force: true }));
    cpSync(join(runtimeFolder('next'), 'node_modules'), join(project, 'node_modules'), {
      recursive: true,
      verbatimSymlinks: true,
    });
    const zod = join(createRequire(import.meta.url).resolve('zod/package.json'), '..');
    cpSync(zod, join(project, 'node_modules/zod'), { recursive: true });
    for (const part of ['package.json', 'dist'])
      cpSync(join(root, 'packages/allium', part), join(project, 'node_modules/allium', part), {
        recursive: true,
      });
    cpSync(join(examples, 'next/app'), join(project, 'app'), { recursive: true });
    cpSync(join(examples, 'handler.mjs'), join(project, 'handler.mjs'));
    cpSync(join(runtimeFolder('next'), 'package.json'), join(project, 'package.json'));
    const bin = join(project, 'node_modules/next/dist/bin/next');
    await tryExample(await started(process.execPath, [bin, 'dev', '-p', 'PORT'], project, 'Ready'));
  });

  it('workers, which needs nothing of Node', async () => {
    const { imports, dynamicImports } = await workerScript();
    expect([...imports, ...dynamicImports]).toEqual([]);
  });

  it.skipIf(!miniflare)('workers, in workerd', async () => {
    const { code: script } = await workerScript();
    const { Miniflare } = await import(pathToFileURL(miniflare!).href);
    const worker = new Miniflare({
      modules: true,
      script,
      compatibilityDate: '2026-01-01',
    });
    ends.push(() => worker.dispose());
    await tryExample((await worker.ready).origin);
  });
});
