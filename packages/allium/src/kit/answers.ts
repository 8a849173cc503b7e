/** Answers: whether one fits the question it is for. */
import { describeIssues } from '../kernel/messages/standard-schema.js';
import type { Decision, PendingRequest } from '../kernel/protocol/store.js';
import type { Tool } from '../kernel/protocol/tool.js';

/**
 * What is wrong with an answer, in a sentence: the question doesn't accept it, or edited arguments don't fit `tool`, if
 * that is known. Undefined if it fits. `session.answer()` refuses such answers itself if its agent has the tool; use
 * this where it hasn't, or to tell a person before the answer is given.
 */
export async function problemWithAnswer(
  { toolName, decisions, remember }: PendingRequest,
  decision: Decision,
  tool?: Tool,
): Promise<string | undefined> {
  if (decisions && !decisions.includes(decision.type))
    return `The question about "${toolName}" takes ${decisions.join(', ')}, and not ${decision.type}.`;
  if (decision.type === 'approve' && decision.remember && remember === false)
    return `The question about "${toolName}" is asked every time. Approve it without remembering.`;
  if (decision.type !== 'edit' || !tool) return undefined;
  const { issues } = await tool.input['~standard'].validate(decision.args);
  if (!issues) return undefined;
  // Some schemas end their messages with a full stop, others don't.
  const lines = issues.map((issue) => describeIssues([issue]).replace(/\.$/, ''));
  return `These arguments do not fit "${toolName}": ${lines.join('; ')}.`;
}
