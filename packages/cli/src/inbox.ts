/** The questions of a suspended run, and the answers that are waiting for it. */
import { type Agent, type Decision, type PendingRequest, withStoreTimeout } from 'allium';
import type { Shell } from './shell.js';
import { note } from './terminal/io.js';
import { short, word } from './terminal/text.js';
import type { Answerer } from './view/ask.js';

export interface Inbox {
  /** Every question of the run, answered or not. */
  readonly asked: readonly PendingRequest[];
  /** Those without an answer so far. */
  readonly open: readonly PendingRequest[];
  /** What was answered, by the id of the call. */
  readonly decided: ReadonlyMap<string, Decision>;
}

export async function inboxOf(agent: Agent, sessionId: string): Promise<Inbox> {
  const asked = await agent.session(sessionId).pending();
  const decided = new Map<string, Decision>();
  if (asked.length === 0) return { asked, open: asked, decided };
  const answers = new Map<string, Decision>();
  // The first answer is the one that counts.
  for (const { item } of await withStoreTimeout(agent.store).take(sessionId, 0))
    if (item.type === 'answer' && !answers.has(item.requestId)) answers.set(item.requestId, item.decision);
  for (const { id, callId } of asked) if (answers.has(id)) decided.set(callId, answers.get(id)!);
  return { asked, open: asked.filter(({ id }) => !answers.has(id)), decided };
}

/** Does a session above this one ask the same? A sub-agent is answered through its caller, who continues it. */
export function isAskedAbove(sessionId: string, inboxes: ReadonlyMap<string, Inbox>): boolean {
  for (const [above, { asked }] of inboxes)
    if (
      sessionId.startsWith(`${above}/`) &&
      asked.some(({ from }) => from && `${from.sessionId}/`.startsWith(`${sessionId}/`))
    )
      return true;
  return false;
}

/** A new message replaces the run that waits. */
export async function warnOfOpen({ io, redact }: Shell, agent: Agent, id: string): Promise<void> {
  const titles = (await inboxOf(agent, id)).open.map(({ title, toolName }) => title ?? `Run "${toolName}"?`);
  if (titles.length > 0)
    note(
      io,
      io.err.yellow(
        redact(
          `warning: session "${word(id)}" waited for an answer, which this run gives up: ${titles.map((title) => short(title)).join(', ')}`,
        ),
      ),
    );
}

/**
 * A sentence about what is wrong with an answer: the question doesn't accept it, or the arguments don't fit the tool,
 * if that is known. Checked before the question is used up: the run itself would only tell the model.
 */
export async function problemWith(
  agent: Agent,
  { toolName, decisions, remember }: PendingRequest,
  decision: Decision,
): Promise<string | undefined> {
  if (decisions && !decisions.includes(decision.type))
    return `The question about "${toolName}" takes ${decisions.join(', ')}, and not ${decision.type}.`;
  if (decision.type === 'approve' && decision.remember && remember === false)
    return `The question about "${toolName}" is asked every time. Approve it without remembering.`;
  const tool = agent.plan.tools.find(({ name }) => name === toolName);
  if (decision.type !== 'edit' || !tool) return undefined;
  const { issues } = await tool.input['~standard'].validate(decision.args);
  if (!issues) return undefined;
  const lines = issues.map(({ message: written, path = [] }) => {
    // Some schemas end their messages with a full stop, others don't.
    const message = written.replace(/\.$/, '');
    const keys = path.map((step) => String(typeof step === 'object' ? step.key : step));
    return keys.length > 0 ? `${keys.join('.')}: ${message}` : message;
  });
  return `These arguments do not fit "${toolName}": ${lines.join('; ')}.`;
}

/** Asks again as long as the answer does not fit the tool. */
export function untilItFits(agent: Agent, answerer: Answerer, tell: (problem: string) => void): Answerer {
  return async (io, request, signal) => {
    for (;;) {
      const decision = await answerer(io, request, signal);
      const problem = decision && (await problemWith(agent, request, decision));
      if (problem === undefined) return decision;
      tell(problem);
    }
  };
}
