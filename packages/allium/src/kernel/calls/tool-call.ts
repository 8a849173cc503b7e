/** One tool call on its way through a turn: its context, its arguments, and what became of it. */

import {
  NO_INPUT,
  SeamCall,
  type ToolCallOwner,
  type ToolCallSubject,
  ToolContext,
} from '../context/context.js';
import type { CallVerdict, CallVerdicts } from '../context/run-port.js';
import { BY_GUARDS } from '../guards/call-verdicts.js';
import { judgeUpdate } from '../guards/content-guards.js';
import { safeErrorMessage } from '../guards/guards.js';
import { AlliumError, codeOf, leaveAlone, messageOf, shown } from '../lib/errors.js';
import { eventData } from '../lib/frozen-json.js';
import { hash } from '../lib/hash.js';
import { Scope } from '../lib/scope.js';
import type { AssistantMessage, ToolCall, ToolContent, ToolMessage } from '../messages/messages.js';
import { errorResult, isContentList, type ToolResult } from '../messages/tool-result.js';
import type { CallDecision } from '../plan/rules.js';
import { controlKind, isControl, type StopRun, type Suspension } from '../protocol/signals.js';
import type { Awaitable, Decision, PendingRequest, Request } from '../protocol/store.js';
import type { Tool } from '../protocol/tool.js';
import type { ToolsRun } from './tools-run.js';
import { inDoubt } from './unanswered.js';

/** What a call needs from the batch it belongs to. */
export interface CallBatch {
  readonly runner: ToolsRun;
  readonly message: AssistantMessage;
  /** The calls that had no result when this process took the batch on. */
  readonly open: readonly Call[];
  /** The tools the model was shown. */
  readonly tools: readonly Tool[];
  /** Names of the tools the model was offered, unless it was all of the agent's. */
  readonly offered: readonly string[] | undefined;
  /** Ids of calls that somebody was asked about before. */
  readonly asked: readonly string[];
  /** What guards said about the calls when they were made; undefined after a resume, when they are asked again. */
  readonly verdicts: CallVerdicts | undefined;
  /** A kernel limit that cuts this batch short. The calls that fit still run. */
  readonly limit: StopRun | undefined;
  /** `ctx.suspend()`: the answer, or the signal that ends this attempt. */
  suspend(call: Call, ctx: ToolContext, request: Request): Promise<Decision>;
  /** One of the calls asks somebody: the others don't begin before the answer, and none is retried. */
  wait(): void;
}

/** One call, and what the forks of its context share. */
export class Call extends SeamCall implements ToolCallSubject, ToolCallOwner {
  declare readonly run: ToolsRun;
  declare readonly batch: CallBatch;
  declare readonly index: number;
  /** As the model made it: what events and the history show. */
  declare readonly toolCall: ToolCall;
  /** Which message of the run its result will be. */
  declare readonly number: number;
  /** The tool the model named. */
  declare readonly tool: Tool | undefined;
  declare ctx: ToolContext;
  declare done: ToolMessage | undefined;
  /** What guards said about the call that a hook put in place of the model's. */
  declare resolved: Partial<CallVerdict> | undefined;
  /** Decided before anything ran: an unknown tool, bad arguments, a refusal, a preset. */
  declare result: ToolResult | undefined;
  declare blocked: boolean;
  /** It was refused because its arguments don't fit the schema. */
  declare misfit: boolean;
  /** Hash of the tool and arguments that somebody was asked about and agreed to. */
  declare approved: string | undefined;
  declare edits: number;
  declare phase: 'judging' | 'running' | 'ending';
  /** `tool_execution_start` was emitted, perhaps before a resume, and its end wasn't yet. */
  declare begun: boolean;
  /** It begins in this process; otherwise a call that had begun is in doubt. */
  declare fresh: boolean;
  /** Questions nobody has answered yet. */
  declare pending: readonly PendingRequest[] | undefined;
  /** What the tool threw, if that was the last thing it did, or else a layer around it. */
  declare failure: { readonly error: unknown } | undefined;
  /** What the tool returned, if that was the last thing it did. */
  declare private returned: ToolResult | undefined;
  /** Questions of `ctx.suspend()` under way: a tool that doesn't await the answer has no result before it either. */
  declare private asking: Set<Question> | undefined;

  constructor(batch: CallBatch, index: number, toolCall: ToolCall) {
    const { runner: run } = batch;
    super(run, new Scope(run.scope));
    this.batch = batch;
    this.index = index;
    this.toolCall = toolCall;
    this.number = run.open.count + 1 + index;
    this.tool = run.findTool(toolCall.name, batch.tools);
    this.done = undefined;
    this.phase = 'judging';
    this.begun = batch.asked.includes(toolCall.id);
    this.ctx = new ToolContext(run, this.scope, this, NO_INPUT, this);
  }

  get _owner(): Call {
    return this;
  }

  get assistantMessage(): AssistantMessage {
    return this.batch.message;
  }

  get idempotencyKey(): string {
    const { sessionId } = this.run;
    return hash(`${sessionId}\n${this.assistantMessage.id}\n${this.index}\n${this.toolCall.arguments}`);
  }

  /** Starts over with a new context, for another call or tool than the model named. */
  renew(toolCall: ToolCall, tool: Tool | undefined): void {
    const { _state, _metadata } = this.ctx;
    const of: ToolCallSubject = { assistantMessage: this.assistantMessage, toolCall, tool, _owner: this };
    this.ctx = new ToolContext(this.run, this.scope, of, NO_INPUT, this);
    this.ctx._state = _state;
    this.ctx._metadata = _metadata;
    this.resolved = NO_VERDICT;
  }

  /**
   * What guards said about it when they judged the response, or the call that a hook made of it. They can't say it
   * again: afterwards they only see what they left of it.
   */
  get guardVerdict(): Partial<CallVerdict> | undefined {
    if (this.resolved) return this.resolved;
    const { message, verdicts } = this.batch;
    if (verdicts) return verdicts.get(message.content.indexOf(this.toolCall));
    const stored = this.run.open.decided?.verdicts.get(`${this.toolCall.id}\n${BY_GUARDS}`);
    const { block: deny, ask } = (stored ?? {}) as CallDecision;
    return { deny, ask };
  }

  // ── While it runs ──────────────────────────────────────────────────────────────────────────────────────────

  /** The layers around the tool begin. */
  enterLayers(): void {
    this.phase = 'running';
    this.enter();
  }

  /** The layers have ended. What follows concerns the result, so what cut them off doesn't cut it off. */
  leaveLayers(): void {
    this.phase = 'ending';
    this.leave();
    if (this.halted !== undefined) this.ctx._scope = this.run.scope;
  }

  /** `ctx.update()`: shows how far the call is, if guards let it pass. */
  update(
    ctx: ToolContext,
    partial: string | readonly ToolContent[],
    details: unknown,
    forwarded = false,
  ): Awaitable<void> {
    const { run, toolCall } = this;
    if (!forwarded) leaveAlone(details);
    if (!this.begun || ctx._isOver || run.over) return leaveAlone(partial);
    const content = typeof partial === 'string' ? [{ type: 'text' as const, text: partial }] : partial;
    if (!isContentList(content))
      throw new AlliumError(
        'INVALID_HOOK_RESULT',
        `ctx.update() takes text or a list of text, image and file content, got ${shown(partial)}.`,
      );
    // A guard's verdict counts even if nobody watches.
    const allowed = judgeUpdate(content, details, ctx, forwarded);
    if (!allowed || !run.watched) return;
    const { runId, sessionId } = run;
    const about = { toolCallId: toolCall.id, toolName: toolCall.name };
    run.emit({ type: 'tool_execution_update', runId, sessionId, ...about, ...eventData(allowed) });
    return run.pressure();
  }

  suspend(ctx: ToolContext, request: Request): Promise<Decision> {
    const question = { ctx, answer: this.batch.suspend(this, ctx, request) };
    this.asking ??= new Set();
    const { asking } = this;
    const over = () => asking.delete(question);
    asking.add(question);
    question.answer.then(over, over);
    return question.answer;
  }

  /** Settles with the open questions of the call, or of the contexts around `inner`; undefined if there are none. */
  answered(inner?: Scope): Promise<unknown> | undefined {
    return this.asking && answersTo(this.asking, inner);
  }

  /** A question without an answer holds back the calls beside it: the answer may change everything. */
  override latch(signal: unknown, by?: string): void {
    super.latch(signal, by);
    if (this.phase === 'running' && controlKind(signal) === 'suspend') this.batch.wait();
  }

  /** A run that is stopped asks nobody. */
  override halt(signal: unknown): void {
    super.halt(signal);
    if (this.asking !== undefined && this.asking.size > 0 && controlKind(signal) === 'stop')
      this.scope.abort(signal);
  }

  toolReturned(result: ToolResult): void {
    if (this.failure) this.failure = undefined;
    this.returned = result;
    this.workEnded(result.isError !== true);
  }

  toolThrew(error: unknown): void {
    this.failure = isControl(error) ? undefined : { error };
    this.returned = undefined;
    this.workEnded(false);
  }

  // ── When it fails ──────────────────────────────────────────────────────────────────────────────────────────

  /** It doesn't run. The model reads this instead. */
  refuse(reason: string, by?: string): void {
    this.result = errorResult(reason);
    this.blocked = true;
    if (by) this.run.note(by, `blocked ${this.toolCall.name}`, 'blocked');
  }

  /** It had begun before this process took over and isn't run again: the model reads that it may have taken effect. */
  doubt(): void {
    this.result = inDoubt(this.toolCall.name);
    this.blocked = false;
    this.misfit = false;
  }

  /** Runs hooks of the call. If one throws, see `recordFailure`. */
  async closed<T>(work: () => Awaitable<T>): Promise<T | undefined> {
    try {
      return await work();
    } catch (error) {
      this.recordFailure(error);
      return undefined;
    }
  }

  /**
   * An error becomes the result of the call, and a question that a hook asks leaves the call waiting. Other control
   * signals go on outward, and so do errors that no model can repair.
   */
  recordFailure(error: unknown): void {
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

  /** Another call ended the run while this one waited to begin or to retry. */
  isCutOff(error: unknown): boolean {
    return this.halted !== undefined && error === this.halted && this.latched === undefined;
  }

  /** The result of a call whose layers threw this. If they were only cut off, the tool's own outcome counts. */
  resultOf(error: unknown): ToolResult {
    if (this.latched !== undefined) return errorResult(`Stopped: ${messageOf(this.latched)}`);
    if (!this.isCutOff(error)) return errorResult(this.failureText(error));
    if (this.failure) return errorResult(this.failureText(this.failure.error));
    return this.returned ?? errorResult(`Stopped: ${messageOf(this.halted)}`);
  }

  failureText(error: unknown): string {
    const { middleware: by, hook } = this.raisedBy(error) ?? {};
    const { name } = this.toolCall;
    this.failure = { error };
    if (!by) return `"${name}" failed: ${messageOf(error)}`;
    this.run.note(by, `${hook} failed for ${name}: ${safeErrorMessage(error, this.ctx)}`, 'failed');
    return `"${name}" was not completed: middleware "${by}" failed: ${messageOf(error)}`;
  }
}

/** Most calls have none of this. */
Object.assign(Call.prototype, {
  resolved: undefined,
  result: undefined,
  blocked: false,
  misfit: false,
  approved: undefined,
  edits: 0,
  fresh: false,
  pending: undefined,
  failure: undefined,
  returned: undefined,
  asking: undefined,
});

const NO_VERDICT: Partial<CallVerdict> = Object.freeze({});

/** A question of `ctx.suspend()`. */
interface Question {
  readonly ctx: ToolContext;
  readonly answer: Promise<Decision>;
}

function answersTo(asking: Set<Question>, inner: Scope | undefined): Promise<unknown> | undefined {
  const open = [...asking].filter(
    ({ ctx }) => !ctx._isOver && (inner === undefined || inner.isWithin(ctx._scope)),
  );
  return open.length === 0 ? undefined : Promise.all(open.map(({ answer }) => answer));
}

/** Contracts of this package that broke, and what a schema raises when it can't judge anything at all. */
const UNREPAIRABLE: readonly string[] = [
  'MISSING_DEPENDENCY',
  'INVALID_TOOL',
  'SESSION_CONFLICT',
  'SESSION_CORRUPT',
];
