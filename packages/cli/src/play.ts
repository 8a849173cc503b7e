/**
 * Plays a run for the person who started the command: shows it, asks or answers its questions, and says how it ended.
 */
import type { Agent, Decision, RunStream } from 'allium';
import { type EndingSignal, endingOf } from './ending.js';
import { untilItFits } from './inbox.js';
import { codeOf, describeError, EXIT, exitCodeOf, exitCodeOfError } from './outcome.js';
import { commandLine, isOpen, type Shell, tellStack } from './shell.js';
import { note, printJson, write } from './terminal/io.js';
import { logLine } from './terminal/text.js';
import { approveAll, askPerson, describeRequest } from './view/ask.js';
import { jsonView } from './view/json.js';
import { liveView } from './view/live.js';
import { type Asker, type Ended, follow, type View } from './view/view.js';

export interface PlayOptions {
  readonly json?: boolean;
  readonly quiet?: boolean;
  /** Approve every tool call. */
  readonly yes?: boolean;
  /** What was answered before, by the id of the call. */
  readonly decided?: ReadonlyMap<string, Decision>;
  /** Why nobody can answer once the command has ended, and what to do about it. */
  readonly forgets?: string;
}

/** What every run of the command line is started with. */
export interface PlayedRun {
  readonly signal: AbortSignal;
  readonly onRequest: Asker;
}

export async function play(
  shell: Shell,
  agent: Agent,
  { json = false, quiet = false, yes = false, forgets, decided }: PlayOptions,
  start: (run: PlayedRun) => RunStream,
): Promise<Ended> {
  const { io, redact, redactError } = shell;
  const view: View = json
    ? {
        ...jsonView((line) => write(io, 'stdout', line), redact, redactError),
        log: (line) => note(io, redact(logLine(line))),
      }
    : liveView(io, { quiet, redact, redactError, ...(decided && { decided }) });
  const asks = untilItFits(agent, askPerson, (problem) => note(io, io.err.red(redact(problem))));
  // If nobody can be asked, the run is suspended until somebody has answered.
  const answerer = yes ? approveAll('--yes') : io.interactive && !json ? asks : undefined;
  const ask: Asker = async (request, { signal }) => answerer?.(io, request, signal);
  const ended = await follow((onRequest) => start({ signal: io.signal, onRequest }), view, { ask });
  const ending = endingOf(io.signal);
  if (ending) await tellHowToResume(shell, agent, ended, ending, forgets);
  else report(shell, ended, json, forgets);
  return ended;
}

/** The journal says whether there is a run to resume: it may not have begun, or have ended before the signal came. */
async function tellHowToResume(
  shell: Shell,
  agent: Agent,
  { result }: Ended,
  by: EndingSignal,
  forgets: string | undefined,
): Promise<void> {
  const id = result?.sessionId;
  const open = id !== undefined && forgets === undefined && (await isOpen(agent.store, id));
  const rest = open ? ` Continue the run: ${commandLine(shell, 'sessions', 'resume', id)}` : '';
  note(shell.io, `Ended by ${by}.${rest}`);
}

function report(shell: Shell, { result, error }: Ended, json: boolean, forgets: string | undefined): void {
  const { io } = shell;
  shell.exitCode = result ? exitCodeOf(result.status) : exitCodeOfError(error);
  if (error !== undefined && shell.exitCode !== EXIT.aborted) {
    const message = shell.redactError(describeError(error));
    if (json) printJson(io, { type: 'error', code: codeOf(error), message }, 0);
    note(io, `${io.err.red('error')}: ${message}`);
    tellStack(shell, error);
  }
  if (result?.status !== 'suspended' || json) return;
  for (const request of result.pending)
    for (const line of describeRequest(request)) note(io, io.err.yellow(shell.redact(line)));
  note(
    io,
    forgets !== undefined
      ? `Nobody can answer later: ${forgets}`
      : `Answer with: ${commandLine(shell, 'approve', result.sessionId)}`,
  );
}
