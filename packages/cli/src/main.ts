/** The program `allium`: connects the command line to this process. */
import { endingOf, ProcessEnding } from './ending.js';
import { describeError, EXIT } from './outcome.js';
import { main } from './program.js';
import { catchConsole } from './terminal/console.js';
import { makeIo, note } from './terminal/io.js';
import { logLine } from './terminal/text.js';

const abort = new AbortController();
const { stdin, stdout, stderr, env } = process;
const io = makeIo({ stdin, stdout, stderr, env, cwd: process.cwd(), signal: abort.signal });

// The first signal lets the run end in order; whoever sends another one wants the program to end now.
process.on('SIGINT', () => {
  if (abort.signal.aborted) process.exit(EXIT.aborted);
  abort.abort();
});
for (const by of ['SIGTERM', 'SIGHUP'] as const)
  process.on(by, () => {
    if (abort.signal.aborted) process.exit(by === 'SIGTERM' ? EXIT.terminated : EXIT.hungUp);
    abort.abort(new ProcessEnding(by));
  });
// `allium … | head` closes the pipe early: an end like any other. A terminal that is gone is no reason to leave at once.
for (const stream of [stdout, stderr])
  stream.on('error', (error: NodeJS.ErrnoException) => {
    if (!endingOf(abort.signal)) process.exit(error.code === 'EPIPE' ? EXIT.done : EXIT.failed);
  });
// Tools and plugins may write to the console, and may throw where nobody catches it: that, too, is made safe to show.
catchConsole((line) => note(io, logLine(line)));
process.on('uncaughtException', (error) => {
  note(io, `${io.err.red('error')}: ${error instanceof Error ? error.stack : describeError(error)}`);
  process.exit(EXIT.failed);
});

process.exitCode = await main(process.argv.slice(2), io);
// Something that does not listen to the abort may hold the process.
if (abort.signal.aborted) process.exit();
