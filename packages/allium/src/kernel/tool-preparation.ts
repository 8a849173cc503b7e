/** Before a call is judged: which tool it means, and whether its arguments are any good. */
import type { ToolContext } from './context.js';
import { isThenable } from './errors.js';
import { type Hooks, resolveToolCall } from './rules.js';
import type { Run } from './run.js';
import type { Awaitable } from './store.js';
import type { Tool } from './tool.js';
import { type Call, closed, failed, parseArguments, refuse, validate } from './tool-call.js';

interface Offer {
  /** Of this name there was a tool when the model was asked. */
  offered(name: string): boolean;
}

/** Resolves, parses and validates; what fails becomes a result the model can act on. */
export function prepare(run: Run, call: Call, tools: readonly Tool[], batch: Offer): Awaitable<void> {
  const hooks = run.plan.rules.resolveToolCall;
  if (hooks.length === 0) return parse(run, call, tools, batch);
  return closed(run, call, () => resolve(run, call, tools, batch, hooks));
}

/** Was a tool of this name in the request that the call answers? Also after a resume, where the journal says so. */
export function wasOffered({ _run: run }: ToolContext, name: string): boolean {
  const offered = run.open.batch?.offered;
  return offered ? offered.includes(name) : run.plan.toolsByName.has(name);
}

async function resolve(
  run: Run,
  call: Call,
  tools: readonly Tool[],
  batch: Offer,
  hooks: Hooks,
): Promise<void> {
  const resolved = await resolveToolCall(hooks, call.toolCall, call.ctx);
  if (resolved) {
    const { toolCall, tool = run.findTool(toolCall.name, tools) } = resolved;
    call.renew(toolCall, tool);
  }
  await parse(run, call, tools, batch);
}

function parse(run: Run, call: Call, tools: readonly Tool[], batch: Offer): Awaitable<void> {
  const { tool, toolCall } = call.ctx;
  if (!tool) return refuse(run, call, unknown(toolCall.name, tools, batch));
  const raw = parseArguments(toolCall.arguments);
  if ('problem' in raw) {
    const problem = `The arguments of "${tool.name}" are not valid JSON: ${raw.problem}. Send one JSON object.`;
    return refuse(run, call, problem);
  }
  try {
    const problem = validate(call.ctx, raw.value);
    if (isThenable(problem)) return refusedLater(run, call, problem);
    if (problem) refuse(run, call, problem);
  } catch (error) {
    failed(run, call, error);
  }
}

async function refusedLater(run: Run, call: Call, checking: PromiseLike<string | undefined>): Promise<void> {
  const problem = await closed(run, call, async () => checking);
  if (problem) refuse(run, call, problem);
}

function unknown(name: string, tools: readonly Tool[], batch: Offer): string {
  if (batch.offered(name))
    return `"${name}" was offered by a middleware for one call, and is not there any more after the run was resumed.`;
  const known = tools.slice(0, 50).map((tool) => tool.name);
  const list = known.length > 0 ? `Available: ${known.join(', ')}.` : 'No tools are available.';
  return `There is no tool "${name}". ${list}`;
}
