// SIGTERM and SIGHUP: the run is left where it is, and goes on in another process.

import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process';
import { once } from 'node:events';
import { symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { root } from '../../../scripts/repository.mjs';
import { cleanEnvironment } from '../../../scripts/run-command.mjs';
import { program, useProject } from '../test/project.js';

const here = useProject();

interface Started {
  readonly child: ChildProcessWithoutNullStreams;
  /** Settles when that was written to either stream. */
  seen(what: string): Promise<void>;
  /** Everything, once it has ended. */
  ended(): Promise<{ stdout: string; stderr: string; code: number | null }>;
}

function start(...args: string[]): Started {
  const child = spawn(process.execPath, [program, ...args], { cwd: here().folder, env: cleanEnvironment() });
  const out = { stdout: '', stderr: '' };
  let looking: (() => void) | undefined;
  for (const name of ['stdout', 'stderr'] as const)
    child[name].on('data', (data) => {
      out[name] += data;
      looking?.();
    });
  return {
    child,
    seen: (what) =>
      new Promise((resolve, reject) => {
        looking = () => {
          if (`${out.stdout}${out.stderr}`.includes(what)) resolve();
        };
        looking();
        child.once('close', () => reject(new Error(`It ended before "${what}":\n${out.stderr}`)));
      }),
    async ended() {
      const [code] = await once(child, 'close');
      return { ...out, code };
    },
  };
}

describe.each([
  ['SIGTERM', 143],
  ['SIGHUP', 129],
] as const)('%s', (signal, code) => {
  it('ends a run so that another process goes on with it, and says how', async () => {
    const run = start('run', '--session', 'ann', 'gate');
    await run.seen('→ gate');
    run.child.kill(signal);
    const ended = await run.ended();
    expect(ended.code).toBe(code);
    expect(ended.stderr).toContain(`Ended by ${signal}. Continue the run: allium sessions resume ann\n`);
    expect((await here().allium(['sessions', '--json'])).stdout).toContain('"status": "open"');
    const resumed = await here().allium(['sessions', 'resume', 'ann']);
    expect(resumed).toMatchObject({ code: 0, stdout: expect.stringContaining('gate') });
  });

  it('ends a chat that waits for a line', async () => {
    const chat = start('chat', '--session', 'ann');
    chat.child.stdin.write('add 1 and 2\n');
    await chat.seen('add: 3');
    chat.child.kill(signal);
    const ended = await chat.ended();
    expect(ended.code).toBe(code);
    expect(ended.stderr).toContain('Continue with: allium chat --session ann');
  });

  it('ends a chat in the middle of a run, which goes on in another', async () => {
    const chat = start('chat', '--session', 'ann');
    chat.child.stdin.write('gate\n');
    await chat.seen('→ gate');
    chat.child.kill(signal);
    const ended = await chat.ended();
    expect(ended.code).toBe(code);
    expect(ended.stderr).not.toContain('error:');
    expect((await here().allium(['sessions', '--json'])).stdout).toContain('"status": "open"');
    const again = await here().allium(['chat', '--session', 'ann'], { input: '/resume\n' });
    expect(again.stderr).toContain('done');
  });
});

// Node ends it with code 13, and without a word.
describe('a process in which nothing can happen any more', () => {
  it('says so, and leaves the run open', async () => {
    const tools = here().read('tools.mjs');
    here().write(
      'tools.mjs',
      tools.replace(/(name: 'add',.*?)execute: .*?,\n/s, '$1execute: () => new Promise(() => {}),\n'),
    );
    const { code, stderr } = await start('run', '--session', 'ann', 'add 1 and 2').ended();
    expect([code, stderr]).toEqual([1, expect.stringContaining('waits for can never happen. If a run was')]);
    expect((await here().allium(['sessions', '--json'])).stdout).toContain('"status": "open"');
  });

  it('says so if a file of the config never loads', async () => {
    here().write('tools.mjs', 'await new Promise(() => {});');
    const { code, stderr } = await start('explain').ended();
    expect([code, stderr]).toEqual([1, expect.stringContaining('the config waits for can never happen')]);
  });
});

describe('a process that is told to end', () => {
  it('prints no error with --json', async () => {
    const run = start('run', '--json', '--session', 'ann', 'gate');
    await run.seen('tool_execution_start');
    run.child.kill('SIGTERM');
    const { code, stderr, stdout } = await run.ended();
    expect(code).toBe(143);
    expect(stderr).toContain('allium sessions resume ann');
    expect(stdout).not.toContain('"type":"error"');
  });

  it('leaves the run open in SQLite, too', async () => {
    symlinkSync(join(root, 'node_modules/libsql'), join(here().folder, 'node_modules/libsql'), 'junction');
    const config = here().read('allium.toml');
    here().write('allium.toml', config.replace(/^store.*$/m, 'store = { use = "sqlite", path = "s.db" }'));
    const run = start('run', '--session', 'ann', 'gate');
    await run.seen('→ gate');
    run.child.kill('SIGTERM');
    expect(await run.ended()).toMatchObject({ code: 143, stderr: expect.stringContaining('resume ann') });
    here().write('open', '');
    expect(await here().allium(['sessions', 'resume', 'ann'])).toMatchObject({ code: 0 });
  });

  it('says nothing of a run that nobody could resume', async () => {
    here().write(
      'allium.toml',
      here()
        .read('allium.toml')
        .replace(/^store.*$/m, ''),
    );
    const run = start('run', 'gate');
    await run.seen('→ gate');
    run.child.kill('SIGTERM');
    expect(await run.ended()).toMatchObject({
      code: 143,
      stderr: expect.stringMatching(/Ended by SIGTERM\.\n$/),
    });
  });

  it('ends at once when it is told again, even if a tool does not listen', async () => {
    here().write('tools.mjs', here().read('tools.mjs').replace('ctx.signal.throwIfAborted();', ''));
    const run = start('run', 'gate');
    await run.seen('→ gate');
    run.child.kill('SIGTERM');
    run.child.kill('SIGTERM');
    expect((await run.ended()).code).toBe(143);
  });
});

describe('a terminal that is closed', () => {
  it.each([
    ['at work', 'gate', '→ gate'],
    ['at a question', 'pay 5', 'Change the arguments'],
  ])('leaves a run that is %s resumable', async (_, said, seen) => {
    const run = here().terminal(['run', '--session', 'ann', said]);
    await run.until(seen);
    run.hangUp();
    await expect.poll(async () => (await here().allium(['sessions', 'resume', 'ann', '--yes'])).code).toBe(0);
  });
});
