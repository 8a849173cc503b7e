/** Before a call is judged: which tool it means, and whether its arguments are any good. */

import { internal, NO_INPUT } from '../context/context.js';
import type { CallVerdict } from '../context/run-port.js';
import { judgeArguments } from '../guards/call-verdicts.js';
import { isThenable, messageOf } from '../lib/errors.js';
import { resolveToolCall } from '../plan/rules.js';
import type { ToolContext } from '../protocol/contexts.js';
import { tooLarge } from '../protocol/limits.js';
import type { Hooks } from '../protocol/plan.js';
import type { Awaitable } from '../protocol/store.js';
import type { ToolBatch } from './tool-batch.js';
import { type Call, validate } from './tool-call.js';

/** Resolves, parses and validates; what fails becomes a result the model can act on. */
export function prepare(call: Call): Awaitable<void> {
  const hooks = call.batch.runner.plan.rules.resolveToolCall;
  return hooks.length === 0 ? parse(call) : call.closed(() => resolve(call, hooks));
}

/** Was a tool of this name in the request that the call answers? Known after a resume, too. */
export function wasOffered(ctx: ToolContext, name: string): boolean {
  const { _run: run } = internal(ctx);
  const offered = run.open.batch?.offered;
  return offered ? offered.includes(name) : run.plan.toolsByName.has(name);
}

async function resolve(call: Call, hooks: Hooks): Promise<void> {
  const said = call.guardVerdict;
  // No hook makes one that runs of a call that guards refused.
  const resolved = said?.deny ? undefined : await resolveToolCall(hooks, call.toolCall, call.ctx);
  if (resolved) {
    const { runner, options } = call.batch;
    const { toolCall, tool = runner.findTool(toolCall.name, options.tools) } = resolved;
    call.renew(toolCall, tool);
    if (runner.plan.guards['tool-args'].length > 0) await judgeBrought(call, said?.ask);
  } else call.ctx._takeOut(NO_INPUT); // Arguments are not its to assign: it returns a call.
  await parse(call);
}

/** What a hook made of a call is judged like what the model made. What guards wanted to ask about that is still asked. */
async function judgeBrought(call: Call, before: CallVerdict['ask']): Promise<void> {
  const { toolCall } = call.ctx;
  const { arguments: kept, deny, ask = before } = await judgeArguments(toolCall, call.ctx);
  if (kept !== toolCall.arguments) call.ctx._rewriteCall(kept);
  call.resolved = { deny, ask };
}

function parse(call: Call): Awaitable<void> {
  const { tool, toolCall } = call.ctx;
  // What a guard refused may have lost its arguments, and nobody is to wonder what is wrong with them.
  const denied = call.guardVerdict?.deny;
  if (denied) return call.refuse(denied.reason, denied.by);
  if (!tool) return call.refuse(unknown(toolCall.name, call.batch));
  const excess = tooLarge(toolCall.arguments, call.batch.runner.limits);
  if (excess) {
    const advice = 'Call it again with less, or in several calls.';
    return call.refuse(`The arguments of "${tool.name}" were not taken: ${excess}. ${advice}`);
  }
  let raw: unknown;
  try {
    raw = JSON.parse(toolCall.arguments || '{}');
  } catch (error) {
    const problem = `The arguments of "${tool.name}" are not valid JSON: ${messageOf(error)}. Send one JSON object.`;
    return call.refuse(problem);
  }
  try {
    const problem = validate(call.ctx, raw, raw);
    if (isThenable(problem)) return refusedLater(call, problem);
    if (problem) misfit(call, problem);
  } catch (error) {
    call.failed(error);
  }
}

function misfit(call: Call, problem: string): void {
  call.refuse(problem);
  call.misfit = true;
}

async function refusedLater(call: Call, checking: PromiseLike<string | undefined>): Promise<void> {
  const problem = await call.closed(async () => checking);
  if (problem) misfit(call, problem);
}

function unknown(name: string, { batch, options: { tools } }: ToolBatch): string {
  if (batch.offered?.includes(name))
    return `"${name}" was offered by a middleware for one call, and is not there any more after the run was resumed.`;
  const known = tools.slice(0, 50).map((tool) => tool.name);
  const list = known.length > 0 ? `Available: ${known.join(', ')}.` : 'No tools are available.';
  return `There is no tool "${name}". ${list}`;
}
