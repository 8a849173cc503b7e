/** What people answer comes from outside: it is journaled as guards and hooks leave it, and judged once. */

import { judgeArguments } from './call-verdicts.js';
import type { Plan } from './compose.js';
import { RunContext } from './context.js';
import type { Due } from './inbox.js';
import { type Admission, judge, judgesMessages, type Refusal } from './incoming.js';
import { textOf, userMessage } from './messages.js';
import type { Run } from './run.js';
import type { Overlay } from './state.js';
import type { Decision, EntryBody, PendingRequest } from './store.js';

type Answers = ReadonlyMap<string, Decision>;

/** Does anything judge what this answer says? */
export function isJudged(plan: Plan, decision: Decision): boolean {
  if (decision.type === 'edit') return plan.guards['tool-args'].length > 0;
  return saidIn(decision) !== undefined && judgesMessages(plan);
}

/** What is left of an answer, and what hooks wrote to their cells, which goes into the append of the answer. */
export interface Admitted {
  readonly decision: Decision;
  readonly written?: Overlay | undefined;
}

/** `before`: what was written about an answer that is appended together with this one. */
export async function admit(
  run: Run,
  request: PendingRequest,
  given: Decision,
  before?: Overlay,
): Promise<Admitted> {
  if (!isJudged(run.plan, given)) return { decision: given };
  if (given.type === 'edit') return { decision: await admitEdit(run, request, given) };
  const message = userMessage(saidIn(given)!);
  const judged = await judge(run, message, [message], before);
  return { decision: admitted(given, judged), ...('message' in judged && { written: judged.written }) };
}

/** Arguments are judged once more before they run, like those of a model after a resume. */
async function admitEdit(
  run: Run,
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

/** What an answer says in the words of whoever gave it. */
function saidIn(decision: Decision): string | undefined {
  if (decision.type === 'respond') return decision.text;
  return decision.type === 'reject' ? decision.reason : undefined;
}

function admitted(given: Decision, judged: Admission | Refusal): Decision {
  if ('reason' in judged) return { type: 'reject', reason: `The answer was refused: ${judged.reason}` };
  const text = textOf(judged.message);
  return given.type === 'respond' ? { ...given, text } : { type: 'reject', reason: text };
}

/**
 * Takes over the answers that came with a resume or were posted before it. Those in the inbox are taken from it together
 * with what is left of them: a crash loses none.
 */
export async function takeAnswers(run: Run, due: Due | undefined): Promise<void> {
  const { runId, open } = run;
  const answers = new Map([...(due?.answers ?? NONE), ...(run.unjudged ?? NONE)]);
  const entries: EntryBody[] = [];
  const written: Overlay[] = [];
  for (const [requestId, given] of answers) {
    const left = await admit(run, open.requests.get(requestId)!, given, written.at(-1));
    const judged = isJudged(run.plan, given) && { admitted: true as const };
    entries.push({ type: 'answer', runId, requestId, decision: left.decision, ...judged });
    if (left.written) written.push(left.written);
  }
  for (const one of written) run.cells.stage(one);
  if (due) entries.push(...due.entries);
  if (entries.length > 0) await run.append(entries);
  run.unjudged = undefined;
}

/**
 * What of the inbox is taken over where a run goes to wait. Nobody judges there any more: answers that have to be stay in
 * the inbox with all that came with them, and those that came with a resume which a run layer kept from going on are put
 * there.
 */
export async function leaveAnswers(run: Run, due: Due | undefined): Promise<readonly EntryBody[]> {
  const { runId, plan, store, sessionId, open } = run;
  for (const [requestId, decision] of (run.loop === 'to come' && run.unjudged) || NONE) {
    const at = open.requests.get(requestId)!.createdAt;
    await store.post(sessionId, { type: 'answer', requestId, decision, at });
  }
  const answers = [...(due?.answers ?? NONE)];
  if (answers.some(([, decision]) => isJudged(plan, decision))) return [];
  const taken = answers.map(([requestId, decision]): EntryBody => {
    return { type: 'answer', runId, requestId, decision };
  });
  return [...taken, ...(due?.entries ?? [])];
}

const NONE: Answers = new Map();
