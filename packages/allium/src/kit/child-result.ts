/** What the caller gets of a child run: its outcome as a tool result, and its events. */

import { internal } from '../kernel/context/context.js';
import { deepFreeze } from '../kernel/messages/messages.js';
import { type ToolResult, toolResult } from '../kernel/messages/tool-result.js';
import type { ToolContext } from '../kernel/protocol/contexts.js';
import type { AgentEvent } from '../kernel/protocol/events.js';
import type { Awaitable } from '../kernel/protocol/store.js';
import type { ChildOutcome } from './child-run.js';

/** The result of a tool call that ran a child: its answer or what went wrong, with its session and text in `details`. */
export function childResult(outcome: ChildOutcome, events?: readonly unknown[]): ToolResult {
  const { agent, sessionId: agentId, status, stop, text } = outcome;
  const why = stop.message ?? stop.reason;
  const error =
    status === 'done'
      ? undefined
      : `Sub-agent "${agent.name}" ${HOW[status]} (${status === 'stopped' ? stop.reason : status}): ${why}`;
  const last = error && text ? `\nIts last answer was: ${text}` : '';
  const details = deepFreeze({
    agentId,
    text,
    ...(events && { events }),
    ...(error !== undefined && { error }),
  });
  if (outcome.error !== undefined) failures.set(details, outcome.error);
  return toolResult({
    content: error === undefined ? text || '(no output)' : error + last,
    isError: error !== undefined,
    details,
  });
}

/** By the details of the result, which copies of it share. */
const failures = new WeakMap<object, unknown>();

/** The error of the sub-agent whose result this is, if it failed in this process. */
export function childFailure({ details }: Pick<ToolResult, 'details'>): unknown {
  return typeof details === 'object' && details !== null ? failures.get(details) : undefined;
}

const HOW = { stopped: 'did not finish', error: 'failed', aborted: 'was cancelled' } as const;

/**
 * Puts an event of a child into the parent's stream, as an update of the call. Deltas of messages are left out: the whole
 * message follows.
 */
export function forwardChildEvent(ctx: ToolContext, event: AgentEvent, sessionId: string): Awaitable<void> {
  if (event.type === 'message_update' || event.type === 'message_reset') return;
  // Only those who watch the child get the error object; further out its message is enough.
  if (event.type === 'tool_execution_end' && event.error !== undefined) {
    const { error: _, ...told } = event;
    return forwardChildEvent(ctx, told, sessionId);
  }
  const own = internal(ctx);
  return own._of._owner.update(own, event.type, { agentId: sessionId, event }, true);
}
