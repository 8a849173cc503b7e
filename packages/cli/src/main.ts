/** The program `allium`: connects the command line to this process. */
import { main } from './program.js';
import { makeIo } from './terminal/io.js';

const abort = new AbortController();
// The first Ctrl-C lets the run end in order; whoever presses it again wants out now.
process.on('SIGINT', () => {
  if (abort.signal.aborted) process.exit(130);
  abort.abort();
});
// `allium … | head` closes the pipe early: an end like any other.
for (const stream of [process.stdout, process.stderr])
  stream.on('error', (error: NodeJS.ErrnoException) => process.exit(error.code === 'EPIPE' ? 0 : 1));

const { stdin, stdout, stderr, env } = process;
process.exitCode = await main(
  process.argv.slice(2),
  makeIo({ stdin, stdout, stderr, env, cwd: process.cwd(), signal: abort.signal }),
);
