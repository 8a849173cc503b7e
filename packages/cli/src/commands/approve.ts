/** `allium approve`: answers the questions of suspended runs and continues them. */
import type { Decision, PendingRequest, Session } from 'allium';
import { type Inbox, inboxOf, isAskedAbove, problemWith, untilItFits } from '../inbox.js';
import { EXIT, UsageError } from '../outcome.js';
import { type PlayOptions, play } from '../play.js';
import {
  type AddCommand,
  allSessions,
  commandLine,
  findSession,
  isOpen,
  type Opened,
  type Shell,
  tell,
  tellJson,
  unlessDamaged,
  withAgent,
} from '../shell.js';
import { note, print } from '../terminal/io.js';
import { word } from '../terminal/text.js';
import { askPerson, describeRequest, parsed } from '../view/ask.js';

interface Options extends PlayOptions {
  readonly all?: boolean;
  readonly remember?: boolean;
  readonly rememberArguments?: boolean;
  readonly reject?: string | true;
  readonly edit?: string;
  readonly respond?: string;
  readonly request?: string;
  readonly resume: boolean;
}

export const addApprove: AddCommand = (program, shell) => {
  program
    .command('approve')
    .summary('answer the questions of a suspended run, and continue it')
    .description(
      'Without a session: lists what waits for an answer. With one: asks about each open question on a terminal, or ' +
        'answers as the options say, and continues the run. Options that answer need no session if only one waits.',
    )
    .argument('[session]')
    .option('--all', 'approve every open question')
    .option('--remember', 'approve, and do not ask about these tools again in this session')
    .option('--remember-arguments', 'approve, and do not ask about calls with the same arguments again')
    .option('--reject [reason]', 'reject instead; the model reads the reason')
    .option('--edit <json>', 'approve with these arguments instead')
    .option('--respond <text>', 'answer in place of the tool')
    .option('--request <id>', 'answer only this question')
    .option('--no-resume', 'only store the answer, and do not resume the run')
    .option('-q, --quiet', 'print only the answer of the run')
    .option('--json', 'print as JSON: the open questions, or the events of the run')
    .action((session: string | undefined, options: Options) =>
      session === undefined && !answers(options)
        ? listOpen(shell, options.json === true)
        : approve(shell, session, options),
    );
};

/** With one of these options, an answer is wanted. A list with exit code 0 would look like one. */
function answers(options: Options): boolean {
  const { all, remember, rememberArguments, reject, edit, respond, request, resume } = options;
  const given = [all, remember, rememberArguments, reject, edit, respond, request];
  return !resume || given.some((one) => one !== undefined);
}

interface Question {
  readonly sessionId: string;
  readonly request: PendingRequest;
}

async function listOpen(shell: Shell, json: boolean): Promise<void> {
  const { io } = shell;
  await withAgent(shell, {}, async (opened) => {
    const open = await openQuestions(shell, opened);
    if (json) return tellJson(shell, open);
    if (open.length === 0) return note(io, NOTHING_WAITS);
    for (const question of open) {
      for (const line of describeRequest(question.request)) tell(shell, line);
      print(io, io.out.dim(howToAnswer(shell, question)));
    }
  });
}

const NOTHING_WAITS = 'Nothing waits for an answer.';

/** Newest session first. */
async function openQuestions(shell: Shell, { agent, store }: Opened): Promise<Question[]> {
  const inboxes = new Map<string, Inbox>();
  for await (const { sessionId, tenant } of allSessions(store)) {
    // The questions of another tenant are not for this one to see.
    if (tenant !== agent.tenant) continue;
    const inbox = await unlessDamaged(shell, () => inboxOf(agent, sessionId));
    if (inbox && inbox.asked.length > 0) inboxes.set(sessionId, inbox);
  }
  return [...inboxes]
    .filter(([sessionId]) => !isAskedAbove(sessionId, inboxes))
    .flatMap(([sessionId, { open }]) => open.map((request) => ({ sessionId, request })));
}

function howToAnswer(shell: Shell, { sessionId, request }: Question): string {
  return `  request ${request.id}, answer with: ${commandLine(shell, 'approve', sessionId)}`;
}

/** The one session that waits, or that has the question. If there are several, nobody said which one is meant. */
async function waitingSession(shell: Shell, opened: Opened, options: Options): Promise<string> {
  const { io } = shell;
  const { request, quiet } = options;
  await refuseSessionAsReason(shell, opened, options);
  const open = await openQuestions(shell, opened);
  if (open.length === 0) throw new UsageError(NOTHING_WAITS);
  const meant = open.filter((one) => request === undefined || one.request.id === request);
  const [id, ...others] = new Set(meant.map(({ sessionId }) => sessionId));
  if (id !== undefined && others.length === 0) {
    if (!quiet) note(io, io.err.dim(`session ${word(id)}`));
    return id;
  }
  const problem =
    id === undefined
      ? `No session has an open question "${request}". Open:`
      : `${others.length + 1} sessions wait for an answer. Nothing was answered: name the one you mean.`;
  const listed = (id === undefined ? open : meant).flatMap((one) => [
    ...describeRequest(one.request),
    howToAnswer(shell, one),
  ]);
  throw new UsageError([problem, ...listed].join('\n'));
}

/** `--reject ann` would take the session for the reason, and reject what another one asks. */
async function refuseSessionAsReason(shell: Shell, { store }: Opened, { reject }: Options): Promise<void> {
  if (typeof reject !== 'string') return;
  for await (const { sessionId } of allSessions(store))
    if (sessionId === reject)
      throw new UsageError(
        `"${reject}" is a session, but it is where --reject expects the reason. Write: ${commandLine(shell, 'approve', reject, '--reject')}`,
      );
}

async function approve(shell: Shell, wanted: string | undefined, options: Options): Promise<void> {
  const { io } = shell;
  await withAgent(shell, {}, async (opened) => {
    const { agent, store } = opened;
    const id =
      wanted === undefined
        ? await waitingSession(shell, opened, options)
        : await findSession(shell, store, wanted);
    const session = agent.session(id);
    const goOn = commandLine(shell, 'sessions', 'resume', id);
    const { open } = await inboxOf(agent, id);
    const asked = open.filter((request) => options.request === undefined || request.id === options.request);
    if (asked.length === 0)
      throw new UsageError(
        options.request === undefined
          ? `Nothing in session "${id}" waits for an answer.${(await isOpen(store, id)) ? ` To continue it: ${goOn}` : ''}`
          : `Session "${id}" has no open question "${options.request}". Open: ${open.map((one) => one.id).join(', ') || 'none'}.`,
      );
    const left = await answerAll(shell, session, asked, options);
    if (left > 0) {
      shell.exitCode = EXIT.suspended;
      return note(io, 'Left open. The run stays suspended.');
    }
    if (await isTaken(session, asked)) return note(io, 'Answered. The run continues where it waits.');
    if (!options.resume) return note(io, `Answered. Continue with: ${goOn}`);
    const { decided } = await inboxOf(agent, id);
    await play(shell, agent, { ...options, decided }, (run) => session.resumeStream(run));
  });
}

/** A run that waits at a prompt elsewhere looks for answers several times a second, and continues there. */
const TAKEN_MS = 600;

async function isTaken(session: Session, answered: readonly PendingRequest[]): Promise<boolean> {
  for (const end = Date.now() + TAKEN_MS; Date.now() < end; ) {
    const open = new Set((await session.pending()).map(({ id }) => id));
    if (answered.some(({ id }) => !open.has(id))) return true;
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  return false;
}

/** Posts the answers. Returns how many questions the person left open. */
async function answerAll(
  shell: Shell,
  session: Session,
  requests: readonly PendingRequest[],
  options: Options,
): Promise<number> {
  const fixed = decisionOf(options);
  if (!fixed && !shell.io.interactive)
    throw new UsageError(
      'There is no terminal to ask in. Pass --all, --remember, --remember-arguments, --reject, --edit or --respond.',
    );
  if (fixed && !options.all && requests.length > 1 && options.reject === undefined)
    throw new UsageError(
      `There are ${requests.length} open questions. Choose one with --request: ${requests.map(({ id }) => id).join(', ')}.`,
    );
  const ask = untilItFits(session.agent, askPerson, (problem) => note(shell.io, shell.redact(problem)));
  for (const request of fixed ? requests : []) {
    const problem = await problemWith(session.agent, request, fixed!);
    if (problem !== undefined) throw new UsageError(`${problem} The question stays open.`);
  }
  let left = 0;
  for (const request of requests) {
    const decision = fixed ? { ...fixed, hash: request.hash } : await ask(shell.io, request);
    if (decision) await session.answer(request.id, decision);
    else left++;
  }
  return left;
}

function decisionOf(options: Options): Decision | undefined {
  const { all, remember, rememberArguments, reject, edit, respond } = options;
  // `--all` says which questions are answered; with these two it doesn't say how.
  const approves = remember === undefined && rememberArguments === undefined ? all : undefined;
  const given = [approves, remember, rememberArguments, reject, edit, respond].filter(
    (one) => one !== undefined,
  );
  if (given.length > 1)
    throw new UsageError(
      'Pass only one of --all, --remember, --remember-arguments, --reject, --edit and --respond.',
    );
  if (reject !== undefined) return { type: 'reject', ...(reject !== true && { reason: reject }) };
  if (respond !== undefined) return { type: 'respond', text: respond };
  if (remember) return { type: 'approve', remember: 'tool' };
  if (rememberArguments) return { type: 'approve', remember: 'arguments' };
  if (all) return { type: 'approve' };
  if (edit === undefined) return undefined;
  const args = parsed(edit);
  if (args === undefined) throw new UsageError(`--edit takes JSON, got: ${edit}`);
  return { type: 'edit', args };
}
