/** What the history says about calls that never get a result of their own. */
import type { OpenRun } from '../journal/journaled-run.js';
import { deepFreeze, type Message, type ToolMessage, textOf } from '../messages/messages.js';
import { errorResult, type ToolResult } from '../messages/tool-result.js';
import { inDoubtPolicy, type Tool } from '../protocol/tool.js';

/** What decides whether calls of an agent may have begun. */
interface Executor {
  readonly toolExecution: 'parallel' | 'sequential';
}

const IN_DOUBT = 'In doubt: ';
const PERHAPS = 'May have run, result unknown: ';

/** The result of a call that had begun, and nobody knows whether it took effect. */
export function inDoubt(name: string): ToolResult {
  const result = errorResult(
    `${IN_DOUBT}"${name}" had started when the run was interrupted, so it may or may not have taken effect. It was not run again.`,
  );
  made.add(result);
  return result;
}

const made = new WeakSet<ToolResult>();

/** Did the kernel make this result? The words of a tool or hook may begin alike. */
export function isInDoubt(result: ToolResult): boolean {
  return made.has(result);
}

/** Why a call will get no other result. It did not run, or nobody knows. */
export function withoutResult(why: string, mayHaveRun: boolean): string {
  return `${mayHaveRun ? PERHAPS : 'Not run: '}${why}`;
}

/** Does this result say that its call may have run, and nobody knows what came of it? */
export function mayHaveRun(result: Pick<Message, 'content'>): boolean {
  const text = textOf(result);
  return text.startsWith(IN_DOUBT) || text.startsWith(PERHAPS);
}

/**
 * Is somebody being asked whether a call may happen? Then nothing of its batch has begun. Not if another call has a
 * result already, or a sub-agent asks: then the question is about arguments that a layer wrote.
 */
export function isAsked({ requests, batch }: OpenRun): boolean {
  const asked = [...requests.values()];
  return asked.some(({ kind }) => kind === 'ask') && batch?.answered === 0 && !asked.some(({ from }) => from);
}

/** Does the run only wait for answers? A call that has begun and does not ask may be under way in another process. */
export function onlyWaits({ requests, batch }: OpenRun): boolean {
  return (
    requests.size > 0 && !batch?.calls.some(({ id }, i) => !batch.results[i] && batch.started.includes(id))
  );
}

/** Does the call wait for an answer, and not a sub-agent of it? Then its tool starts from the top after the answer. */
function waitsItself({ requests }: OpenRun, id: string): boolean {
  return [...requests.values()].some(({ callId, from }) => callId === id && !from);
}

/**
 * May a call without a result have begun before this process took over the run? The start of a tool that may be run
 * again isn't journaled.
 */
export function mayHaveBegun(
  open: OpenRun,
  index: number,
  tools: readonly Tool[],
  agent?: Executor,
): boolean {
  const { calls, results } = open.batch!;
  const toolOf = ({ name }: { readonly name: string }) => tools.find((tool) => tool.name === name);
  if (inDoubtPolicy(toolOf(calls[index]!)) === 'fail') return false;
  if (isAsked(open) || waitsItself(open, calls[index]!.id)) return false;
  if (agent?.toolExecution !== 'sequential' && !calls.some((call) => toolOf(call)?.sequential)) return true;
  // Calls run one after the other, so only the next one may have begun, unless the one before it stopped the run.
  return !open.stop && results.indexOf(undefined) === index;
}

/** The result of a call that gets no other. */
export interface Unanswered {
  readonly type: 'tool_finished';
  readonly runId: string;
  readonly message: ToolMessage;
}

/** A result for every open call of a run, with the reason why it will get no other. */
export function unanswered(
  open: OpenRun,
  why: string,
  tools: readonly Tool[] = [],
  agent?: Executor,
): Unanswered[] {
  const { runId, batch, count } = open;
  if (!batch) return [];
  return [...batch.calls.entries()]
    .filter(([index]) => !batch.results[index])
    .map(([index, { id, name }]): Unanswered => {
      const { content, isError } = batch.started.includes(id)
        ? inDoubt(name)
        : errorResult(withoutResult(why, mayHaveBegun(open, index, tools, agent)));
      const number = count + 1 + index;
      const message = { role: 'tool' as const, toolCallId: id, toolName: name, content, isError };
      return { type: 'tool_finished', runId, message: deepFreeze({ id: `${runId}.${number}`, ...message }) };
    });
}
