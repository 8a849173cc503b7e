/** What a tool layer passes inward that `next()` has no override for: another tool, and a listener for progress. */
import { internal, type ToolCallOwner, type ToolCallSubject } from '../kernel/context/context.js';
import type { ToolResult } from '../kernel/messages/tool-result.js';
import type { ToolContext } from '../kernel/protocol/contexts.js';
import type { Next, ToolOverride } from '../kernel/protocol/middleware.js';
import { looksBackOf, type Tool } from '../kernel/protocol/tool.js';

type NextTool = Next<ToolResult, ToolOverride>;

/** Calls `next()` with another tool instead of the one that was called. Everything else about the call stays. */
export function nextWithTool(ctx: ToolContext, tool: Tool, next: NextTool): Promise<ToolResult> {
  const { assistantMessage, toolCall, _owner } = internal(ctx)._of;
  return nextWith(ctx, { assistantMessage, toolCall, tool, _owner }, next);
}

/**
 * The same tool, doing something else. Which messages it reads is known as before: the kernel judges by the parameters of
 * `execute`, and those of a wrapper say nothing.
 */
export function withExecute(tool: Tool, execute: Tool['execute']): Tool {
  const looksBack = looksBackOf(tool);
  return { ...tool, execute, ...(looksBack !== undefined && { looksBack }) };
}

/** What a tool shows while it works: the arguments of its `ctx.update()`. */
export type ToolProgress = Parameters<ToolContext['update']>;

/** Calls `next()` and passes what the tool shows while it works to `heard`. */
export function nextWithProgress(
  ctx: ToolContext,
  heard: (...progress: ToolProgress) => void,
  next: NextTool,
): Promise<ToolResult> {
  const { assistantMessage, toolCall, tool, _owner } = internal(ctx)._of;
  return nextWith(ctx, { assistantMessage, toolCall, tool, _owner: new Hearing(_owner, heard) }, next);
}

/** The call, with a listener for its progress. */
class Hearing implements ToolCallOwner {
  constructor(
    private readonly owner: ToolCallOwner,
    private readonly heard: (...progress: ToolProgress) => void,
  ) {}

  get idempotencyKey(): string {
    return this.owner.idempotencyKey;
  }

  suspend(...asked: Parameters<ToolCallOwner['suspend']>): ReturnType<ToolCallOwner['suspend']> {
    return this.owner.suspend(...asked);
  }

  update(...given: Parameters<ToolCallOwner['update']>): ReturnType<ToolCallOwner['update']> {
    const [, partial, details] = given;
    const shown = this.owner.update(...given);
    this.heard(partial, details);
    return shown;
  }
}

/** `next()` forks the context before it returns, so what is set during that moment is only seen further in. */
function nextWith(given: ToolContext, of: ToolCallSubject, next: NextTool): Promise<ToolResult> {
  const ctx = internal(given);
  const own = ctx._of;
  ctx._of = of;
  try {
    return next();
  } finally {
    ctx._of = own;
  }
}
