/**
 * Shows a run to a person. On a terminal the answer is streamed; in a pipe it is written once, when it is final, because
 * text in a pipe can't be taken back. Status lines go to stderr.
 */
import type { AgentEvent, Decision, RunResult } from 'allium';
import { type Io, note, write } from '../terminal/io.js';
import { makePieces } from '../terminal/pieces.js';
import type { Paper } from '../terminal/screen.js';
import { makeSpinner } from '../terminal/spinner.js';
import { count, dollars, logLine, seconds, short, word } from '../terminal/text.js';
import { callLine, changeLine, customLine, resultLine } from './status.js';
import { type View, withoutSecrets } from './view.js';

export interface LiveOptions {
  /** The answer and nothing else. */
  readonly quiet?: boolean;
  /** Whether pieces of the answer are shown as they come. @default on a terminal */
  readonly stream?: boolean;
  /** Removes secrets from status lines: those of others may contain one. @default nothing */
  readonly redact?: (text: string) => string;
  /** Removes them from why a run failed. @default `redact` */
  readonly redactError?: (text: string) => string;
  /** What was answered before the run continued, by the id of the call. @default nothing */
  readonly decided?: ReadonlyMap<string, Decision>;
  /** Milliseconds since some moment. */
  readonly now?: () => number;
}

/** The two streams of a command, kept from writing into each other's lines. */
function streams(io: Io): Paper & { endLine(): void } {
  let open = false;
  const endLine = (): void => {
    if (open) write(io, 'stdout', '\n');
    open = false;
  };
  return {
    text(piece) {
      if (piece === '') return;
      write(io, 'stdout', piece);
      open = !piece.endsWith('\n');
    },
    line(text) {
      endLine();
      note(io, text);
    },
    endLine,
  };
}

/** Shows a run to a person: the answer on stdout, everything else on stderr. */
export function liveView(io: Io, options: LiveOptions = {}): View {
  const { quiet = false, stream = io.stdout.isTTY === true, redact = (text) => text } = options;
  const { redactError = redact, now = () => performance.now() } = options;
  const decided = new Map(options.decided);
  const started = now();
  const spinner = makeSpinner(io, !quiet);
  const paper = streams(io);
  const inner = narrate(
    io,
    {
      text: (piece) => {
        if (stream) paper.text(piece);
      },
      line: (text) => {
        if (!quiet) paper.line(redact(text));
      },
    },
    now,
    decided,
  );
  let waitsFor: string | undefined;
  return {
    event(event, at = now(), asked = false) {
      spinner.stop();
      waitsFor = undefined;
      inner(event, at, asked);
      if (event.type === 'message_end') paper.endLine();
      if (event.type === 'agent_end') {
        if (!stream && event.result.text !== '') paper.text(`${event.result.text}\n`);
        const result = withoutSecrets(event.result, redact, redactError);
        if (!quiet) for (const line of summary(io, result, at - started)) paper.line(redact(line));
      } else if (!(event.type === 'message_update' && stream)) {
        waitsFor = waiting(event);
        spinner.start(waitsFor);
      }
    },
    pause() {
      spinner.stop();
      waitsFor = undefined;
      paper.endLine();
    },
    answer({ callId }, decision) {
      decided.set(callId, decision);
    },
    // Also when quiet: a logger in the chain is meant to be read, and it goes to stderr.
    log(line) {
      spinner.stop();
      paper.line(io.err.dim(`  ${redact(logLine(line))}`));
      if (waitsFor !== undefined) spinner.start(waitsFor);
    },
  };
}

/** Turns events into text and lines; the owner of the screen decides where they go. */
export function narrate(
  io: Io,
  paper: Paper,
  now: () => number,
  /** What was answered about calls, by their id: the line of a call says what is really done. */
  decided: ReadonlyMap<string, Decision> = new Map(),
): View['event'] {
  const begun = new Map<string, number>();
  /** Middleware that have reported themselves: the list at the end need not repeat them. */
  const heard = new Set<string>();
  const said = makePieces((text) => paper.text(text));
  return (event, at = now(), asked = false) => {
    // The question shows it; the outcome is shown when it is over.
    if (asked) return;
    switch (event.type) {
      case 'message_update':
        if (event.delta.type === 'text') said.add(event.delta.text);
        break;
      case 'message_reset':
        said.drop();
        paper.line(io.err.yellow('  ↺ the last answer is taken back'));
        break;
      case 'message_end':
        said.end();
        if (event.message?.metadata?.cacheHit === true) {
          heard.add('cache');
          paper.line(io.err.dim('  · cache: this answer was given before, and cost nothing'));
        }
        if (event.discarded) paper.line(io.err.yellow('  ↺ the answer was withheld'));
        break;
      case 'tool_execution_start':
        begun.set(event.toolCall.id, at);
        paper.line(callLine(io.err, event.toolCall, decided.get(event.toolCall.id)));
        break;
      case 'tool_execution_end': {
        const since = begun.get(event.toolCall.id);
        const ms = since === undefined ? undefined : at - since;
        // Somebody was asked about it: only now is it known what was done.
        if (since === undefined) paper.line(callLine(io.err, event.toolCall, decided.get(event.toolCall.id)));
        paper.line(resultLine(io.err, short(event.toolCall.name), event.message, ms));
        break;
      }
      case 'custom':
        if (event.by !== undefined) heard.add(event.by);
        paper.line(customLine(io.err, event));
        break;
      case 'agent_end':
        for (const change of event.result.changes)
          if (!heard.has(change.by)) paper.line(changeLine(io.err, change));
        break;
    }
  };
}

/** How a run ended: one line, and why if it stopped early. */
export function summary(io: Io, result: RunResult, ms: number): string[] {
  const { status, stop, turns, usage, costUsd, sessionId } = result;
  const facts = [
    count(turns, 'turn'),
    count(usage.totalTokens, 'token'),
    dollars(costUsd),
    seconds(ms),
    `session ${word(sessionId)}`,
  ];
  const why =
    status === 'done'
      ? ''
      : ` (${short([stop.by, stop.message ?? stop.reason].filter(Boolean).join(': '), 200)})`;
  const paint = status === 'done' ? io.err.green : status === 'error' ? io.err.red : io.err.yellow;
  return [`${paint(status)}${why} ${io.err.dim(`· ${facts.join(' · ')}`)}`];
}

function waiting(event: AgentEvent): string {
  if (event.type === 'tool_execution_start') return event.toolCall.name;
  if (event.type === 'tool_execution_update') return event.toolName;
  return 'thinking';
}
