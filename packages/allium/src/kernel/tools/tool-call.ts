/** One tool call on its way through a turn: its context, its arguments, and what it came to. */

import {
  NO_INPUT,
  SeamCall,
  type ToolCallOwner,
  type ToolCallSubject,
  ToolContext,
} from '../context/context.js';
import type { CallVerdict } from '../context/run-port.js';
import { BY_GUARDS, judgeArguments } from '../guards/call-verdicts.js';
import { toldError } from '../guards/guards.js';
import { AlliumError, codeOf, isRecord, isThenable, messageOf, shown } from '../lib/errors.js';
import { copyOf } from '../lib/event-data.js';
import { hash } from '../lib/hash.js';
import { Scope, untilAborted } from '../lib/scope.js';
import {
  type AssistantMessage,
  deepFreeze,
  type ToolCall,
  type ToolContent,
  type ToolMessage,
  textOf,
} from '../messages/messages.js';
import { describeIssues } from '../messages/standard-schema.js';
import type { CallDecision } from '../plan/rules.js';
import { controlKind, isControl, type Suspension } from '../protocol/signals.js';
import type { Awaitable, Decision, PendingRequest, Request } from '../protocol/store.js';
import { errorResult, type Tool, type ToolResult } from '../protocol/tool.js';
import type { ToolBatch } from './tool-batch.js';
import { update } from './tool-results.js';
import type { ToolsRun } from './tools-run.js';

/** One call, and what the forks of its context share. */
export class Call extends SeamCall implements ToolCallSubject, ToolCallOwner {
  declare readonly run: ToolsRun;
  declare readonly batch: ToolBatch;
  declare readonly index: number;
  /** Which message of the run its result will be. */
  declare readonly number: number;
  /** As the model made it: what events and the history name. */
  declare readonly toolCall: ToolCall;
  declare done: ToolMessage | undefined;
  /** The tool the model named. */
  declare readonly tool: Tool | undefined;
  declare ctx: ToolContext;
  /** A hook made another call of it than the model did: what guards said of that. */
  declare resolved: Partial<CallVerdict> | undefined;
  /** Decided before anything ran: an unknown tool, bad arguments, a refusal, a preset. */
  declare result: ToolResult | undefined;
  declare blocked: boolean;
  /** It was refused because its arguments do not fit the schema. */
  declare misfit: boolean;
  /** Hash of the tool and arguments that were asked about and agreed to. */
  declare approved: string | undefined;
  declare edits: number;
  declare phase: 'judging' | 'running' | 'ending';
  /** `tool_execution_start` was told, perhaps before a resume, and its end was not yet. */
  declare begun: boolean;
  /** It begins in this process; otherwise one that had begun is in doubt. */
  declare fresh: boolean;
  /** Questions nobody has answered yet. */
  declare pending: readonly PendingRequest[] | undefined;
  /** What the tool threw, if that was the last thing it did, or else a layer around it. */
  declare failure: { readonly error: unknown } | undefined;
  /** Those that are being asked: whoever does not await the answer has no result before it either. */
  declare private asking: Set<{ readonly ctx: ToolContext; readonly answer: Promise<Decision> }> | undefined;

  constructor(batch: ToolBatch, index: number, number: number, toolCall: ToolCall) {
    const { runner: run, options } = batch;
    super(run, new Scope(run.scope));
    this.batch = batch;
    this.index = index;
    this.number = number;
    this.toolCall = toolCall;
    this.done = undefined;
    this.tool = run.findTool(toolCall.name, options.tools);
    this.resolved = undefined;
    this.result = undefined;
    this.blocked = false;
    this.misfit = false;
    this.approved = undefined;
    this.edits = 0;
    this.phase = 'judging';
    this.begun = !batch.isFresh && batch.batch.asked.includes(toolCall.id);
    this.fresh = false;
    this.pending = undefined;
    this.failure = undefined;
    this.asking = undefined;
    this.ctx = new ToolContext(run, this.scope, this, NO_INPUT, this);
  }

  get assistantMessage(): AssistantMessage {
    return this.batch.message;
  }

  /** Another context, for another call or tool than the model named. */
  renew(toolCall: ToolCall, tool: Tool | undefined): void {
    const { _run: run, _state, _metadata } = this.ctx;
    const of: ToolCallSubject = { assistantMessage: this.assistantMessage, toolCall, tool, _owner: this };
    this.ctx = new ToolContext(run, this.scope, of, NO_INPUT, this);
    this.ctx._state = _state;
    this.ctx._metadata = _metadata;
    this.resolved = NO_VERDICT;
  }

  update(
    ctx: ToolContext,
    partial: string | readonly ToolContent[],
    details: unknown,
    forwarded = false,
  ): Awaitable<void> {
    return update(this, ctx, partial, details, forwarded);
  }

  suspend(ctx: ToolContext, request: Request): Promise<Decision> {
    const question = { ctx, answer: this.batch.approval.suspend(this, ctx, request) };
    this.asking ??= new Set();
    const { asking } = this;
    const over = () => asking.delete(question);
    asking.add(question);
    question.answer.then(over, over);
    return question.answer;
  }

  /** Settles like the questions around `inner`, or all of the call, that are open; undefined if none is. */
  answered(inner?: Scope): Promise<unknown> | undefined {
    if (this.asking === undefined) return undefined;
    const open = [...this.asking].filter(
      ({ ctx }) => !ctx._isOver && (inner === undefined || inner.isWithin(ctx._scope)),
    );
    return open.length === 0 ? undefined : Promise.all(open.map(({ answer }) => answer));
  }

  /** The layers around the tool begin. */
  goIn(): void {
    this.phase = 'running';
    this.run.inside.add(this);
  }

  /** They have ended: what follows is said about its result. */
  comeOut(): void {
    this.phase = 'ending';
    this.run.inside.delete(this);
    this.scope.close();
  }

  /** A question without an answer stops what has not begun beside it: the answer may change everything. */
  override latch(signal: unknown, by?: string): void {
    super.latch(signal, by);
    if (this.phase === 'running' && controlKind(signal) === 'suspend') this.batch.wait();
  }

  /** Nobody is asked for the sake of a run that is stopped. */
  override halt(signal: unknown): void {
    super.halt(signal);
    if (this.asking !== undefined && this.asking.size > 0 && controlKind(signal) === 'stop')
      this.scope.abort(signal);
  }

  /** The tool has returned. */
  came(result: ToolResult): void {
    this.failure = undefined;
    this.workEnded(result.isError !== true);
  }

  /** The tool has thrown. */
  threw(error: unknown): void {
    this.failure = isControl(error) ? undefined : { error };
    this.workEnded(false);
  }

  /** Another call has ended the run while this one waited to begin, or to try again; not so what it did itself. */
  isCutOff(error: unknown): boolean {
    return error === this.halted && this.latched === undefined;
  }

  /** What the model reads of a call that was cut off after its tool had run. */
  cutOffText(): string {
    return this.failure ? this.failureText(this.failure.error) : `Stopped: ${messageOf(this.halted)}`;
  }

  get _owner(): Call {
    return this;
  }

  get idempotencyKey(): string {
    const { sessionId } = this.ctx._run;
    return hash(`${sessionId}\n${this.assistantMessage.id}\n${this.index}\n${this.toolCall.arguments}`);
  }

  /** It does not run; this is what the model reads instead. */
  refuse(reason: string, by?: string): void {
    this.result = errorResult(reason);
    this.blocked = true;
    if (by) this.batch.runner.note(by, `blocked ${this.toolCall.name}`);
  }

  /**
   * What guards said of it when they judged the response, or the call that a hook made of it: after that, and after a
   * resume, they see only what they left of it.
   */
  get guardVerdict(): Partial<CallVerdict> | undefined {
    const { message, options, runner } = this.batch;
    if (this.resolved) return this.resolved;
    if (options.verdicts) return options.verdicts.get(message.content.indexOf(this.toolCall));
    const stored = runner.open.decided?.verdicts.get(`${this.toolCall.id}\n${BY_GUARDS}`);
    const { block: deny, ask } = (stored ?? {}) as CallDecision;
    return { deny, ask };
  }

  /** Hooks that throw make its result an error: see `failed`. */
  async closed<T>(work: () => Awaitable<T>): Promise<T | undefined> {
    try {
      return await work();
    } catch (error) {
      this.failed(error);
      return undefined;
    }
  }

  /**
   * A question that a hook asks leaves the call waiting. Other control signals go further, and so does a broken contract
   * of this package: no model can repair that.
   */
  failed(error: unknown): void {
    if (controlKind(error) === 'suspend') {
      this.pending = (error as Suspension).requests as readonly PendingRequest[];
      return;
    }
    if (isControl(error)) {
      this.latch(error);
      throw error;
    }
    const code = codeOf(error);
    if (code !== undefined && UNREPAIRABLE.includes(code)) throw error;
    this.refuse(this.failureText(error));
  }

  failureText(error: unknown): string {
    const { middleware: by, hook } = this.raisedBy(error) ?? {};
    const { name } = this.toolCall;
    this.failure = { error };
    if (!by) return `"${name}" failed: ${messageOf(error)}`;
    this.batch.runner.note(by, `${hook} failed for ${name}: ${toldError(error, this.ctx)}`);
    return `"${name}" was not completed: middleware "${by}" failed: ${messageOf(error)}`;
  }
}

/** A decision about a call, with what guards leave of what the model will read: it is journaled before the result is. */
export async function released(call: Call, { block, ...rest }: CallDecision): Promise<CallDecision> {
  const { judgements, plan } = call.batch.runner;
  let { result } = rest;
  if (plan.guards['tool-result'].length > 0)
    await call.closed(async () => {
      if (call.result) call.result = await judgements.toolResult(call.ctx, call.result);
      else if (result)
        result = { ...result, value: await judgements.toolResult(call.ctx, result.value as ToolResult) };
    });
  // Refused, or something failed.
  if (call.result) return { block: { reason: textOf(call.result), by: block?.by ?? 'kernel' } };
  return result ? { ...rest, result } : rest;
}

const NO_VERDICT: Partial<CallVerdict> = Object.freeze({});

/** What a schema raises when it cannot judge anything at all. */
const UNREPAIRABLE: readonly string[] = [
  'MISSING_DEPENDENCY',
  'INVALID_TOOL',
  'SESSION_CONFLICT',
  'SESSION_CORRUPT',
];

/**
 * Validates raw arguments into the context; says what is wrong with them otherwise. Parsed values are never parsed again.
 * The schema is given something it may write to: some do so with a copy that is as frozen as what they were given.
 */
export function validate(
  ctx: ToolContext,
  raw: unknown,
  given: unknown = copyOf(raw),
): Awaitable<string | undefined> {
  const checked = ctx.tool!.input['~standard'].validate(given);
  if (!isThenable(checked)) return take(ctx, raw, checked);
  return untilAborted(checked, ctx._scope).then(
    (result) => take(ctx, raw, result),
    (error) => {
      throw named(error, ctx.tool!);
    },
  );
}

/** A schema does not know which tool it belongs to. Who has to repair it needs to. */
function named(error: unknown, { name }: Tool): unknown {
  if (!(error instanceof AlliumError) || error.code !== 'INVALID_TOOL') return error;
  return new AlliumError('INVALID_TOOL', `Tool "${name}" has a wrong \`input\`. ${error.message}`, {
    cause: error,
    data: { ...error.data, tool: name },
  });
}

function noOutcome({ name }: Tool, result: unknown): AlliumError {
  return new AlliumError(
    'INVALID_TOOL',
    `Tool "${name}" has a wrong \`input\`. Its validate() returned ${shown(result)}. Return { value } or { issues }.`,
  );
}

type Checked = Awaited<ReturnType<NonNullable<ToolContext['tool']>['input']['~standard']['validate']>>;

function take(ctx: ToolContext, raw: unknown, result: Checked): string | undefined {
  if (result?.issues) return `Invalid arguments for "${ctx.tool!.name}":\n${describeIssues(result.issues)}`;
  if (result?.value === undefined && !(isRecord(result) && 'value' in result))
    throw noOutcome(ctx.tool!, result);
  ctx._take(raw, deepFreeze(result.value));
  return undefined;
}

/**
 * Raw arguments that a hook or a layer wrote, or that a run was resumed with: guards first, as what a schema says of them
 * may quote them. What is left of them is validated into the context, unless it is there already.
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
  // Nothing runs with what is left of them, so they need not be valid.
  if (deny && (isNew || left !== raw)) ctx._take(left, deepFreeze(left));
  if (deny || (left === raw && !isNew)) return { deny, ask };
  return { ask, ...(await validated(ctx, left)) };
}

async function validated(ctx: ToolContext, raw: unknown): Promise<Partial<CallVerdict>> {
  const problem = await validate(ctx, raw);
  return problem ? { deny: { reason: problem, by: 'kernel' } } : {};
}
