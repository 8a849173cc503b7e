/** Asks a person the questions of a run, or answers them automatically. */
import { isDeepStrictEqual } from 'node:util';
import { type Decision, type PendingRequest, terminalJson } from 'allium';
import { type Io, note } from '../terminal/io.js';
import { askText, askWhich } from '../terminal/prompts.js';
import { block, word } from '../terminal/text.js';

/** Undefined: not now, so the run is suspended. */
export type Answerer = (
  io: Io,
  request: PendingRequest,
  signal?: AbortSignal,
) => Promise<Decision | undefined>;

/**
 * What is asked about: the arguments in full, with hidden characters spelled out. Nobody should approve what they
 * were not shown.
 */
export function describeRequest(request: PendingRequest): string[] {
  const title = request.title ?? `Run "${request.toolName}"?`;
  const lines = [block(title), `  ${word(request.toolName)} ${block(request.arguments)}`];
  const effective = request.effectiveArguments;
  if (effective !== undefined && !sameJson(effective, request.arguments))
    lines.push(`  runs as ${block(effective)}`);
  if (request.details !== undefined) lines.push(`  ${block(JSON.stringify(request.details) ?? '')}`);
  return lines;
}

/** Approves everything, and says so. */
export function approveAll(why: string): Answerer {
  return async (io, request) => {
    if (request.kind === 'suspend' || !takes(request, 'approve')) return undefined;
    note(io, io.err.yellow(`  ? ${block(request.title ?? request.toolName)} approved (${why})`));
    return { type: 'approve', hash: request.hash };
  };
}

export const SETTLED_ELSEWHERE = 'This question is settled: it was answered elsewhere, or its time is over.';

/** Not for an abort of the run, which is shown anyway. */
export function isSettled({ aborted, reason }: AbortSignal): boolean {
  return aborted && reason?.code === 'REQUEST_UNKNOWN';
}

/** Asks on the terminal, until somebody has answered elsewhere. */
export async function askPerson(
  io: Io,
  request: PendingRequest,
  signal?: AbortSignal,
): Promise<Decision | undefined> {
  if (!signal) return ask(io, request);
  const decision = await ask({ ...io, signal: AbortSignal.any([io.signal, signal]) }, request);
  if (!isSettled(signal)) return decision;
  note(io, io.err.yellow(`  ${SETTLED_ELSEWHERE}`));
  return undefined;
}

const ANSWERS = [
  { value: 'respond', label: 'Answer' },
  { value: 'approve', label: 'Approve' },
  { value: 'reject', label: 'Reject' },
  { value: 'edit', label: 'Change the arguments' },
  { value: 'remember', label: 'Approve for this session', hint: 'any call of this tool' },
  { value: 'remember-same', label: 'Always approve this', hint: 'the same arguments, in this session' },
] as const;

/**
 * Which answers a prompt offers for it. A question that a tool asks itself is not about arguments, and is asked every
 * time.
 */
export function takes(
  { kind, decisions, remember }: PendingRequest,
  answer: Decision['type'] | 'remember' | 'remember-same',
): boolean {
  const remembers = answer === 'remember' || answer === 'remember-same';
  if ((remembers || answer === 'edit') && kind !== 'ask') return false;
  if (remembers && remember === false) return false;
  const type = remembers ? 'approve' : answer;
  return decisions?.includes(type) ?? (type !== 'respond' || kind !== 'ask');
}

async function ask(io: Io, request: PendingRequest): Promise<Decision | undefined> {
  const choice = await askWhich(io, describeRequest(request).join('\n'), [
    ...ANSWERS.filter(({ value }) => takes(request, value)),
    { value: 'later', label: 'Decide later', hint: 'suspends the run' },
  ]);
  const { hash } = request;
  switch (choice) {
    case 'approve':
      return { type: 'approve', hash };
    case 'remember':
      return { type: 'approve', hash, remember: 'tool' };
    case 'remember-same':
      return { type: 'approve', hash, remember: 'arguments' };
    case 'reject': {
      const reason = await askText(io, 'Why not? The model reads it.', { defaultValue: '' });
      return reason === undefined ? undefined : { type: 'reject', hash, ...(reason && { reason }) };
    }
    case 'edit': {
      const args = await askText(io, 'The arguments, as JSON', {
        initialValue: editable(request.arguments),
        problem: (answer) => (parsed(answer) === undefined ? 'That is not JSON.' : undefined),
      });
      return args === undefined ? undefined : { type: 'edit', hash, args: parsed(args) };
    }
    case 'respond': {
      const answer = await askText(io, 'Your answer');
      return answer === undefined ? undefined : { type: 'respond', hash, text: answer };
    }
    default:
      return undefined;
  }
}

/** On one line, with hidden characters escaped as in JSON: what isn't changed stays the same. */
function editable(json: string): string {
  return terminalJson(json.replace(/[\n\r\t]/g, ' '));
}

function sameJson(one: string, other: string): boolean {
  return isDeepStrictEqual(parsed(one), parsed(other));
}

/** JSON, or undefined. */
export function parsed(json: string): unknown {
  try {
    return JSON.parse(json);
  } catch {
    return undefined;
  }
}
