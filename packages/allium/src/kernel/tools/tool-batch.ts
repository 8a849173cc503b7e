/**
 * The tool phase of a turn: resolve → validate → ask → execute → record. Every call gets exactly one result, in call
 * order, whatever happens.
 */

import type { ToolContext } from '../context/context.js';
import type { CallVerdicts } from '../context/run-port.js';
import { endOf, toolCallLimit } from '../context/stop-checks.js';
import type { OpenBatch } from '../journal/journaled-run.js';
import { Onion } from '../layers/onion.js';
import { type AssistantMessage, NOTHING, type ToolMessage } from '../messages/messages.js';
import { errorResult, type ToolResult } from '../messages/tool-result.js';
import { startOf } from '../model/tool-starts.js';
import { Aborted, controlKind, type StopRun, type Suspension } from '../protocol/signals.js';
import type { Awaitable, Decision, PendingRequest, Request } from '../protocol/store.js';
import { inDoubtPolicy, type Tool } from '../protocol/tool.js';
import { needsApproval, ToolApproval } from './tool-approval.js';
import { prepare } from './tool-arguments.js';
import { Call, type CallBatch } from './tool-call.js';
import { executeTool } from './tool-execution.js';
import { executeAll } from './tool-lanes.js';
import { answerRest, finish, tellStart, tellWaiting } from './tool-results.js';
import type { ToolsRun } from './tools-run.js';
import { inDoubt } from './unanswered.js';

export interface BatchOutcome {
  readonly results: readonly ToolMessage[];
  readonly terminate: boolean;
  /** Questions nobody has answered yet: the run suspends. */
  readonly pending: readonly PendingRequest[];
}

interface BatchOptions {
  /** The tools the model was shown. */
  readonly tools: readonly Tool[];
  /** What guards said about the calls when they were made; undefined after a resume. */
  readonly verdicts?: CallVerdicts;
  /** Nothing runs. Each call is answered with this. */
  readonly notRun?: string | undefined;
}

/** The calls of a message, or what is left of them after a resume. */
export class ToolBatch implements CallBatch {
  readonly message: AssistantMessage;
  readonly tools: readonly Tool[];
  readonly verdicts: CallVerdicts | undefined;
  readonly open: readonly Call[];
  limit: StopRun | undefined = undefined;
  private readonly notRun: string | undefined;
  /** Set once one of the calls asks somebody: what calls beside it are cut off with. */
  private waiting: Aborted | undefined = undefined;
  private approving: ToolApproval | undefined = undefined;

  constructor(
    readonly runner: ToolsRun,
    private readonly batch: OpenBatch,
    { tools, verdicts, notRun }: BatchOptions,
  ) {
    this.message = batch.message;
    this.tools = tools;
    this.verdicts = verdicts;
    this.notRun = notRun;
    const open: Call[] = [];
    batch.calls.forEach((call, index) => {
      if (!batch.results[index]) open.push(new Call(this, index, call));
    });
    this.open = open;
  }

  get offered(): readonly string[] | undefined {
    return this.batch.offered;
  }

  get asked(): readonly string[] {
    return this.batch.asked;
  }

  /** Made for the first question: most batches have none. */
  get approval(): ToolApproval {
    this.approving ??= new ToolApproval(this);
    return this.approving;
  }

  async run(): Promise<BatchOutcome> {
    const { runner: run, open } = this;
    try {
      if (!this.verdicts) this.checkResumed();
      const allowed = run.toolCallsLeft();
      for (const call of open) {
        const wait = this.prepare(call, allowed);
        if (wait) await wait;
      }
      if (needsApproval(run)) {
        // A call in doubt doesn't run, so nobody is asked whether it may.
        for (const call of open) call.result ??= this.doubt(call);
        const pending = await this.approval.judgeAll(open);
        if (pending.length > 0) return this.outcome(pending);
      }
      await executeAll(
        open,
        run.agent.toolExecution === 'sequential',
        (calls) => this.started(calls),
        (call) => this.execute(call),
      );
    } catch (error) {
      const by = open.find(({ latched }) => latched === error)?.latchedBy;
      if (controlKind(error) === 'stop') run.call.latch(error, by);
      await this.answerRest(error);
      throw error;
    }
    const ended = this.ending();
    return ended === undefined && !this.waiting ? this.outcome(NOTHING) : this.conclude(ended);
  }

  private checkResumed(): void {
    const ended = endOf(this.runner);
    if (ended !== undefined) throw ended;
    // The calls beyond the limit may have been answered before.
    if (this.notRun === undefined && this.batch.calls.length > this.runner.toolCallsLeft())
      this.limit = toolCallLimit();
  }

  /** Does everything that needs neither hooks nor people to decide. */
  private prepare(call: Call, allowed: number): Awaitable<void> {
    if (this.notRun !== undefined) return call.refuse(`Not run: ${this.notRun}`);
    if (call.index < allowed) return prepare(call);
    this.limit ??= toolCallLimit();
    call.refuse(`Not run: ${this.limit.message}`);
  }

  // ── Execution ──────────────────────────────────────────────────────────────────────────────────────────────

  /** Journals that calls begin whose effects must not happen twice: after a crash they are in doubt. */
  private started(calls: readonly Call[]): Awaitable<void> {
    const begin = calls.filter(
      ({ result, ctx, toolCall }) =>
        !result &&
        !this.isHalted &&
        inDoubtPolicy(ctx.tool) === 'fail' &&
        !this.batch.started.includes(toolCall.id),
    );
    if (begin.length === 0) return;
    for (const call of begin) call.fresh = true;
    const { runId } = this.runner;
    return this.runner.append(begin.map(({ toolCall }) => startOf(runId, this.message.id, toolCall.id)));
  }

  private async execute(call: Call): Promise<void> {
    if (!call.result && this.isHalted) return;
    tellStart(call);
    let result = call.result ?? this.doubt(call);
    try {
      if (!result) {
        const work = this.goIn(call);
        // Without layers nothing but the tool is inside, which is left behind when it ignores an abort.
        const layered = work instanceof Promise && this.runner.plan.layers.tool.length > 0;
        result = (await (layered ? this.runner.supervise(work) : work)) as ToolResult;
        for (let asked = call.answered(); asked; asked = call.answered()) await asked;
        call.check();
      }
    } catch (error) {
      if (this.interrupted(call, error)) return;
      result = errorResult(call.whyNoResult(error));
    }
    const { judgements } = this.runner;
    // What the outermost layer assigned is still in the context that `afterToolCall` gets.
    if (judgements.hides(call.ctx)) await judgements.assigned(call.ctx);
    const wait = finish(call, result);
    if (wait) await wait;
  }

  private goIn(call: Call): Awaitable<unknown> {
    const { layers, onions } = this.runner.plan;
    if (layers.tool.length > 0) onions.tool ??= new Onion(layers.tool, innermost);
    call.goIn();
    return onions.tool ? onions.tool.enter(0, call.ctx) : innermost(call.ctx);
  }

  /** Nothing begins any more: the run stops, is aborted, or waits for an answer that may change everything. */
  private get isHalted(): boolean {
    return this.waiting !== undefined || endOf(this.runner) !== undefined;
  }

  suspend(call: Call, ctx: ToolContext, request: Request): Promise<Decision> {
    return this.approval.suspend(call, ctx, request);
  }

  wait(): void {
    this.waiting ??= new Aborted('The run waits for an answer.');
    for (const call of this.open) if (call.phase === 'running') call.halt(this.waiting);
  }

  /** A control signal came out of a call. True if the call has no result yet. */
  private interrupted(call: Call, error: unknown): boolean {
    if (call.isCutOff(error)) return call.attempts === 0;
    const kind = controlKind(error);
    if (kind === 'suspend') {
      call.pending = (error as Suspension).requests as readonly PendingRequest[];
      this.waiting ??= new Aborted('The run waits for an answer.');
      return true;
    }
    if (kind === 'stop') call.latch(error);
    return kind === 'abort' && this.runner.scope.aborted;
  }

  private doubt(call: Call): ToolResult | undefined {
    if (!this.hadBegun(call) || inDoubtPolicy(call.ctx.tool) !== 'fail') return undefined;
    return inDoubt(call.toolCall.name);
  }

  /** It had begun before this process went on with it. */
  private hadBegun(call: Call): boolean {
    return !this.verdicts && !call.fresh && this.batch.started.includes(call.toolCall.id);
  }

  // ── The end ────────────────────────────────────────────────────────────────────────────────────────────────

  /** The run ends here, or waits for answers. */
  private async conclude(ended: unknown): Promise<BatchOutcome> {
    const { runner: run, open } = this;
    if (ended !== undefined) {
      await this.answerRest(ended);
      throw ended;
    }
    const pending = open.flatMap((call) => call.pending ?? []);
    const notBegun = this.notBegun();
    await run.append(
      pending.map((request, i) => ({
        type: 'request',
        runId: run.runId,
        request,
        ...(i === 0 && notBegun.length > 0 && { notBegun }),
      })),
    );
    this.approval.questions.tellAll(open);
    for (const call of open) if (call.begun && !call.done && !call.pending) tellWaiting(call, pending);
    return this.outcome(pending);
  }

  /** Ids of calls that were written down, or told, as begun, but begin after the answer. */
  private notBegun(): readonly string[] {
    const { started } = this.batch;
    return this.open
      .filter(({ done, attempts }) => !done && attempts === 0)
      .filter(({ begun, toolCall }) => begun || started.includes(toolCall.id))
      .map(({ toolCall }) => toolCall.id);
  }

  /** The control signal that ends the run after this batch, if there is one. */
  private ending(): unknown {
    const { scope, call: latch } = this.runner;
    if (scope.aborted) return scope.reason;
    if (latch.latched !== undefined) return latch.latched;
    for (const { latched, latchedBy } of this.open) {
      if (latched === undefined || controlKind(latched) === 'suspend') continue;
      latch.latch(latched, latchedBy);
      return latched;
    }
    // If a call asks somebody, the run goes on after the answer and meets the limit again.
    if (this.limit === undefined || this.waiting) return undefined;
    latch.latch(this.limit, 'kernel');
    return this.limit;
  }

  /** Something ends the run in the middle of the batch: every call is answered first. */
  private answerRest(why: unknown): Promise<void> {
    this.approving?.questions.close();
    for (const call of this.open)
      if (!call.done && this.hadBegun(call)) call.result ??= inDoubt(call.toolCall.name);
    return answerRest(this, why);
  }

  private outcome(pending: readonly PendingRequest[]): BatchOutcome {
    this.approving?.questions.close();
    const { calls, results, terminating } = this.batch;
    const done = results.filter((result) => result !== undefined);
    return { results: done, pending, terminate: terminating === calls.length };
  }
}

/** What is inside all layers. One function for every call: the context knows the call, and the call its batch. */
function innermost(ctx: ToolContext): Promise<ToolResult> {
  const call = ctx._call as Call;
  const asked = call.answered(ctx._scope);
  return asked || ctx._input.assigned ? settledFirst(call, ctx, asked) : executeTool(ctx);
}

/** The questions around the tool are answered, and arguments that a layer assigned are judged, before it runs. */
async function settledFirst(
  call: Call,
  ctx: ToolContext,
  first: Promise<unknown> | undefined,
): Promise<ToolResult> {
  for (let asked = first; asked; asked = call.answered(ctx._scope)) await asked;
  const refused = ctx._input.assigned
    ? await (call.batch as ToolBatch).approval.rejudge(call, ctx)
    : undefined;
  return refused ?? executeTool(ctx);
}
