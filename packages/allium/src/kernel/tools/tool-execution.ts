/** The innermost point of the tool seam: the tool itself and its time limit. */

import type { ToolContext } from '../context/context.js';
import { afterActive } from '../journal/active-time.js';
import { AlliumError, attribute, isThenable } from '../lib/errors.js';
import { Scope, untilAborted } from '../lib/scope.js';
import { freezeResult, type ToolResult, toToolResult } from '../messages/tool-result.js';
import { isControl } from '../protocol/signals.js';
import type { Tool } from '../protocol/tool.js';
import { checkedResult } from '../protocol/tool-output.js';
import { finalArguments } from './tool-arguments.js';
import type { Call } from './tool-call.js';

/** Runs the tool of the context. What it returns after an abort or a timeout is dropped. */
export async function executeTool(ctx: ToolContext): Promise<ToolResult> {
  ctx._checkBegin();
  const call = ctx._call as Call;
  const tool = ctx.tool!;
  const attempts = ++call.attempts;
  // From here on the tool acts, inside every layer and on behalf of no middleware.
  ctx._position = -1;
  ctx._children = 0;
  const timeoutMs = ctx.timeoutMs ?? tool.timeoutMs;
  const { own, end } = timeoutMs === undefined ? { own: ctx } : limited(ctx, tool, timeoutMs);
  call.workBegins();
  try {
    const args = ctx._run.plan.restores.length === 0 ? own.args : await finalArguments(own);
    const value = tool.execute(args, own);
    const returned = isThenable(value) ? await untilAborted(value, own._scope) : value;
    // A tool that asks without waiting for the answer has no result before the answer is there.
    const asked = call.answered(own._scope);
    if (asked) await asked;
    const result = freezeResult(
      tool.output ? await untilAborted(checked(tool, returned), own._scope) : toToolResult(returned),
    );
    call.frozen = result;
    call.toolReturned(result);
    return result;
  } catch (error) {
    if (!isControl(error)) attribute(error, { hook: 'tool', attempts }, ctx);
    call.toolThrew(error);
    throw error;
  } finally {
    end?.();
  }
}

async function checked(tool: Tool, returned: unknown): Promise<ToolResult> {
  return checkedResult(tool, returned);
}

/** A context whose time is limited, and what ends it. The tool may keep it: no other context may then count as over. */
function limited(ctx: ToolContext, { name }: Tool, timeoutMs: number) {
  const scope = new Scope(ctx._scope);
  const own = ctx._fork(scope);
  const late = `"${name}" did not finish within ${timeoutMs} ms.`;
  const cancel = afterActive(ctx._run, timeoutMs, () => scope.abort(new AlliumError('TOOL_TIMEOUT', late)));
  const end = (): void => {
    cancel();
    if (!scope.aborted) ctx._adopt(own);
    scope.close();
  };
  return { own, end };
}
