/**
 * The built command line in this process, which is several times as fast as one of its own. What only a process of its
 * own shows (signals, a terminal, an output that is cut off) is tested with one.
 */
import { PassThrough, Readable } from 'node:stream';
import { text } from 'node:stream/consumers';
import { pathToFileURL } from 'node:url';
import { root } from '../../../scripts/repository.mjs';
import type { RunOutcome } from '../../../scripts/run-command.mjs';
import type * as Program from '../src/program.js';
import type * as Console from '../src/terminal/console.js';
import type * as IoModule from '../src/terminal/io.js';
import type * as Text from '../src/terminal/text.js';

export interface InProcessOptions {
  readonly cwd: string;
  /** The whole environment. */
  readonly env: Readonly<Record<string, string | undefined>>;
  /** All of stdin. */
  readonly input: string;
}

/** From `dist`, like the packages that its config names: there must be one `allium` for both. */
const built = <T>(path: string): Promise<T> =>
  import(pathToFileURL(`${root}/packages/cli/dist/${path}`).href) as Promise<T>;

let running = false;

/** Folder and environment belong to the process, so there is room for one command at a time. */
export function isRunning(): boolean {
  return running;
}

export async function runInProcess(
  args: readonly string[],
  { cwd, env, input }: InProcessOptions,
): Promise<RunOutcome> {
  const before = { cwd: process.cwd(), env: process.env };
  let restoreConsole = () => {};
  running = true;
  try {
    process.chdir(cwd);
    process.env = { ...env };
    const [{ main }, { catchConsole }, { makeIo, note }, { logLine }] = await Promise.all([
      built<typeof Program>('program.js'),
      built<typeof Console>('terminal/console.js'),
      built<typeof IoModule>('terminal/io.js'),
      built<typeof Text>('terminal/text.js'),
    ]);
    const stdout = new PassThrough();
    const stderr = new PassThrough();
    const told = [text(stdout), text(stderr)] as const;
    const stdin = Readable.from(input === '' ? [] : [Buffer.from(input)], { objectMode: false });
    const io = makeIo({ stdin, stdout, stderr, env: process.env, cwd });
    restoreConsole = catchConsole((line) => note(io, logLine(line)));
    const code = await main(args, io);
    stdout.end();
    stderr.end();
    return { code, stdout: await told[0], stderr: await told[1], timedOut: false };
  } finally {
    restoreConsole();
    process.env = before.env;
    process.chdir(before.cwd);
    running = false;
  }
}
