/** The innermost point of the tool seam: the tool itself and its time limit. */

import type { ToolContext } from '../context/context.js';
import { afterActive } from '../journal/active-time.js';
import { AlliumError, attribute, isThenable } from '../lib/errors.js';
import { Scope, untilAborted } from '../lib/scope.js';
import { isControl } from '../protocol/signals.js';
import { freezeResult, type ToolResult, toToolResult } from '../protocol/tool.js';
import { finalArguments } from './tool-arguments.js';
import type { Call } from './tool-call.js';

/** Runs the tool of the context. What it returns after an abort or a timeout is dropped. */
export async function executeTool(ctx: ToolContext): Promise<ToolResult> {
  ctx._checkBegin();
  const call = ctx._call as Call;
  const attempts = ++call.attempts;
  // From here on the tool acts, inside every layer and on behalf of no middleware.
  ctx._position = -1;
  ctx._children = 0;
  const timeoutMs = ctx.timeoutMs ?? ctx.tool!.timeoutMs;
  call.workBegins();
  try {
    const result = await (timeoutMs === undefined ? execute(ctx) : withTimeout(ctx, timeoutMs));
    call.frozen = result;
    call.toolReturned(result);
    return result;
  } catch (error) {
    if (!isControl(error)) attribute(error, { hook: 'tool', attempts }, ctx);
    call.toolThrew(error);
    throw error;
  }
}

async function execute(ctx: ToolContext): Promise<ToolResult> {
  const args = ctx._run.plan.restores.length === 0 ? ctx.args : await finalArguments(ctx);
  const value = ctx.tool!.execute(args, ctx);
  const returned = isThenable(value) ? await untilAborted(value, ctx._scope) : value;
  // A tool that asks without waiting for the answer has no result before the answer is there.
  await (ctx._call as Call).answered(ctx._scope);
  return freezeResult(toToolResult(returned));
}

async function withTimeout(ctx: ToolContext, timeoutMs: number): Promise<ToolResult> {
  const scope = new Scope(ctx._scope);
  // The tool may keep its context after its time is up. Nobody else's context may then count as over.
  const own = ctx._fork(scope);
  const late = `"${ctx.tool!.name}" did not finish within ${timeoutMs} ms.`;
  const cancel = afterActive(ctx._run, timeoutMs, () => scope.abort(new AlliumError('TOOL_TIMEOUT', late)));
  try {
    return await execute(own);
  } finally {
    cancel();
    if (!scope.aborted) ctx._adopt(own);
    scope.close();
  }
}
