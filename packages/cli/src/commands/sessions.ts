/** `allium sessions`: conversations in the store of the config. */
import { type Entry, type Message, type SessionInfo, textOf, toolCallsOf } from 'allium';
import type { Command } from 'commander';
import { inboxOf } from '../inbox.js';
import { UsageError } from '../outcome.js';
import { type PlayOptions, play } from '../play.js';
import {
  type AddCommand,
  allSessions,
  commandLine,
  findSession,
  positive,
  type Shell,
  statusOf,
  tell,
  tellJson,
  unlessDamaged,
  withAgent,
  withStore,
} from '../shell.js';
import { note, print, printJson } from '../terminal/io.js';
import { askWhether } from '../terminal/prompts.js';
import { block, moment, short, table, word } from '../terminal/text.js';

export const addSessions: AddCommand = (program, shell) => {
  const sessions = program
    .command('sessions')
    .summary('list, show, fork, delete and resume sessions, and what waits in them')
    .description(
      'Sessions are conversations in the store of the config. An id may be shortened as long as it is ' +
        'clear which one is meant; without an id the session that was used last is taken.',
    );
  sessions
    .command('list', { isDefault: true })
    .summary('newest first')
    // The default command gets what is no command: without this Commander would only count the words.
    .allowExcessArguments()
    .option('-n, --limit <number>', 'at most so many', positive, 20)
    .option('--json', 'print them as JSON')
    .action((options: { limit: number; json?: boolean }, command: Command) => {
      if (command.args.length > 0)
        throw new UsageError(
          `There is no "allium sessions ${command.args[0]}". There are: ${sessions.commands.map((one) => one.name()).join(', ')}.`,
        );
      return list(shell, options.limit, options.json === true);
    });
  sessions
    .command('show')
    .summary('print the messages of a session')
    .argument('[id]')
    .option('--json', 'print the messages as JSON')
    .action((id: string | undefined, options: { json?: boolean }) => show(shell, id, options.json === true));
  sessions
    .command('queue')
    .summary('list the messages that no run has taken in yet, or take one back')
    .argument('[id]')
    .option('--remove <message>', 'take this message back, by its id in the list')
    .option('--json', 'print them as JSON')
    .action((id: string | undefined, options: QueueOptions) => queue(shell, id, options));
  sessions
    .command('fork')
    .summary('copy a session, to go on from there in another way')
    .argument('<id>')
    .option('--as <id>', 'the id of the copy', undefined)
    .option('--at <seq>', 'copy only the entries up to this one (`seq` in `allium trace --json`)', positive)
    .option('--json', 'print the id of the copy as JSON')
    .action((id: string, options: ForkOptions) => fork(shell, id, options));
  sessions
    .command('delete')
    .summary('delete sessions for good')
    .argument('<id...>')
    .option('-y, --yes', 'do not ask')
    .action((ids: string[], options: { yes?: boolean }) => remove(shell, ids, options.yes === true));
  sessions
    .command('resume')
    .summary('go on with a run that was suspended or broke off')
    .argument('[id]')
    .option('-q, --quiet', 'the answer and nothing else')
    .option('-y, --yes', 'approve every tool call without asking')
    .option('--json', 'print events, one JSON object per line')
    .action((id: string | undefined, options: PlayOptions) => resume(shell, id, options));
};

async function list(shell: Shell, limit: number, json: boolean): Promise<void> {
  await withStore(shell, async (store) => {
    const found: (SessionInfo & { status: string; title: string })[] = [];
    for await (const info of allSessions(store)) {
      if (found.length === limit) break;
      const entries = await unlessDamaged(shell, () => store.read(info.sessionId, 1));
      found.push({ ...info, status: entries ? statusOf(entries) : 'damaged', title: titleOf(entries ?? []) });
    }
    if (json) return tellJson(shell, found);
    if (found.length === 0) return note(shell.io, 'There are no sessions yet in the store of this config.');
    const rows = found.map((one) => [word(one.sessionId), moment(one.updatedAt), one.status, one.title]);
    for (const line of table([['SESSION', 'LAST USED', 'STATUS', 'BEGAN WITH'], ...rows])) tell(shell, line);
  });
}

async function show(shell: Shell, wanted: string | undefined, json: boolean): Promise<void> {
  await withStore(shell, async (store) => {
    const id = await findSession(shell, store, wanted);
    const messages = messagesOf(await store.read(id, 1));
    if (json) return tellJson(shell, messages);
    note(shell.io, shell.io.err.dim(`session ${word(id)}`));
    for (const message of messages) for (const line of messageLines(message)) tell(shell, line);
  });
}

interface QueueOptions {
  readonly remove?: string;
  readonly json?: boolean;
}

async function queue(shell: Shell, wanted: string | undefined, options: QueueOptions): Promise<void> {
  const { remove, json = false } = options;
  await withAgent(shell, {}, async ({ agent, store }) => {
    const id = await findSession(shell, store, wanted);
    const session = agent.session(id);
    if (remove !== undefined && !(await session.removeQueued(remove)))
      throw new UsageError(
        `No message "${remove}" waits in session "${id}". See ${commandLine(shell, 'sessions', 'queue', id)}`,
      );
    const waiting = await session.queued();
    if (json) return tellJson(shell, waiting);
    if (waiting.length === 0) return note(shell.io, `No message waits in session ${id}.`);
    const rows = waiting.map((one) => [one.id, one.kind, short(textOf(one.message), 60)]);
    for (const line of table([['MESSAGE', 'KIND', 'SAYS'], ...rows])) tell(shell, line);
  });
}

interface ForkOptions {
  readonly as?: string;
  readonly at?: number;
  readonly json?: boolean;
}

async function fork(shell: Shell, wanted: string, options: ForkOptions): Promise<void> {
  await withStore(shell, async (store) => {
    const id = await findSession(shell, store, wanted);
    const head = await store.head(id);
    const at = options.at ?? head;
    if (at > head)
      throw new UsageError(`Session "${id}" has ${head} entries, so it cannot be copied up to ${at}.`);
    const copy = options.as ?? (await freeId(`${id}-fork`, async (name) => (await store.head(name)) > 0));
    if ((await store.head(copy)) > 0) throw new UsageError(`There is a session "${copy}" already.`);
    await store.fork(id, at, copy);
    if (options.json) printJson(shell.io, { sessionId: copy });
    else print(shell.io, copy);
  });
}

async function remove(shell: Shell, wanted: readonly string[], yes: boolean): Promise<void> {
  const { io } = shell;
  await withStore(shell, async (store) => {
    const ids: string[] = [];
    for (const one of wanted) ids.push(await findSession(shell, store, one));
    if (!yes) {
      if (!io.interactive)
        throw new UsageError(`This deletes ${ids.join(', ')} for good. Say --yes if you mean it.`);
      const sure = await askWhether(io, `Delete ${ids.map(word).join(', ')} for good?`, false);
      if (sure !== true) return note(io, 'Nothing was deleted.');
    }
    for (const id of ids) {
      await store.delete(id);
      note(io, `deleted ${word(id)}`);
    }
  });
}

async function resume(shell: Shell, wanted: string | undefined, options: PlayOptions): Promise<void> {
  await withAgent(shell, {}, async ({ agent, store }) => {
    const id = await findSession(shell, store, wanted);
    const status = statusOf(await store.read(id, 1));
    if (status !== 'suspended' && status !== 'open')
      throw new UsageError(
        `Session "${id}" has no run to go on with (${status}). Say something new: ${commandLine(shell, 'run', '--session', id, '…')}`,
      );
    const { decided } = await inboxOf(agent, id);
    await play(shell, agent, { ...options, decided }, (run) => agent.session(id).resumeStream(run));
  });
}

export function messagesOf(entries: readonly Entry[]): Message[] {
  let messages: Message[] = [];
  for (const entry of entries) {
    if (entry.type === 'message' || entry.type === 'tool_finished') messages.push(entry.message);
    if (entry.type === 'rewind') messages = upTo(messages, entry.to);
  }
  return messages;
}

/** A history never ends among the results of a batch, which stand in the order in which they came. */
function upTo(messages: readonly Message[], id: string | null): Message[] {
  let length = messages.findIndex((message) => message.id === id) + 1;
  if (messages[length - 1]?.role === 'tool') while (messages[length]?.role === 'tool') length++;
  return messages.slice(0, length);
}

function titleOf(entries: readonly Entry[]): string {
  const first = messagesOf(entries).find(({ role }) => role === 'user');
  return first ? short(textOf(first), 60) : '';
}

function messageLines(message: Message): string[] {
  const who =
    message.role === 'tool'
      ? `tool ${word(message.toolName)}${message.isError ? ' (error)' : ''}`
      : message.role;
  const calls = message.role === 'assistant' ? toolCallsOf(message) : [];
  const text = block(textOf(message));
  return [
    ...(text === '' ? [] : [`${who}: ${text}`]),
    ...calls.map(({ name, arguments: args }) => `${who} calls ${word(name)} ${short(args, 200)}`),
  ];
}

async function freeId(base: string, taken: (id: string) => Promise<boolean>): Promise<string> {
  for (let n = 1; ; n++) {
    const id = n === 1 ? base : `${base}-${n}`;
    if (!(await taken(id))) return id;
  }
}
