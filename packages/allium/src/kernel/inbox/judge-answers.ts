/** Judges people's answers once, like any input, and journals them as guards and hooks left them. */

import type { Overlay } from '../context/cells.js';
import { RunContext } from '../context/context.js';
import { judgeArguments } from '../guards/call-verdicts.js';
import type { Refusal } from '../guards/refusal.js';
import type { OpenRun } from '../journal/journaled-run.js';
import { textOf, userMessage } from '../messages/messages.js';
import type { Plan } from '../protocol/middleware.js';
import type { Decision, EntryBody, PendingRequest } from '../protocol/store.js';
import type { Answer } from './answers.js';
import type { Due } from './inbox.js';
import type { InboxRun } from './inbox-run.js';
import { type Admission, judgeIncoming, judgesMessages } from './incoming.js';

/** Does anything judge what this answer says? */
export function isJudged(plan: Plan, decision: Decision): boolean {
  if (decision.type === 'edit') return plan.guards['tool-args'].length > 0;
  return saidIn(decision) !== undefined && judgesMessages(plan);
}

/** An answer after judging. What hooks wrote to cells goes into the same append. */
export interface Admitted {
  readonly decision: Decision;
  readonly written?: Overlay | undefined;
}

/** Judges an answer. `before`: cell writes about an answer in the same append. */
export async function judgeAnswer(
  run: InboxRun,
  request: PendingRequest,
  given: Decision,
  before?: Overlay,
): Promise<Admitted> {
  if (!isJudged(run.plan, given)) return { decision: given };
  if (given.type === 'edit') return { decision: await judgeEdit(run, request, given) };
  const message = userMessage(saidIn(given)!);
  const judged = await judgeIncoming(run, message, [message], before);
  return { decision: admitted(given, judged), ...('message' in judged && { written: judged.written }) };
}

/** Judges edited arguments. They are judged again before the call runs, like the model's after a resume. */
async function judgeEdit(
  run: InboxRun,
  { callId, toolName }: PendingRequest,
  given: Decision & { readonly type: 'edit' },
): Promise<Decision> {
  const text = JSON.stringify(given.args);
  const toolCall = { type: 'tool-call', id: callId, name: toolName, arguments: text } as const;
  const ctx = new RunContext(run, run.scope, []);
  const { arguments: kept, deny } = await judgeArguments(toolCall, ctx);
  if (deny) return { type: 'reject', reason: deny.reason };
  return kept === text ? given : { ...given, args: JSON.parse(kept) };
}

/** The text of an answer, if it has one. */
function saidIn(decision: Decision): string | undefined {
  if (decision.type === 'respond') return decision.text;
  return decision.type === 'reject' ? decision.reason : undefined;
}

function admitted(given: Decision, judged: Admission | Refusal): Decision {
  if ('reason' in judged) return { type: 'reject', reason: `The answer was refused: ${judged.reason}` };
  const text = textOf(judged.message);
  return given.type === 'respond' ? { ...given, text } : { type: 'reject', reason: text };
}

/** Is every open question answered? */
export function answersAll({ requests }: OpenRun, due: Due | undefined): due is Due {
  if (!due || requests.size === 0) return false;
  for (const id of requests.keys()) if (!due.answers.has(id)) return false;
  return true;
}

/** Takes answers out of the inbox and journals them in one append, so that a crash loses none. */
export async function takeAnswers(run: InboxRun, due: Due): Promise<void> {
  const { runId, open } = run;
  const entries: EntryBody[] = [];
  const written: Overlay[] = [];
  for (const [requestId, { decision, postId }] of due.answers) {
    const left = await judgeAnswer(run, open.requests.get(requestId)!, decision, written.at(-1));
    const judged = isJudged(run.plan, decision);
    entries.push(answerEntry(runId, requestId, { decision: left.decision, postId }, judged));
    if (left.written) written.push(left.written);
  }
  for (const one of written) run.cells.stage(one);
  await run.append([...entries, ...due.entries]);
}

/**
 * The entries for answers that arrived while the run was being suspended. Nothing is judged any more at that point, so if one
 * must be judged, everything stays in the inbox.
 */
export function leaveAnswers({ runId, plan }: InboxRun, due: Due | undefined): readonly EntryBody[] {
  if (!due) return [];
  const answers = [...due.answers];
  if (answers.some(([, { decision }]) => isJudged(plan, decision))) return [];
  return [...answers.map(([requestId, answer]) => answerEntry(runId, requestId, answer)), ...due.entries];
}

export function answerEntry(
  runId: string,
  requestId: string,
  { decision, postId }: Answer,
  admitted = false,
): EntryBody {
  return {
    type: 'answer',
    runId,
    requestId,
    decision,
    ...(admitted && { admitted }),
    ...(postId !== undefined && { postId }),
  };
}
