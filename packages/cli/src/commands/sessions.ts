/** `allium sessions`: conversations in the store of the config. */
import { Agent, type Entry, type Message, type SessionInfo, type Store, textOf, toolCallsOf } from 'allium';
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
    .summary('look at sessions; fork, resume, cancel, delete and prune them')
    .description(
      'Sessions are conversations in the store of the config. You can shorten an id as long as it ' +
        'matches only one session. Without an id, the session that was used last is taken.',
    );
  sessions
    .command('list', { isDefault: true })
    .summary('list the sessions, newest first')
    // The default command gets unknown commands: without this, Commander would only count the words.
    .allowExcessArguments()
    .option('-n, --limit <number>', 'list at most this many', positive, 20)
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
    .command('allowances')
    .summary('list what was approved for the rest of a session, or take it back')
    .argument('[id]')
    .option('--revoke <allowance>', 'take this one back, by its id in the list')
    .option('--json', 'print them as JSON')
    .action((id: string | undefined, options: AllowanceOptions) => allowances(shell, id, options));
  sessions
    .command('fork')
    .summary('copy a session, to continue from there in another way')
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
    .command('prune')
    .summary('delete sessions that were not used for some time')
    .requiredOption('--older-than <time>', 'last used so long ago or longer: 12h, 30d or 8w', duration)
    .option('--tenant <name>', 'only sessions of this tenant')
    .option('--include-open', 'also those with a run that waits or broke off')
    .option('--dry-run', 'list them and delete nothing')
    .option('-y, --yes', 'do not ask')
    .option('--json', 'print what was found and deleted as JSON')
    .action((options: PruneFlags) => prune(shell, options));
  sessions
    .command('resume')
    .summary('continue a run that was suspended or broke off')
    .argument('[id]')
    .option('-q, --quiet', 'print only the answer')
    .option('-y, --yes', 'approve every tool call without asking')
    .option('--json', 'print events, one JSON object per line')
    .action((id: string | undefined, options: PlayOptions) => resume(shell, id, options));
  sessions
    .command('cancel')
    .summary('end the run of a session: one that waits for an answer, or one in another process')
    .argument('<id>')
    .option('--reason <text>', 'why, for the result and the history')
    .option('--json', 'print as JSON whether it has ended')
    .action((id: string, options: CancelOptions) => cancel(shell, id, options));
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

interface AllowanceOptions {
  readonly revoke?: string;
  readonly json?: boolean;
}

async function allowances(
  shell: Shell,
  wanted: string | undefined,
  { revoke, json = false }: AllowanceOptions,
): Promise<void> {
  await withAgent(shell, {}, async ({ agent, store }) => {
    const id = await findSession(shell, store, wanted);
    const session = agent.session(id);
    if (revoke !== undefined && !(await session.revoke(revoke)))
      throw new UsageError(
        `Session "${id}" has no allowance "${revoke}". See ${commandLine(shell, 'sessions', 'allowances', id)}`,
      );
    const allowed = await session.allowances();
    if (json) return tellJson(shell, allowed);
    if (allowed.length === 0)
      return note(
        shell.io,
        `Nothing is remembered as approved in session ${word(id)}: every question is asked.`,
      );
    const rows = allowed.map(({ id: one, toolName, arguments: args, agent: from, at }) => [
      word(one),
      from === undefined ? word(toolName) : `${word(toolName)} (${word(from)})`,
      args === undefined ? 'any' : block(args),
      moment(at),
    ]);
    for (const line of table([['ALLOWANCE', 'TOOL', 'ARGUMENTS', 'SINCE'], ...rows])) tell(shell, line);
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
    await revokeIn(store, id, copy);
    if (options.json) printJson(shell.io, { sessionId: copy });
    else print(shell.io, copy);
  });
}

/** What was revoked since that point, or is about to be, isn't allowed in the copy either. */
async function revokeIn(store: Store, original: string, copy: string): Promise<void> {
  const begun = (await store.read(original, 1)).find((entry) => entry.type === 'run_start');
  const tenant = begun?.type === 'run_start' ? begun.tenant : undefined;
  const { offlineModel } = await import('allium/models/offline');
  // Nobody is asked anything.
  const agent = new Agent({ model: offlineModel(), store, ...(tenant !== undefined && { tenant }) });
  const allowed = new Set((await agent.session(original).allowances()).map(({ id }) => id));
  const session = agent.session(copy);
  for (const { id } of await session.allowances()) if (!allowed.has(id)) await session.revoke(id);
}

async function remove(shell: Shell, wanted: readonly string[], yes: boolean): Promise<void> {
  const { io } = shell;
  await withStore(shell, async (store) => {
    const ids: string[] = [];
    for (const one of wanted) ids.push(await findSession(shell, store, one));
    if (!yes) {
      if (!io.interactive)
        throw new UsageError(`This deletes ${ids.join(', ')} for good. Pass --yes to confirm.`);
      const sure = await askWhether(io, `Delete ${ids.map(word).join(', ')} for good?`, false);
      if (sure !== true) return note(io, 'Nothing was deleted.');
    }
    for (const id of ids) {
      await store.delete(id);
      note(io, `deleted ${word(id)}`);
    }
  });
}

interface PruneFlags {
  readonly olderThan: number;
  readonly tenant?: string;
  readonly includeOpen?: boolean;
  readonly dryRun?: boolean;
  readonly yes?: boolean;
  readonly json?: boolean;
}

/** No minutes: an `m` might be meant as months. */
const UNITS: Readonly<Record<string, number>> = { h: 3_600_000, d: 86_400_000, w: 604_800_000 };

/** Milliseconds. */
function duration(text: string): number {
  const [, count, unit] = /^(\d+)([hdw])$/.exec(text) ?? [];
  if (count === undefined || unit === undefined)
    throw new UsageError(`Expected a time such as 12h, 30d or 8w, got "${text}".`);
  return Number(count) * UNITS[unit]!;
}

async function prune(shell: Shell, options: PruneFlags): Promise<void> {
  const { olderThan, tenant, includeOpen, dryRun = false, yes = false, json = false } = options;
  const { io } = shell;
  const { prunable, pruneSession } = await import('allium/stores/kit');
  await withStore(shell, async (store) => {
    const found: SessionInfo[] = [];
    const which = { before: Date.now() - olderThan, ...(tenant !== undefined && { tenant }) };
    for await (const info of prunable(store, { ...which, ...(includeOpen && { open: true }) }))
      found.push(info);
    if (found.length > 0 && !dryRun && !yes) {
      const many = found.length === 1 ? '1 session' : `${found.length} sessions`;
      if (!io.interactive)
        throw new UsageError(
          `This deletes ${many} for good. Pass --yes if you mean it, or --dry-run to see them.`,
        );
      if ((await askWhether(io, `Delete ${many} for good?`, false)) !== true)
        return note(io, 'Nothing was deleted.');
    }
    const deleted: string[] = [];
    for (const info of dryRun ? [] : found) {
      if (await pruneSession(store, info)) deleted.push(info.sessionId);
      if (deleted.length % PROGRESS === 0 && deleted.length > 0)
        note(io, `deleted ${deleted.length} of ${found.length}`);
    }
    if (json) return tellJson(shell, { found: found.map(({ sessionId }) => sessionId), deleted });
    if (dryRun)
      for (const { sessionId, updatedAt } of found) tell(shell, `${word(sessionId)}  ${moment(updatedAt)}`);
    note(io, dryRun ? `${found.length} would be deleted.` : `Deleted ${deleted.length} of ${found.length}.`);
  });
}

/** A line for every so many deleted sessions. */
const PROGRESS = 1000;

async function resume(shell: Shell, wanted: string | undefined, options: PlayOptions): Promise<void> {
  await withAgent(shell, {}, async ({ agent, store }) => {
    const id = await findSession(shell, store, wanted);
    const status = statusOf(await store.read(id, 1));
    if (status !== 'suspended' && status !== 'open')
      throw new UsageError(
        `Session "${id}" has no run to continue (${status}). Send a new message: ${commandLine(shell, 'run', '--session', id, '…')}`,
      );
    const { decided } = await inboxOf(agent, id);
    await play(shell, agent, { ...options, decided }, (run) => agent.session(id).resumeStream(run));
  });
}

interface CancelOptions {
  readonly reason?: string;
  readonly json?: boolean;
}

async function cancel(shell: Shell, wanted: string, { reason, json }: CancelOptions): Promise<void> {
  await withAgent(shell, {}, async ({ agent, store }) => {
    const id = await findSession(shell, store, wanted);
    const status = statusOf(await store.read(id, 1));
    if (status !== 'suspended' && status !== 'open')
      throw new UsageError(`Session "${id}" has no run to end (${status}).`);
    await agent.session(id).abort(reason);
    const ended = statusOf(await store.read(id, 1)) === 'aborted';
    if (json) return tellJson(shell, { sessionId: id, ended });
    note(
      shell.io,
      ended
        ? `The run of ${word(id)} has ended.`
        : `The run of ${word(id)} was told to end. If no process works on it, it ends when it is resumed.`,
    );
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

/** A history never ends among the results of a batch, which are in the order in which they arrived. */
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
