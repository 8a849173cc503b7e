/** The program `allium`: connects the command line to this process. */
import { endingOf, ProcessEnding } from './ending.js';
import { describeError, EXIT } from './outcome.js';
import { main } from './program.js';
import { catchConsole } from './terminal/console.js';
import { makeIo, note } from './terminal/io.js';
import { logLine } from './terminal/text.js';

/** Runs the command that this process was started with. Its end is that of the command. */
export async function start(): Promise<void> {
  const abort = new AbortController();
  const { stdout, stderr, env } = process;
  const io = makeIo({
    get stdin() {
      return process.stdin;
    },
    stdout,
    stderr,
    env,
    cwd: process.cwd(),
    signal: abort.signal,
  });

  // The first signal lets the run end properly; a second one ends the program at once.
  process.on('SIGINT', () => {
    if (abort.signal.aborted) process.exit(EXIT.aborted);
    abort.abort();
  });
  for (const by of ['SIGTERM', 'SIGHUP'] as const)
    process.on(by, () => {
      if (abort.signal.aborted) process.exit(by === 'SIGTERM' ? EXIT.terminated : EXIT.hungUp);
      abort.abort(new ProcessEnding(by));
    });
  // `allium … | head` closes the pipe early, which is a normal end. If the terminal is gone, don't leave at once.
  for (const stream of [stdout, stderr])
    stream.on('error', (error: NodeJS.ErrnoException) => {
      if (!endingOf(abort.signal)) process.exit(error.code === 'EPIPE' ? EXIT.done : EXIT.failed);
    });
  // Tools and plugins may write to the console, or throw where nobody catches it. That is made safe to show, too.
  catchConsole((line) => note(io, logLine(line)));
  process.on('uncaughtException', (error) => {
    note(io, `${io.err.red('error')}: ${error instanceof Error ? error.stack : describeError(error)}`);
    process.exit(EXIT.failed);
  });

  // Node ends a process in which nothing can happen any more, with code 13 and without a word.
  const stuck = (): void => {
    const what = 'Something that a tool, the model, a middleware or the config waits for can never happen.';
    note(io, `${io.err.red('error')}: ${what} If a run was under way, it can be resumed.`);
    process.exit(EXIT.failed);
  };
  process.on('beforeExit', stuck);
  process.exitCode = await main(process.argv.slice(2), io);
  process.off('beforeExit', stuck);
  // Something that ignores the abort may keep the process alive.
  if (abort.signal.aborted) process.exit();
}
