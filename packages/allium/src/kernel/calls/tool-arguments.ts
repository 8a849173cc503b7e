/** The arguments of a call: which tool it means, whether its schema takes them, and what people are shown of them. */

import { NO_INPUT, type ToolContext } from '../context/context.js';
import type { CallVerdict } from '../context/run-port.js';
import { judgeArguments } from '../guards/call-verdicts.js';
import { originalArguments } from '../guards/restore.js';
import { AlliumError, isRecord, isThenable, messageOf, shown } from '../lib/errors.js';
import { copyOf } from '../lib/frozen-json.js';
import { canonicalJson, hash, toolCallKey } from '../lib/hash.js';
import { untilAborted } from '../lib/scope.js';
import { tooLarge } from '../messages/large-arguments.js';
import { deepFreeze } from '../messages/messages.js';
import { describeIssues, type SchemaIssue, type SchemaResult } from '../messages/standard-schema.js';
import { resolveToolCall } from '../plan/rules.js';
import type { Awaitable } from '../protocol/store.js';
import type { Tool } from '../protocol/tool.js';
import type { Call, CallBatch } from './tool-call.js';

/** Resolves, parses and validates a call. Whatever is wrong with it becomes a result that the model can act on. */
export function prepare(call: Call): Awaitable<void> {
  if (call.run.plan.rules.resolveToolCall.length === 0) return parse(call);
  return call.closed(() => resolve(call)).then(() => parse(call));
}

function parse(call: Call): Awaitable<void> {
  if (call.pending || call.result) return;
  const { tool, toolCall } = call.ctx;
  const denied = call.guardVerdict?.deny;
  // The guard may have removed the arguments, so nothing more is said about them.
  if (denied) return call.refuse(denied.reason, denied.by);
  if (!tool) return call.refuse(unknownTool(toolCall.name, call.batch));
  const excess = tooLarge(toolCall.arguments, call.run.limits);
  if (excess) {
    const advice = 'Call it again with less, or in several calls.';
    return call.refuse(`The arguments of "${tool.name}" were not accepted: ${excess}. ${advice}`);
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
    if (problem instanceof Promise)
      return problem.then((found) => refuseMisfit(call, found)).catch((error) => call.recordFailure(error));
    refuseMisfit(call, problem);
  } catch (error) {
    call.recordFailure(error);
  }
}

function refuseMisfit(call: Call, problem: string | undefined): void {
  if (!problem) return;
  call.refuse(problem);
  call.misfit = true;
}

async function resolve(call: Call): Promise<void> {
  const { run, batch, toolCall: made } = call;
  const said = call.guardVerdict;
  // A call that guards refused stays refused, whatever a hook would make of it.
  const resolved = said?.deny
    ? undefined
    : await resolveToolCall(run.plan.rules.resolveToolCall, made, call.ctx);
  if (!resolved) {
    // The hook returns a call. Arguments that it assigned to the context don't count.
    call.ctx._takeOut(NO_INPUT);
    return;
  }
  const { toolCall, tool = run.findTool(toolCall.name, batch.tools) } = resolved;
  call.renew(toolCall, tool);
  if (run.plan.guards['tool-args'].length === 0) return;
  // It is judged like a call of the model. What guards wanted to ask about the model's call is still asked.
  const { arguments: kept, deny, ask = said?.ask } = await judgeArguments(toolCall, call.ctx);
  if (kept !== toolCall.arguments) call.ctx._rewriteCall(kept);
  call.resolved = { deny, ask };
}

function unknownTool(name: string, { offered, tools }: CallBatch): string {
  if (offered?.includes(name))
    return `"${name}" was offered by a middleware for one model call only. The run was resumed since, and the tool is gone.`;
  const known = (offered ?? tools.map((tool) => tool.name)).slice(0, 50);
  const list = known.length > 0 ? `Available: ${known.join(', ')}.` : 'No tools are available.';
  return `There is no tool "${name}". ${list}`;
}

function checkWithSchema(ctx: ToolContext, given: unknown): Awaitable<SchemaResult<unknown>> {
  const tool = ctx.tool!;
  const checked = tool.input['~standard'].validate(given);
  return isThenable(checked) ? untilAborted(checked, ctx._scope).catch(named(tool)) : checked;
}

/**
 * What the tool is called with. Only the tool gets the originals of placeholders. They are in no context, and what the
 * schema says about them isn't repeated.
 */
export async function finalArguments(ctx: ToolContext): Promise<unknown> {
  const originals = originalArguments(ctx);
  if (originals === ctx._input.raw) return ctx.args;
  const checked = await checkWithSchema(ctx, originals);
  if (!checked.issues) return deepFreeze(checked.value);
  const places = checked.issues.map(({ path = [] }) =>
    path.map((at) => (isRecord(at) ? at.key : at)).join('.'),
  );
  throw new Error(`the original value of a placeholder does not fit at ${places.join(', ') || 'the top'}.`);
}

/**
 * Validates raw arguments into the context, or returns what is wrong with them. Parsed values are never parsed again.
 * The schema gets a copy that it may write to: some schemas do.
 */
export function validate(
  ctx: ToolContext,
  raw: unknown,
  given: unknown = copyOf(raw),
): Awaitable<string | undefined> {
  const checked = checkWithSchema(ctx, given);
  return isThenable(checked)
    ? checked.then((result) => acceptChecked(ctx, raw, result))
    : acceptChecked(ctx, raw, checked);
}

function acceptChecked(
  ctx: ToolContext,
  raw: unknown,
  result: SchemaResult<unknown>,
): Awaitable<string | undefined> {
  const tool = ctx.tool!;
  if (result?.issues) return misfit(ctx, raw, result.issues);
  if (result?.value === undefined && !(isRecord(result) && 'value' in result))
    throw new AlliumError(
      'INVALID_TOOL',
      `Tool "${tool.name}" has a faulty \`input\` schema. Its validate() returned ${shown(result)}. Return { value } or { issues }.`,
    );
  ctx._take(raw, deepFreeze(result.value));
  return undefined;
}

/** What is wrong. A placeholder need not fit the schema if its original does: that is what the tool gets. */
async function misfit(
  ctx: ToolContext,
  raw: unknown,
  issues: readonly SchemaIssue[],
): Promise<string | undefined> {
  const originals = originalArguments(ctx, raw);
  if (originals === raw || (await checkWithSchema(ctx, originals)).issues)
    return `Invalid arguments for "${ctx.tool!.name}":\n${describeIssues(issues)}${replacedHint(ctx)}`;
  ctx._take(raw, deepFreeze(copyOf(raw)));
  return undefined;
}

/** The schema may not take what a guard put into the arguments. The model can't know that, and would write them again. */
function replacedHint({ _run: { changes, turn } }: ToolContext): string {
  const guards = changes.flatMap((change) => {
    const { point, action } = change.verdict ?? {};
    const replaced = point === 'tool-args' && (action === 'redact' || action === 'rewrite');
    return replaced && change.turn === turn ? [`"${change.by}"`] : [];
  });
  if (guards.length === 0) return '';
  return `\nParts of the arguments of this turn were replaced by ${[...new Set(guards)].join(', ')}. If that is why, do not send them again.`;
}

/** Names the tool in the error of its schema, which doesn't know whose it is. */
function named({ name }: Tool): (error: unknown) => never {
  return (error) => {
    if (!(error instanceof AlliumError) || error.code !== 'INVALID_TOOL') throw error;
    throw new AlliumError('INVALID_TOOL', `Tool "${name}" has a faulty \`input\` schema. ${error.message}`, {
      cause: error,
      data: { ...error.data, tool: name },
    });
  };
}

/**
 * Judges raw arguments that a hook or a layer wrote, or that a run was resumed with. Guards come first, because the
 * schema may quote the arguments in its errors. What guards leave is validated into the context, unless it's there.
 */
export async function judgeRaw(
  ctx: ToolContext,
  raw: unknown = ctx._input.raw,
): Promise<Partial<CallVerdict>> {
  const { plan, judgements } = ctx._run;
  const isNew = ctx._input.assigned || raw !== ctx._input.raw;
  if (plan.guards['tool-args'].length === 0) return isNew ? validated(ctx, raw) : {};
  const before = await judgements.saidOf(ctx, raw);
  if (before?.deny) return { deny: before.deny };
  const given = JSON.stringify(raw) ?? 'null';
  const judged = await judgeArguments({ ...ctx.toolCall, arguments: given }, ctx);
  const { arguments: kept, deny, ask = before?.ask } = judged;
  const left = kept === given ? raw : deepFreeze(JSON.parse(kept));
  // A refused call doesn't run, so its arguments need not be valid.
  if (deny && (isNew || left !== raw)) ctx._take(left, deepFreeze(left));
  if (deny || (left === raw && !isNew)) return { deny, ask };
  return { ask, ...(await validated(ctx, left)) };
}

async function validated(ctx: ToolContext, raw: unknown): Promise<Partial<CallVerdict>> {
  const problem = await validate(ctx, raw);
  return problem ? { deny: { reason: problem, by: 'kernel' } } : {};
}

// ── For people ───────────────────────────────────────────────────────────────────────────────────────────────

/** Identifies a call: its tool, its raw arguments, and what the schema made of them. Answers are bound to it. */
export function hashOf({ tool, toolCall, _input }: ToolContext): string {
  const name = tool?.name ?? toolCall.name;
  const { raw, args, assigned } = _input;
  const effective = assigned ? raw : JSON.parse(effectiveText(args));
  // Most schemas change nothing, and journals of earlier releases have only this hash.
  const [given, made] = [canonicalJson(raw), canonicalJson(effective)];
  return made === given ? toolCallKey(name, raw) : hash(`${name}\n${given}\n${made}`);
}

/** Is the tool called with the arguments exactly as they were written? */
export function runsAsWritten({ _input: { raw, args } }: ToolContext): boolean {
  return canonicalJson(JSON.parse(effectiveText(args))) === canonicalJson(raw);
}

/** The arguments the tool would be called with, as JSON text, after the guards of arguments. */
export async function shownArguments(ctx: ToolContext): Promise<string> {
  const text = effectiveText(ctx._input.args);
  if (runsAsWritten(ctx) || ctx._run.plan.guards['tool-args'].length === 0) return text;
  const { arguments: kept, deny } = await judgeArguments({ ...ctx.toolCall, arguments: text }, ctx);
  return deny ? JSON.stringify(`Withheld by guard "${deny.by}".`) : kept;
}

/** Readable JSON even for dates, big numbers, maps and sets, which schemas may produce. */
function effectiveText(args: unknown): string {
  try {
    return JSON.stringify(args, readable) ?? 'null';
  } catch {
    // A cycle. The raw arguments are shown beside it.
    return '"[not JSON]"';
  }
}

function readable(_: string, value: unknown): unknown {
  if (typeof value === 'bigint') return `${value}n`;
  if (typeof value === 'number') return Number.isFinite(value) ? value : String(value);
  if (value instanceof Map) return { map: [...value] };
  if (value instanceof Set) return { set: [...value] };
  if (value instanceof RegExp || typeof value === 'symbol') return String(value);
  return typeof value === 'function' ? `[function ${value.name}]` : value;
}
