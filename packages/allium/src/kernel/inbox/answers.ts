/** Checks answers to questions: whether they are valid, and whether they still count. */

import type { OpenRun } from '../journal/journaled-run.js';
import { takes } from '../journal/merged-questions.js';
import { AlliumError, shown } from '../lib/errors.js';
import { copyOf, type Flaw, toJson } from '../lib/frozen-json.js';
import * as kinds from '../lib/kinds.js';
import { type Fields, wrongFieldValue } from '../lib/shapes.js';
import { describeIssues } from '../messages/standard-schema.js';
import type { Plan } from '../protocol/middleware.js';
import type { Decision, Entry, PendingRequest, Posted } from '../protocol/store.js';

/** Each type of answer in words, and its own fields. */
const ANSWERS: Readonly<Record<Decision['type'], readonly [form: string, fields: Fields]>> = {
  approve: [
    "{ type: 'approve', remember: 'tool' | 'arguments' }",
    { remember: kinds.oneOf('tool', 'arguments') },
  ],
  edit: ["{ type: 'edit', args } with the new arguments", { args: kinds.required(kinds.anything) }],
  reject: ["{ type: 'reject', reason } with a reason that is text", { reason: kinds.text }],
  respond: ["{ type: 'respond', text } with text", { text: kinds.required(kinds.text) }],
};
const TYPES = Object.keys(ANSWERS);

/** An answer, and the post it came with. */
export interface Answer {
  readonly decision: Decision;
  readonly postId?: string | undefined;
}

/** A copy of the answer. Throws unless it fits the question, is complete, in time, and JSON, since it is journaled. */
export function checkAnswer(
  request: PendingRequest,
  decision: Decision,
  now: number,
  relayed = false,
): Decision {
  const own = ownDecision(request.id, decision);
  checkFits(request, own, now, relayed);
  return own;
}

/** A copy of the answer. Throws unless it is complete and JSON. */
export function ownDecision(requestId: string, decision: Decision): Decision {
  const fail = (expected: string): AlliumError =>
    new AlliumError('INVALID_OPTION', `Expected ${expected}, got ${shown(decision)}.`, {
      data: { requestId },
    });
  if (!TYPES.includes(decision?.type))
    throw fail(`a decision { type: ${TYPES.map((type) => `'${type}'`).join(' | ')} }`);
  const [form, own] = ANSWERS[decision.type];
  if (wrongFieldValue(own, decision)) throw fail(form);
  const fields = ['type', 'hash', ...Object.keys(own)];
  const unknown = Object.keys(decision).find((key) => !fields.includes(key));
  if (unknown !== undefined)
    throw fail(`a decision of type '${decision.type}' with ${fields.join(', ')} and no \`${unknown}\``);
  return toJson(decision, requestId, notJson);
}

/** The same for all answers of a resume. */
export function ownDecisions(given: Readonly<Record<string, Decision>>): Record<string, Decision> {
  return Object.fromEntries(Object.entries(given).map(([id, decision]) => [id, ownDecision(id, decision)]));
}

/** Throws unless the answer is for what was asked, of an accepted type, and in time. `relayed`: to a sub-agent. */
export function checkFits(request: PendingRequest, decision: Decision, now: number, relayed = false): void {
  const { hash } = decision;
  // The caller's session has checked it. If it was refused or too late there, it is a rejection here.
  if (!relayed || decision.type !== 'reject') checkTaken(request, decision);
  if (decision.type === 'approve' && decision.remember && request.kind !== 'ask')
    throw new AlliumError(
      'INVALID_OPTION',
      `The answer to "${request.id}" cannot be remembered: the tool itself asked, in the middle of its work, and may ask something else next time. Leave \`remember\` out.`,
      { data: { requestId: request.id } },
    );
  if (hash !== undefined && hash !== request.hash) {
    throw new AlliumError(
      'REQUEST_MISMATCH',
      `The answer to "${request.id}" is for different arguments than the question was about. Show the person the current request and answer that.`,
    );
  }
  if (hasLapsed(request, now)) throw unknownRequest(request.id, []);
}

function checkTaken(request: PendingRequest, decision: Decision): void {
  const { id, decisions, remember } = request;
  const remembers = decision.type === 'approve' && decision.remember !== undefined;
  const problem = !takes(request, decision.type)
    ? `It takes ${decisions!.join(', ')} and not ${decision.type}.`
    : remembers && remember === false
      ? 'It is asked every time: leave `remember` out.'
      : undefined;
  if (problem === undefined) return;
  throw new AlliumError(
    'DECISION_NOT_ALLOWED',
    `The answer to "${id}" was not accepted, and the question is still open. ${problem}`,
    { data: { requestId: id, ...(decisions && { decisions }), ...(remember !== undefined && { remember }) } },
  );
}

/**
 * Throws for edited arguments that the tool can't take, while their author can still correct them. Once a run has taken
 * them, only the model reads what is wrong. Skipped unless the tool is certain: a hook, a layer, a middleware that came
 * with the run, or a sub-agent may have brought another tool of that name.
 */
export async function checkEdit(
  { toolsByName, rules, names }: Plan,
  { batch, plan }: OpenRun,
  { id, kind, from, toolName }: PendingRequest,
  decision: Decision,
): Promise<void> {
  if (decision.type !== 'edit' || kind !== 'ask' || from) return;
  const others =
    rules.resolveToolCall.length > 0 || batch?.offered || plan.some((name) => !names.includes(name));
  const tool = others ? undefined : toolsByName.get(toolName);
  const checked = await tool?.input['~standard'].validate(copyOf(decision.args));
  if (!checked?.issues) return;
  throw new AlliumError(
    'INVALID_OPTION',
    `The answer to "${id}" was not accepted, and the question is still open. Invalid arguments for "${toolName}":\n${describeIssues(checked.issues)}`,
    { data: { requestId: id } },
  );
}

function notJson(requestId: string, { what, at }: Flaw): AlliumError {
  return new AlliumError(
    'INVALID_OPTION',
    `Expected a decision of JSON values only, got ${what}${at && ` at ${at}`}. Give plain data.`,
    { data: { requestId, path: at } },
  );
}

/** The answers in an inbox that count: the first valid one to each open question. */
export function firstAnswers(
  posted: readonly Posted[],
  open: ReadonlyMap<string, PendingRequest>,
  now: number,
): Map<string, Answer> {
  const answers = new Map<string, Answer>();
  const claimed = new Set<string>();
  for (const { item } of posted) {
    if (item.type === 'claim') claimed.add(item.requestId);
    const request = item.type === 'answer' && !answers.has(item.requestId) && open.get(item.requestId);
    if (!request || (claimed.has(request.id) && !item.relayed)) continue;
    try {
      const decision = checkAnswer(request, item.decision, item.at ?? now, item.relayed);
      answers.set(request.id, { decision, postId: item.postId });
    } catch {
      // session.answer() would have thrown. For other posts the question just stays open.
    }
  }
  return answers;
}

/** The same for one question. */
export function firstAnswer(
  posted: readonly Posted[],
  request: PendingRequest,
  now: number,
): Answer | undefined {
  return firstAnswers(posted, new Map([[request.id, request]]), now).get(request.id);
}

/** Does this entry close the question? An answer was taken, the run has ended, or something else is asked instead. */
export function settles(entry: Entry, { id, runId }: PendingRequest): boolean {
  if (entry.type === 'answer') return entry.requestId === id;
  if (entry.type === 'request') return entry.replaces?.includes(id) === true;
  return entry.type === 'run_end' && entry.runId === runId;
}

/** Nobody answered in time: the call counts as rejected. */
export function hasLapsed({ timeoutMs, createdAt }: PendingRequest, now: number): boolean {
  return timeoutMs !== undefined && now > createdAt + timeoutMs;
}

export function unknownRequest(requestId: string, open: readonly PendingRequest[]): AlliumError {
  return new AlliumError(
    'REQUEST_UNKNOWN',
    `There is no open request ${shown(requestId)}: it was never asked, has been answered, or has lapsed. ${listed(open)}`,
    { data: { requestId } },
  );
}

/** Somebody else answered first. `open`: other questions. */
export function cameTooLate(requestId: string, open: readonly PendingRequest[]): AlliumError {
  return new AlliumError(
    'REQUEST_UNKNOWN',
    `The answer to "${requestId}" came too late and does not count: somebody else answered first, or the question is no longer open. ${listed(open)}`,
    { data: { requestId, late: true } },
  );
}

function listed(open: readonly PendingRequest[]): string {
  return open.length > 0 ? `Open: ${open.map(({ id }) => id).join(', ')}.` : 'None is open.';
}
