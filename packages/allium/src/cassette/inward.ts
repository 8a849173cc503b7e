/** What a layer hands inward that `next()` has no override for: another tool, and an ear for its progress. */
import type { ToolCallHooks, ToolContext } from '../kernel/context.js';
import type { Next, ToolOverride } from '../kernel/middleware.js';
import type { Tool, ToolResult } from '../kernel/tool.js';

type NextTool = Next<ToolResult, ToolOverride>;
type Open = { -readonly [K in '_of' | '_hooks']: ToolContext[K] };

/** Goes inward with `tool` in the place of the one that was called: everything else about the call stays as it is. */
export function nextWithTool(ctx: ToolContext, tool: Tool, next: NextTool): Promise<ToolResult> {
  const { assistantMessage, toolCall, _keyed } = ctx._of;
  return nextWith(ctx, '_of', { assistantMessage, toolCall, tool, _keyed }, next);
}

export type Progress = Parameters<ToolContext['update']>;

/** Goes inward and tells `heard` what the tool shows while it works. */
export function nextHearing(
  ctx: ToolContext,
  heard: (...progress: Progress) => void,
  next: NextTool,
): Promise<ToolResult> {
  const { _hooks: hooks } = ctx;
  const hearing: ToolCallHooks = {
    suspend: (inner, request) => hooks.suspend(inner, request),
    update(inner, partial, details) {
      const shown = hooks.update(inner, partial, details);
      heard(partial, details);
      return shown;
    },
  };
  return nextWith(ctx, '_hooks', hearing, next);
}

/** `next()` forks the context before it returns: what is set for that moment is seen further in, and nowhere else. */
function nextWith<K extends keyof Open>(
  ctx: ToolContext,
  field: K,
  value: Open[K],
  next: NextTool,
): Promise<ToolResult> {
  const open = ctx as Open;
  const own = open[field];
  open[field] = value;
  try {
    return next();
  } finally {
    open[field] = own;
  }
}
