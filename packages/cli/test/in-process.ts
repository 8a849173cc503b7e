/**
 * The built command line in this process, which is several times as fast as one of its own. What only a process of its
 * own shows (signals, a terminal, an output that is cut off) is tested with one.
 */
import { PassThrough, Readable } from 'node:stream';
import { text } from 'node:stream/consumers';
import { pathToFileURL } from 'node:url';
import { root } from '../../../scripts/repository.mjs';
import type { RunOutcome } from '../../../scripts/run-command.mjs';
import type * as Cli from '../src/index.js';
import { catchConsole } from '../src/terminal/console.js';
import { logLine } from '../src/terminal/text.js';

export interface InProcessOptions {
  readonly cwd: string;
  /** The whole environment. */
  readonly env: Readonly<Record<string, string | undefined>>;
  /** All of stdin. */
  readonly input: string;
}

/** From `dist`, like the packages that its config names: there must be one `allium` for both. */
const built = (): Promise<typeof Cli> => import(pathToFileURL(`${root}/packages/cli/dist/index.js`).href);

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
    const { main, makeIo, note } = await built();
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
