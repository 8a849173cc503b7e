/** `allium approve`: answers what suspended runs ask, and lets them go on. */
import type { Decision, PendingRequest, Session } from 'allium';
import { inboxOf, problemWith, untilItFits } from '../inbox.js';
import { EXIT, UsageError } from '../outcome.js';
import { type PlayOptions, play } from '../play.js';
import {
  type AddCommand,
  allSessions,
  commandLine,
  findSession,
  type Shell,
  tell,
  tellJson,
  unlessDamaged,
  withAgent,
} from '../shell.js';
import { note, print } from '../terminal/io.js';
import { askPerson, describeRequest, parsed } from '../view/ask.js';

interface Options extends PlayOptions {
  readonly all?: boolean;
  readonly reject?: string | true;
  readonly edit?: string;
  readonly respond?: string;
  readonly request?: string;
  readonly resume: boolean;
}

export const addApprove: AddCommand = (program, shell) => {
  program
    .command('approve')
    .summary('answer what a suspended run asks, and let it go on')
    .description(
      'Without a session: lists what waits for an answer. With one: asks about each open question on a terminal, or ' +
        'answers as the options say, and goes on with the run.',
    )
    .argument('[session]')
    .option('--all', 'approve every open question')
    .option('--reject [reason]', 'reject instead; the model reads the reason')
    .option('--edit <json>', 'approve with these arguments instead')
    .option('--respond <text>', 'answer in the place of the tool')
    .option('--request <id>', 'only this question')
    .option('--no-resume', 'leave the answer for whoever resumes the run')
    .option('-q, --quiet', 'the answer of the run and nothing else')
    .option('--json', 'print as JSON: the open questions, or the events of the run')
    .action((session: string | undefined, options: Options) =>
      session === undefined ? listOpen(shell, options.json === true) : approve(shell, session, options),
    );
};

async function listOpen(shell: Shell, json: boolean): Promise<void> {
  const { io } = shell;
  await withAgent(shell, {}, async ({ agent, store }) => {
    const open: { sessionId: string; request: PendingRequest }[] = [];
    for await (const { sessionId, tenant } of allSessions(store)) {
      // What another tenant is asked is not for this one to see.
      if (tenant !== agent.tenant) continue;
      const inbox = await unlessDamaged(shell, () => inboxOf(agent, sessionId));
      for (const request of inbox?.open ?? []) open.push({ sessionId, request });
    }
    if (json) return tellJson(shell, open);
    if (open.length === 0) return note(io, 'Nothing waits for an answer.');
    for (const { sessionId, request } of open) {
      for (const line of describeRequest(request)) tell(shell, line);
      const answer = commandLine(shell, 'approve', sessionId);
      print(io, io.out.dim(`  request ${request.id}, answer with: ${answer}`));
    }
  });
}

async function approve(shell: Shell, wanted: string, options: Options): Promise<void> {
  const { io } = shell;
  await withAgent(shell, {}, async ({ agent, store }) => {
    const id = await findSession(store, wanted);
    const session = agent.session(id);
    const goOn = commandLine(shell, 'sessions', 'resume', id);
    const { open } = await inboxOf(agent, id);
    const asked = open.filter((request) => options.request === undefined || request.id === options.request);
    if (asked.length === 0)
      throw new UsageError(
        options.request === undefined
          ? `Nothing in session "${id}" waits for an answer. To go on with it: ${goOn}`
          : `Session "${id}" has no open question "${options.request}". Open: ${open.map((one) => one.id).join(', ') || 'none'}.`,
      );
    const left = await answerAll(shell, session, asked, options);
    if (left > 0) {
      shell.exitCode = EXIT.suspended;
      return note(io, 'Left open. The run stays suspended.');
    }
    if (!options.resume) return note(io, `Answered. Go on with: ${goOn}`);
    const { decided } = await inboxOf(agent, id);
    await play(shell, agent, { ...options, decided }, (run) => session.resumeStream(run));
  });
}

/** Posts the answers; returns how many questions somebody did not want to answer now. */
async function answerAll(
  shell: Shell,
  session: Session,
  requests: readonly PendingRequest[],
  options: Options,
): Promise<number> {
  const fixed = decisionOf(options);
  if (!fixed && !shell.io.interactive)
    throw new UsageError('There is no terminal to ask on. Say --all, --reject, --edit or --respond.');
  if (fixed && !options.all && requests.length > 1 && options.reject === undefined)
    throw new UsageError(
      `There are ${requests.length} open questions. Say which with --request: ${requests.map(({ id }) => id).join(', ')}.`,
    );
  const ask = untilItFits(session.agent, askPerson, (problem) => note(shell.io, shell.redact(problem)));
  for (const request of fixed ? requests : []) {
    const problem = await problemWith(session.agent, request, fixed!);
    if (problem !== undefined) throw new UsageError(`${problem}. The question stays open.`);
  }
  let left = 0;
  for (const request of requests) {
    const decision = fixed ? { ...fixed, hash: request.hash } : await ask(shell.io, request);
    if (decision) await session.answer(request.id, decision);
    else left++;
  }
  return left;
}

function decisionOf({ all, reject, edit, respond }: Options): Decision | undefined {
  const given = [all, reject, edit, respond].filter((one) => one !== undefined);
  if (given.length > 1)
    throw new UsageError('Say one of --all, --reject, --edit and --respond, not several.');
  if (reject !== undefined) return { type: 'reject', ...(reject !== true && { reason: reject }) };
  if (respond !== undefined) return { type: 'respond', text: respond };
  if (all) return { type: 'approve' };
  if (edit === undefined) return undefined;
  const args = parsed(edit);
  if (args === undefined) throw new UsageError(`--edit takes JSON, got: ${edit}`);
  return { type: 'edit', args };
}
