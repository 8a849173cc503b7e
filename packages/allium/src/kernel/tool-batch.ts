/** The tool phase of a turn: every call gets exactly one result, in call order, whatever happens. */
import { type ToolCallHooks, ToolContext } from './context.js';
import { AlliumError, controlKind, isThenable, messageOf, StopRun, type Suspension } from './errors.js';
import { judgeUpdate } from './guards.js';
import { hash } from './hash.js';
import { enter } from './layers.js';
import type { AssistantMessage, ToolCall, ToolContent, ToolMessage } from './messages.js';
import type { CallVerdicts } from './response-gate.js';
import type { Run } from './run.js';
import type { OpenBatch } from './session-state.js';
import type { Awaitable, Decision, EntryBody, PendingRequest, Request } from './store.js';
import { errorResult, isContentList, type Tool, type ToolResult } from './tool.js';
import { ToolApproval } from './tool-approval.js';
import { asToolResult, type Call, failureText, newCall, refuse } from './tool-call.js';
import { executeTool, Lane } from './tool-execution.js';
import { prepare } from './tool-preparation.js';
import { ToolResults } from './tool-results.js';

export interface BatchOutcome {
  readonly results: readonly ToolMessage[];
  readonly terminate: boolean;
  /** Questions nobody has answered yet: the run suspends. */
  readonly pending: readonly PendingRequest[];
}

export interface BatchOptions {
  /** The tools the model was shown. */
  readonly tools: readonly Tool[];
  /** What guards said about the calls; undefined after a resume, where they are asked again. */
  readonly verdicts?: CallVerdicts;
  /** Nothing runs; each call is answered with this. */
  readonly notRun?: string;
}

/** Runs the calls of a message, or what is left of them after a resume. */
export function runTools(run: Run, batch: OpenBatch, options: BatchOptions): Promise<BatchOutcome> {
  return new ToolBatch(run, batch, options).run();
}

class ToolBatch implements ToolCallHooks {
  private readonly calls: Call[];
  private readonly message: AssistantMessage;
  private readonly approval: ToolApproval;
  private readonly results: ToolResults;
  /** One of the calls stopped the run. */
  private stopped = false;
  /** One of the calls asks somebody. */
  private waiting = false;
  /** A kernel limit that cuts this batch short: what fits still runs. */
  private limit: StopRun | undefined;

  constructor(
    private readonly runner: Run,
    private readonly batch: OpenBatch,
    private readonly options: BatchOptions,
  ) {
    this.message = batch.message;
    this.results = new ToolResults(runner, batch.message);
    this.approval = new ToolApproval(runner, batch.message, options.verdicts);
    this.calls = [];
    for (let index = 0; index < batch.calls.length; index++) {
      const toolCall = batch.calls[index]!;
      this.calls.push(newCall(index, toolCall, batch.results.get(toolCall.id)));
    }
  }

  async run(): Promise<BatchOutcome> {
    const open = this.batch.results.size === 0 ? this.calls : this.calls.filter((call) => !call.done);
    try {
      const allowed = this.runner.toolCallsLeft();
      for (const call of open) {
        const wait = this.prepare(call, allowed);
        if (wait) await wait;
      }
      const pending = this.approval.needed ? await this.approval.judgeAll(open) : NO_REQUESTS;
      if (pending.length > 0) return this.outcome(pending);
      await this.executeAll(open);
    } catch (error) {
      const by = open.find(({ seam }) => seam.latched === error)?.seam.latchedBy;
      if (controlKind(error) === 'stop') this.runner.call.latch(error, by);
      await this.results.answerRest(open, error);
      throw error;
    }
    const ended = this.ending(open);
    if (ended !== undefined) {
      await this.results.answerRest(open, ended);
      throw ended;
    }
    if (!this.waiting) return this.outcome(NO_REQUESTS);
    const pending = open.flatMap((call) => call.pending ?? []);
    await this.runner.append(
      pending.map((request) => ({ type: 'request', runId: this.runner.runId, request })),
    );
    return this.outcome(pending);
  }

  /** The control signal that ends the run after this batch, if there is one. */
  private ending(calls: readonly Call[]): unknown {
    const { scope, call: latch } = this.runner;
    if (scope.aborted) return scope.reason;
    for (const { seam } of calls) {
      if (seam.latched === undefined || controlKind(seam.latched) === 'suspend') continue;
      latch.latch(seam.latched, seam.latchedBy);
      return seam.latched;
    }
    if (this.limit) latch.latch(this.limit, 'kernel');
    return this.limit;
  }

  private outcome(pending: readonly PendingRequest[]): BatchOutcome {
    const { calls } = this;
    const results: ToolMessage[] = [];
    let terminate = true;
    for (const { done, toolCall } of calls) {
      if (done) results.push(done);
      if (!this.batch.terminate.has(toolCall.id)) terminate = false;
    }
    return { results, pending, terminate };
  }

  // ── Before anything runs ───────────────────────────────────────────────────────────────────────────────────

  /** What can be known before hooks and guards judge. Waits only where a hook or schema does. */
  private prepare(call: Call, allowed: number): Awaitable<void> {
    const { runner, options } = this;
    const { name } = call.toolCall;
    call.ctx = this.context(call, call.toolCall, runner.findTool(name, options.tools));
    if (options.notRun !== undefined) return refuse(runner, call, `Not run: ${options.notRun}`);
    if (call.index >= allowed) {
      this.limit ??= new StopRun('max_tool_calls', 'The limit of tool calls is used up.');
      return refuse(runner, call, `Not run: ${this.limit.message}`);
    }
    return prepare(runner, call, options.tools, (toolCall, tool) => {
      call.ctx = this.context(call, toolCall, tool, call.ctx);
    });
  }

  private context(
    call: Call,
    toolCall: ToolCall,
    tool: Tool | undefined,
    previous?: ToolContext,
  ): ToolContext {
    const { runner, message } = this;
    const key =
      previous?.idempotencyKey ??
      hash(`${runner.sessionId}\n${message.id}\n${call.index}\n${call.toolCall.arguments}`);
    const of = { assistantMessage: message, toolCall, tool, idempotencyKey: key };
    const ctx = new ToolContext(runner, runner.scope, of, undefined, undefined, call.seam, this);
    if (previous) [ctx._state, ctx._metadata] = [previous._state, previous._metadata];
    return ctx;
  }

  // ── Execution ──────────────────────────────────────────────────────────────────────────────────────────────

  private async executeAll(calls: readonly Call[]): Promise<void> {
    const sequential =
      this.runner.agent.toolExecution === 'sequential' || calls.some((call) => call.ctx.tool?.sequential);
    if (sequential || calls.length === 1) {
      for (const call of calls) await this.startAndExecute(call);
      return;
    }
    if (calls.every((call) => call.ctx.tool?.concurrency === undefined)) {
      const wait = this.started(calls);
      if (wait) await wait;
      return allSettled(calls.map((call) => this.execute(call)));
    }
    const lanes = new Map<Tool | undefined, Lane>();
    return allSettled(
      calls.map((call) => {
        const { tool } = call.ctx;
        const lane = lanes.get(tool) ?? new Lane(tool?.concurrency ?? Number.POSITIVE_INFINITY);
        lanes.set(tool, lane);
        return lane.run(() => this.startAndExecute(call));
      }),
    );
  }

  private async startAndExecute(call: Call): Promise<void> {
    const wait = this.started([call]);
    if (wait) await wait;
    await this.execute(call);
  }

  /** Journals that calls begin whose effects may not happen twice: after a crash they are in doubt. */
  private started(calls: readonly Call[]): Awaitable<void> {
    let entries: EntryBody[] | undefined;
    for (const call of calls) {
      const { id: callId } = call.toolCall;
      if (
        call.result ||
        this.halted() ||
        call.ctx.tool?.onInDoubt !== 'fail' ||
        this.batch.started.has(callId)
      )
        continue;
      const key = call.ctx.idempotencyKey;
      const entry = {
        type: 'tool_started',
        runId: this.runner.runId,
        messageId: this.message.id,
        callId,
        key,
      } as const;
      this.approval.restarts.set(callId, entry);
      call.fresh = true;
      entries ??= [];
      entries.push(entry);
    }
    return entries && this.runner.append(entries);
  }

  /** What has not begun does not begin: the run stops, is aborted, or waits for an answer that may change everything. */
  private halted(): boolean {
    return this.stopped || this.waiting || this.runner.scope.aborted;
  }

  private async execute(call: Call): Promise<void> {
    const { runner } = this;
    if (!call.result && this.halted()) return;
    this.results.begin(call);
    let result = call.result ?? this.inDoubt(call);
    if (!result) {
      call.phase = 'running';
      try {
        const { ctx } = call;
        const layers = runner.plan.layers.tool;
        const work = layers.length === 0 ? this.innermost(ctx) : enter(layers, 0, ctx, this.innermost);
        result = asToolResult(isThenable(work) ? await runner.supervise(work) : work);
        call.seam.check();
      } catch (error) {
        if (this.interrupted(call, error)) return;
        const { latched } = call.seam;
        result = errorResult(
          latched === undefined ? failureText(call, error) : `Stopped: ${messageOf(latched)}`,
        );
      }
    }
    const wait = this.results.finish(call, result);
    if (wait) await wait;
    if (controlKind(call.seam.latched) === 'stop') this.stopped = true;
  }

  private readonly innermost = (ctx: ToolContext): Awaitable<ToolResult> => {
    if (!ctx._assigned) return executeTool(ctx);
    return this.approval.rejudge(this.callOf(ctx), ctx).then((refused) => refused ?? executeTool(ctx));
  };

  private inDoubt(call: Call): ToolResult | undefined {
    const { name, id } = call.toolCall;
    if (call.fresh || !this.batch.started.has(id) || call.ctx.tool?.onInDoubt !== 'fail') return undefined;
    return errorResult(
      `In doubt: "${name}" had started when the run broke off, and nobody knows whether it took effect. It was not run again.`,
    );
  }

  /** A control signal came out of a call. True when the call has no result yet. */
  private interrupted(call: Call, error: unknown): boolean {
    const kind = controlKind(error);
    if (kind === 'suspend') {
      call.pending = (error as Suspension).request as PendingRequest;
      this.waiting = true;
      this.results.told(call, { suspended: true });
      return true;
    }
    if (kind === 'stop') {
      call.seam.latch(error);
      this.stopped = true;
    }
    return kind === 'abort' && this.runner.scope.aborted;
  }

  // ── What contexts ask for ──────────────────────────────────────────────────────────────────────────────────

  private callOf(ctx: ToolContext): Call {
    return this.calls.find((one) => one.toolCall.id === ctx.toolCall.id)!;
  }

  update(ctx: ToolContext, partial: string | readonly ToolContent[], details: unknown): void {
    const { runner } = this;
    const { begun, toolCall } = this.callOf(ctx);
    if (!runner.watched || !begun) return;
    const content = typeof partial === 'string' ? [{ type: 'text' as const, text: partial }] : partial;
    if (!isContentList(content))
      throw new AlliumError(
        'INVALID_HOOK_RESULT',
        'ctx.update() takes text or a list of text, image and file content.',
      );
    const shown = judgeUpdate(runner.plan.guards, content, details, ctx);
    if (!shown) return;
    const { runId, sessionId } = runner;
    const about = { toolCallId: toolCall.id, toolName: toolCall.name };
    runner.emit({ type: 'tool_execution_update', runId, sessionId, ...about, ...shown });
  }

  suspend(ctx: ToolContext, request: Request): Promise<Decision> {
    return this.approval.suspend(this.callOf(ctx), ctx, request);
  }
}

const NO_REQUESTS: readonly PendingRequest[] = Object.freeze([]);

/** Waits for all, then throws what the first that failed threw: nothing goes on behind the back of the run. */
async function allSettled(work: readonly Promise<void>[]): Promise<void> {
  const outcomes = await Promise.allSettled(work);
  for (const outcome of outcomes) if (outcome.status === 'rejected') throw outcome.reason;
}
