/** Puts the questions of a run to a person, or answers them for one. */
import { isCancel, select, text } from '@clack/prompts';
import type { Decision, PendingRequest } from 'allium';
import { type Io, note } from '../terminal/io.js';
import { plain } from '../terminal/text.js';

/** Undefined: not now, the run is suspended. */
export type Answerer = (io: Io, request: PendingRequest) => Promise<Decision | undefined>;

/** What is asked about. The arguments in full: nobody should approve what they were not shown. */
export function describeRequest(request: PendingRequest): string[] {
  const title = request.title ?? `Run "${request.toolName}"?`;
  const lines = [plain(title), `  ${request.toolName} ${plain(request.arguments)}`];
  if (request.details !== undefined) lines.push(`  ${plain(JSON.stringify(request.details) ?? '')}`);
  return lines;
}

/** Approves everything, and says so. */
export function approveAll(why: string): Answerer {
  return async (io, request) => {
    if (request.kind === 'suspend') return undefined;
    note(io, io.err.yellow(`  ? ${plain(request.title ?? request.toolName)} approved (${why})`));
    return { type: 'approve', hash: request.hash };
  };
}

/** Asks on the terminal. */
export async function askPerson(io: Io, request: PendingRequest): Promise<Decision | undefined> {
  const common = { input: io.stdin, output: io.stderr, signal: io.signal };
  const choice = await select({
    ...common,
    message: describeRequest(request).join('\n'),
    options: [
      ...(request.kind === 'ask' ? [] : [{ value: 'respond', label: 'Answer' }]),
      { value: 'approve', label: 'Approve' },
      { value: 'reject', label: 'Reject' },
      ...(request.kind === 'ask' ? [{ value: 'edit', label: 'Change the arguments' }] : []),
      { value: 'later', label: 'Decide later', hint: 'suspends the run' },
    ],
  });
  const { hash } = request;
  switch (choice) {
    case 'approve':
      return { type: 'approve', hash };
    case 'reject': {
      const reason = await text({ ...common, message: 'Why not? The model reads it.', defaultValue: '' });
      return isCancel(reason) ? undefined : { type: 'reject', hash, ...(reason && { reason }) };
    }
    case 'edit': {
      const args = await text({
        ...common,
        message: 'The arguments, as JSON',
        initialValue: request.arguments,
        validate: (value) => (parsed(value ?? '') === undefined ? 'That is not JSON.' : undefined),
      });
      return isCancel(args) ? undefined : { type: 'edit', hash, args: parsed(args) };
    }
    case 'respond': {
      const answer = await text({ ...common, message: 'Your answer' });
      return isCancel(answer) ? undefined : { type: 'respond', hash, text: answer };
    }
    default:
      return undefined;
  }
}

/** JSON, or undefined. */
export function parsed(json: string): unknown {
  try {
    return JSON.parse(json);
  } catch {
    return undefined;
  }
}
