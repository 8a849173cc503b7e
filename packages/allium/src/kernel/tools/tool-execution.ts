/** The innermost point of the tool seam: the tool itself and its time limit. */

import type { ToolContext } from '../context/context.js';
import { afterActive } from '../journal/active-time.js';
import { AlliumError, attribute, isThenable } from '../lib/errors.js';
import { Scope, untilAborted } from '../lib/scope.js';
import { isControl } from '../protocol/signals.js';
import type { Awaitable } from '../protocol/store.js';
import { freezeResult, type Tool, type ToolResult, toToolResult } from '../protocol/tool.js';
import type { Call } from './tool-call.js';

/** Runs the tool of the context. What comes after an abort or a timeout is dropped. */
export function executeTool(ctx: ToolContext): Awaitable<ToolResult> {
  ctx._checkBegin();
  const call = ctx._call as Call;
  const attempts = ++call.attempts;
  // From here on it is the tool that acts, inside every layer and on behalf of no middleware.
  ctx._position = -1;
  ctx._children = 0;
  const tool = ctx.tool!;
  const timeoutMs = ctx.timeoutMs ?? tool.timeoutMs;
  call.workBegins();
  if (timeoutMs !== undefined) return withTimeout(ctx, tool, timeoutMs, attempts);
  try {
    const value = tool.execute(ctx.args, ctx);
    if (isThenable(value)) return settled(untilAborted(value, ctx._scope), ctx, attempts);
    const asked = call.answered(ctx._scope);
    if (asked) {
      const answered = asked.then(() => value);
      return settled(answered, ctx, attempts);
    }
    const result = toToolResult(value);
    if (ctx._run.plan.looksAtResults) call.frozen = freezeResult(result);
    call.came(result);
    return result;
  } catch (error) {
    throw failedWith(error, attempts, ctx);
  }
}

async function settled(work: unknown, ctx: ToolContext, attempts: number): Promise<ToolResult> {
  try {
    const value = await work;
    // A tool that asks and does not wait for the answer has no result before there is one.
    const asked = (ctx._call as Call).answered(ctx._scope);
    if (asked) await asked;
    const result = freezeResult(toToolResult(value));
    (ctx._call as Call).came(result);
    return result;
  } catch (error) {
    throw failedWith(error, attempts, ctx);
  }
}

function failedWith(error: unknown, attempts: number, ctx: ToolContext): unknown {
  if (!isControl(error)) attribute(error, { hook: 'tool', attempts }, ctx);
  (ctx._call as Call).threw(error);
  return error;
}

async function withTimeout(
  ctx: ToolContext,
  tool: Tool,
  timeoutMs: number,
  attempts: number,
): Promise<ToolResult> {
  const scope = new Scope(ctx._scope);
  // The tool may hold on to its context for longer than its time; nobody else is to find the time up.
  const own = ctx._fork(scope);
  const expire = (): void =>
    scope.abort(new AlliumError('TOOL_TIMEOUT', `"${tool.name}" did not finish within ${timeoutMs} ms.`));
  const cancel = afterActive(ctx._run, timeoutMs, expire);
  try {
    const work = (async () => tool.execute(own.args, own))();
    return await settled(untilAborted(work, scope), own, attempts);
  } finally {
    cancel();
    if (!scope.aborted) ctx._adopt(own);
    scope.close();
  }
}
