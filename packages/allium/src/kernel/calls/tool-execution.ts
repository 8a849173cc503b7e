/** The innermost point of the tool seam: the tool itself and its time limit. */

import type { ToolContext } from '../context/context.js';
import type { RunPort } from '../context/run-port.js';
import type { Ending } from '../context/tracing.js';
import { afterActive } from '../journal/active-time.js';
import { readHistoryDuring } from '../journal/read-session.js';
import { AlliumError, attribute, isThenable } from '../lib/errors.js';
import { Scope, untilAborted, Wait } from '../lib/scope.js';
import { checkedResult } from '../messages/tool-output.js';
import { freezeResult, type ToolResult, toToolResult } from '../messages/tool-result.js';
import { isControl } from '../protocol/signals.js';
import type { Awaitable } from '../protocol/store.js';
import { looksBackOf, type Tool } from '../protocol/tool.js';
import { finalArguments } from './tool-arguments.js';
import type { Call } from './tool-call.js';

/** Runs the tool of the context. What it returns after an abort or a timeout is dropped. */
export function executeTool(ctx: ToolContext): Promise<ToolResult> {
  ctx._checkBegin();
  const tool = ctx.tool!;
  if (lacksHistory(ctx._run, tool)) return withHistory(ctx);
  // From here on the tool acts, inside every layer and on behalf of no middleware.
  ctx._position = -1;
  ctx._children = 0;
  const timeoutMs = ctx.timeoutMs ?? tool.timeoutMs;
  const { own, end } = timeoutMs === undefined ? { own: ctx, end: undefined } : limited(ctx, tool, timeoutMs);
  const execution = new Execution(own, end);
  if (ctx._run.plan.restores.length === 0) return execution.run(own.args);
  return finalArguments(own).then(
    (args) => execution.run(args),
    (error) => execution.refuse(error),
  );
}

/** Does the tool look at messages that were not read? */
function lacksHistory({ history, open }: RunPort, tool: Tool): boolean {
  if (!history.isPartial) return false;
  const back = looksBackOf(tool) ?? Number.POSITIVE_INFINITY;
  return open.from - back < history.start;
}

async function withHistory(ctx: ToolContext): Promise<ToolResult> {
  const { store, state } = (ctx._call as Call).run;
  await readHistoryDuring(store, state);
  return executeTool(ctx);
}

/** One call of a tool. */
class Execution extends Wait<unknown, ToolResult> {
  declare private readonly ctx: ToolContext;
  declare private readonly end: (() => void) | undefined;
  declare private readonly call: Call;
  declare private readonly attempts: number;
  declare private readonly ended: Ending<ToolResult> | undefined;

  constructor(ctx: ToolContext, end: (() => void) | undefined) {
    super(ctx._scope);
    this.ctx = ctx;
    this.end = end;
    this.call = ctx._call as Call;
    this.attempts = ++this.call.attempts;
    this.ended = ctx._run.trace?.executes(ctx);
    this.call.workBegins();
  }

  run(args: unknown): Promise<ToolResult> {
    const { ctx } = this;
    try {
      const value = ctx.tool!.execute(args, ctx);
      return isThenable(value) ? this.on(value) : Promise.resolve(this.mapValue(value));
    } catch (error) {
      return this.refuse(error);
    }
  }

  refuse(error: unknown): never {
    throw this.mapError(error);
  }

  protected override mapValue(value: unknown): Awaitable<ToolResult> {
    const { call, ctx } = this;
    const asked = call.answered(ctx._scope);
    return asked || ctx.tool!.output ? this.settled(value, asked) : this.returned(toToolResult(value));
  }

  /** If a tool asks without waiting for the answer, its result waits for the answer. */
  private async settled(value: unknown, asked: Promise<unknown> | undefined): Promise<ToolResult> {
    const { tool, _scope: scope } = this.ctx;
    try {
      await asked;
      return this.returned(
        tool!.output ? await untilAborted(checked(tool!, value), scope) : toToolResult(value),
      );
    } catch (error) {
      return this.refuse(error);
    }
  }

  private returned(given: ToolResult): ToolResult {
    const { call } = this;
    const result = freezeResult(given);
    call.frozen = result;
    call.toolReturned(result);
    this.ended?.(result);
    this.end?.();
    return result;
  }

  protected override mapError(error: unknown): unknown {
    const { call, ctx } = this;
    if (!isControl(error)) attribute(error, { hook: 'tool', attempts: this.attempts }, ctx);
    call.toolThrew(error);
    this.ended?.(undefined, error);
    this.end?.();
    return error;
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
