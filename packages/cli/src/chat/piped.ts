/** A chat without a terminal: every line of stdin is a message, one after the other, and the answers go to stdout. */
import { createInterface } from 'node:readline';
import { warnOfOpen } from '../inbox.js';
import { EXIT } from '../outcome.js';
import type { Opened, Shell } from '../shell.js';
import { note, print } from '../terminal/io.js';
import { liveView } from '../view/live.js';
import { converse, RESUME } from './conversation.js';

export async function chatThroughPipe(shell: Shell, opened: Opened, sessionId: string): Promise<void> {
  const { io } = shell;
  // How a run ended is shown with it, but not why one could not begin.
  const conversation = converse(
    shell,
    opened,
    sessionId,
    () => {},
    (error) => note(io, error),
  );
  io.signal.addEventListener('abort', () => conversation.abort());
  const lines = createInterface({ input: io.stdin, terminal: false, signal: io.signal });
  for await (const line of lines) {
    const text = line.trim();
    if (io.signal.aborted || text === '/exit' || text === '/quit') break;
    if (text === '') continue;
    if (text.startsWith('/') && text !== '/resume') {
      const said = conversation.command(text);
      if (said) print(io, said.join('\n'));
      else note(io, `There is no ${text}. /help lists the commands.`);
      continue;
    }
    if (text !== '/resume') await warnOfOpen(shell, opened.agent, sessionId);
    // Nobody can be asked: a question suspends the run.
    await conversation.take(
      text === '/resume' ? RESUME : text,
      liveView(io, { redact: shell.redact, redactError: shell.redactError }),
      async () => undefined,
    );
  }
  lines.close();
  if (io.signal.aborted) shell.exitCode = EXIT.aborted;
}
