/** Calls are written down before they begin: after a crash, those without a result are in doubt. */
import type { AssistantMessage } from '../messages/messages.js';
import { ENTRY_VERSION, type EntryDraft } from '../protocol/store.js';
import { inDoubtPolicy, type Tool } from '../protocol/tool.js';
import type { ModelRun } from './model-run.js';

/**
 * Is the start of these calls journaled with the message that makes them? That saves a write per turn. Not if
 * something decides about calls in between, and not if none of them could be in doubt.
 */
export function startsWithMessage(run: ModelRun, message: AssistantMessage, tools: readonly Tool[]): boolean {
  const { plan, agent } = run;
  if (
    plan.decidesOnCalls ||
    agent.toolExecution === 'sequential' ||
    run.toolCallsLeft() !== Number.POSITIVE_INFINITY
  )
    return false;
  let matters = false;
  const { content } = message;
  for (let i = 0; i < content.length; i++) {
    const part = content[i]!;
    if (part.type !== 'tool-call') continue;
    const tool = run.findTool(part.name, tools);
    // They don't all begin at once, so each is journaled when it does.
    if (tool?.sequential || tool?.concurrency !== undefined) return false;
    if (inDoubtPolicy(tool) === 'fail') matters = true;
  }
  return matters;
}

/** The entry for a call that begins by itself. */
export function startOf(runId: string, messageId: string, callId: string): EntryDraft {
  return { v: ENTRY_VERSION, at: 0, type: 'tool_started', runId, messageId, callId };
}
