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

/** What is wrong with an answer, in a sentence, before the question is used up. */
export async function problemWith(
  { plan }: Agent,
  request: PendingRequest,
  decision: Decision,
): Promise<string | undefined> {
  const { problemWithAnswer } = await import('allium/kit');
  return problemWithAnswer(
    request,
    decision,
    plan.tools.find(({ name }) => name === request.toolName),
  );
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
