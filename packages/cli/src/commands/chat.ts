/** `allium chat`: talk with the agent. */
import { randomBytes } from 'node:crypto';
import { CHAT_HELP } from '../chat/conversation.js';
import { chatThroughPipe } from '../chat/piped.js';
import { chatOnTerminal } from '../chat/terminal.js';
import { inboxOf } from '../inbox.js';
import { type AddCommand, commandLine, type Opened, type Shell, withAgent } from '../shell.js';
import { note } from '../terminal/io.js';

interface Options {
  readonly session?: string;
  readonly model?: string;
}

export const addChat: AddCommand = (program, shell) => {
  program
    .command('chat')
    .summary('talk with the agent')
    .description(
      'A conversation in one session. You can steer the agent while it works, and it asks you in place about calls that ' +
        'need approval. Without a terminal every line of stdin is a message, and the answers go to stdout.',
    )
    .option('-s, --session <id>', 'continue this session, or start one with this name')
    .option('-m, --model <name>', 'use this model instead of the one in the config')
    .addHelpText('after', `\nIn the chat:\n${CHAT_HELP.replace(/^(?=.)/gm, '  ')}`)
    .action((options: Options) => chat(shell, options));
};

async function chat(shell: Shell, options: Options): Promise<void> {
  const { io } = shell;
  await withAgent(shell, options.model === undefined ? {} : { model: options.model }, async (opened) => {
    const id = options.session ?? newSessionId();
    if ((await inboxOf(opened.agent, id)).open.length > 0)
      note(
        io,
        io.err.yellow('This session waits for an answer. /resume asks; any other message gives it up.'),
      );
    if (io.stdin.isTTY && io.stdout.isTTY) {
      await chatOnTerminal(shell, opened, id);
      shell.exitCode = 0;
    } else await chatThroughPipe(shell, opened, id);
    await tellHowToGoOn(shell, opened, id);
  });
}

async function tellHowToGoOn(shell: Shell, { store }: Opened, id: string): Promise<void> {
  const { io } = shell;
  if ((await store.head(id)) > 0)
    note(io, io.err.dim(`Continue with: ${commandLine(shell, 'chat', '--session', id)}`));
}

/** Readable, and in the order they were begun: `chat-20261115-140207-a3f1`. */
function newSessionId(): string {
  const time = new Date().toISOString().slice(0, 19).replace(/[-:]/g, '').replace('T', '-');
  return `chat-${time}-${randomBytes(2).toString('hex')}`;
}
