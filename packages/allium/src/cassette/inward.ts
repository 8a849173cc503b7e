/** What a layer hands inward that `next()` has no override for: another tool, and an ear for its progress. */
import type { ToolCallOwner, ToolCallSubject, ToolContext } from '../kernel/context/context.js';
import type { Next, ToolOverride } from '../kernel/protocol/middleware.js';
import type { Tool, ToolResult } from '../kernel/protocol/tool.js';

type NextTool = Next<ToolResult, ToolOverride>;

/** Goes inward with `tool` in the place of the one that was called: everything else about the call stays as it is. */
export function nextWithTool(ctx: ToolContext, tool: Tool, next: NextTool): Promise<ToolResult> {
  const { assistantMessage, toolCall, _owner } = ctx._of;
  return nextWith(ctx, { assistantMessage, toolCall, tool, _owner }, next);
}

export type Progress = Parameters<ToolContext['update']>;

/** Goes inward and tells `heard` what the tool shows while it works. */
export function nextHearing(
  ctx: ToolContext,
  heard: (...progress: Progress) => void,
  next: NextTool,
): Promise<ToolResult> {
  const { assistantMessage, toolCall, tool, _owner } = ctx._of;
  return nextWith(ctx, { assistantMessage, toolCall, tool, _owner: new Hearing(_owner, heard) }, next);
}

/** The call, with an ear for its progress. */
class Hearing implements ToolCallOwner {
  constructor(
    private readonly owner: ToolCallOwner,
    private readonly heard: (...progress: Progress) => void,
  ) {}

  get idempotencyKey(): string {
    return this.owner.idempotencyKey;
  }

  suspend(...asked: Parameters<ToolCallOwner['suspend']>): ReturnType<ToolCallOwner['suspend']> {
    return this.owner.suspend(...asked);
  }

  update(
    ...[ctx, partial, details]: Parameters<ToolCallOwner['update']>
  ): ReturnType<ToolCallOwner['update']> {
    const shown = this.owner.update(ctx, partial, details);
    this.heard(partial, details);
    return shown;
  }
}

/** `next()` forks the context before it returns: what is set for that moment is seen further in, and nowhere else. */
function nextWith(ctx: ToolContext, of: ToolCallSubject, next: NextTool): Promise<ToolResult> {
  const own = ctx._of;
  ctx._of = of;
  try {
    return next();
  } finally {
    ctx._of = own;
  }
}
