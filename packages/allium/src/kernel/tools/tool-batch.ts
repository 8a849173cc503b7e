/**
 * The tool phase of a turn: resolve → validate → ask → execute → record. Every call gets exactly one result, in call
 * order, whatever happens.
 */

import { prepare } from '../calls/tool-arguments.js';
import { Call, type CallBatch } from '../calls/tool-call.js';
import { executeTool } from '../calls/tool-execution.js';
import { answerRest, finish, reportStart, reportWaiting } from '../calls/tool-results.js';
import type { ToolsRun } from '../calls/tools-run.js';
import type { ToolContext } from '../context/context.js';
import type { CallVerdicts } from '../context/run-port.js';
import { endingSignal, toolCallLimit } from '../context/stop-checks.js';
import type { OpenBatch } from '../journal/journaled-run.js';
import { Onion } from '../layers/onion.js';
import { isThenable } from '../lib/errors.js';
import { type AssistantMessage, NOTHING, type ToolMessage } from '../messages/messages.js';
import type { ToolResult } from '../messages/tool-result.js';
import { startOf } from '../model/write-answer.js';
import { Aborted, controlKind, type StopRun, type Suspension } from '../protocol/signals.js';
import type { Awaitable, Decision, EntryDraft, PendingRequest, Request } from '../protocol/store.js';
import { inDoubtPolicy, type Tool } from '../protocol/tool.js';
import { ToolApproval } from './tool-approval.js';
import { executeAll } from './tool-lanes.js';

export interface BatchOutcome {
  readonly results: readonly ToolMessage[];
  readonly terminate: boolean;
  /** Questions nobody has answered yet: the run suspends. */
  readonly pending: readonly PendingRequest[];
}

/** The calls of a message, or what is left of them after a resume. */
export class ToolBatch implements CallBatch {
  readonly message: AssistantMessage;
  readonly open: readonly Call[];
  limit: StopRun | undefined = undefined;
  /** Set once one of the calls asks somebody. Calls beside it are cut off with this signal. */
  private waiting: Aborted | undefined = undefined;
  private approving: ToolApproval | undefined = undefined;

  constructor(
    readonly runner: ToolsRun,
    private readonly batch: OpenBatch,
    /** The tools the model was shown. */
    readonly tools: readonly Tool[],
    /** Nothing runs: each call is answered with this. */
    private readonly notRun: string | undefined,
    /** What guards said about the calls when they were made; undefined after a resume. */
    readonly verdicts: CallVerdicts | undefined,
  ) {
    const { message, calls, results } = batch;
    this.message = message;
    const made = calls.map((call, i) => (results[i] ? undefined : new Call(this, i, call)));
    this.open = batch.answered === 0 ? (made as Call[]) : made.filter((call) => call !== undefined);
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

  /** Awaits only what has to be awaited. By index, because an async function has to keep the state of every loop. */
  async run(): Promise<BatchOutcome> {
    const { runner, open } = this;
    try {
      if (!this.verdicts) this.checkResumed();
      const allowed = runner.toolCallsLeft();
      for (let i = 0; i < open.length; i++) {
        const checked = this.prepare(open[i]!, allowed);
        if (checked) await checked;
      }
      if (!this.verdicts) this.reportDoubts();
      if (this.needsApproval) {
        const pending = await this.approval.judgeAll(open);
        if (pending.length > 0) return this.outcome(pending);
      }
      if (!this.isInTurn) await executeAll(open, this);
      else
        for (let i = 0; i < open.length; i++) {
          const call = open[i]!;
          const written = this.started([call]);
          if (written) await written;
          const work = this.execute(call);
          if (work) await work;
        }
    } catch (error) {
      return this.breakOff(error);
    }
    const ended = this.ending();
    return ended === undefined && !this.waiting ? this.outcome(NOTHING) : this.conclude(ended);
  }

  /** Does anything judge calls before they run? A stored verdict holds even without the middleware that gave it. */
  private get needsApproval(): boolean {
    const { plan, open } = this.runner;
    if (plan.rules.beforeToolCall.length > 0 || plan.guards['tool-args'].length > 0) return true;
    return open.decided !== undefined && open.decided.verdicts.size > 0;
  }

  /** Do the calls run one after the other? A resume must not change that, so calls with results count too. */
  private get isInTurn(): boolean {
    const { open, runner, batch, tools } = this;
    return (
      open.length === 1 ||
      runner.agent.toolExecution === 'sequential' ||
      open.some(({ ctx }) => ctx.tool?.sequential) ||
      (batch.answered > 0 && batch.calls.some(({ name }) => runner.findTool(name, tools)?.sequential))
    );
  }

  private checkResumed(): void {
    const ended = endingSignal(this.runner);
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

  /** Journals the start of calls whose effects must not happen twice: after a crash they are in doubt. */
  started(calls: readonly Call[]): Awaitable<void> {
    const { runner: run, message, batch } = this;
    let entries: EntryDraft[] | undefined;
    for (let i = 0; i < calls.length; i++) {
      const call = calls[i]!;
      const { id } = call.toolCall;
      if (call.result || inDoubtPolicy(call.ctx.tool) !== 'fail' || batch.started.includes(id)) continue;
      if (this.isHalted) break;
      call.fresh = true;
      entries ??= [];
      entries.push(startOf(run.runId, message.id, id));
    }
    if (entries) return run.append(entries);
  }

  /** Runs a call, unless it has a result already, and records its result. */
  execute(call: Call): Awaitable<void> {
    if (!call.result && this.isHalted) return;
    reportStart(call);
    if (call.result) return this.record(call, call.result);
    let work: Awaitable<ToolResult>;
    try {
      work = this.runInLayers(call);
    } catch (error) {
      return this.callFailed(call, error);
    }
    if (!isThenable(work)) return this.cameOut(call, work);
    return work.then(
      (result) => this.cameOut(call, result),
      (error) => this.callFailed(call, error),
    );
  }

  private cameOut(call: Call, result: ToolResult): Awaitable<void> {
    const asked = call.answered();
    if (asked === undefined)
      return call.latched === undefined ? this.record(call, result) : this.callFailed(call, call.latched);
    return asked.then(
      () => this.cameOut(call, result),
      (error) => this.callFailed(call, error),
    );
  }

  private callFailed(call: Call, error: unknown): Awaitable<void> {
    if (!this.interrupted(call, error)) return this.record(call, call.resultOf(error));
  }

  private record(call: Call, result: ToolResult): Awaitable<void> {
    const { judgements } = this.runner;
    // What the outermost layer assigned is still in the context that `afterToolCall` gets.
    if (judgements.hasUnjudgedArguments(call.ctx))
      return judgements.judgeAssigned(call.ctx).then(() => finish(call, result));
    return finish(call, result);
  }

  private runInLayers(call: Call): Awaitable<ToolResult> {
    const { layers, onions } = this.runner.plan;
    call.enterLayers();
    // Without layers only the tool is inside. It is left behind if it ignores an abort.
    if (layers.tool.length === 0) return innermost(call.ctx);
    onions.tool ??= new Onion(layers.tool, innermost);
    const work = onions.tool.enter(0, call.ctx) as Awaitable<ToolResult>;
    return isThenable(work) ? this.runner.supervise(work) : work;
  }

  /** Nothing begins any more: the run stops, is aborted, or waits for an answer that may change everything. */
  private get isHalted(): boolean {
    return this.waiting !== undefined || endingSignal(this.runner) !== undefined;
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

  /**
   * A call that had begun isn't run again or asked about, unless its tool allows it. Nor is it said not to have run,
   * if it is refused now: the tool may be gone, or take other arguments, in the program that goes on.
   */
  private reportDoubts(): void {
    for (const call of this.open) {
      if (!this.hadBegun(call)) continue;
      if (call.result || inDoubtPolicy(call.ctx.tool) === 'fail') call.doubt();
    }
  }

  /** It had begun before this process took over. */
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
    const replaces = this.approval.questions.outdatedBy(pending);
    const entries: EntryDraft[] = pending.map((request, i) => ({
      type: 'request',
      runId: run.runId,
      request,
      ...(i === 0 && notBegun.length > 0 && { notBegun }),
      ...(i === 0 && replaces.length > 0 && { replaces }),
      waits: true,
    }));
    try {
      await run.append(entries);
    } catch (error) {
      return this.breakOff(error);
    }
    this.approval.questions.reportAll(open);
    for (const call of open) if (call.begun && !call.done && !call.pending) reportWaiting(call, pending);
    return this.outcome(pending);
  }

  /** Ids of calls that were journaled or reported as begun, but begin after the answer. */
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
    for (let i = 0; i < this.open.length; i++) {
      const { latched, latchedBy } = this.open[i]!;
      if (latched === undefined || controlKind(latched) === 'suspend') continue;
      latch.latch(latched, latchedBy);
      return latched;
    }
    // If a call asks somebody, the run goes on after the answer and meets the limit again.
    if (this.limit === undefined || this.waiting) return undefined;
    latch.latch(this.limit, 'kernel');
    return this.limit;
  }

  /** Something ends the run in the middle of the batch. */
  private async breakOff(error: unknown): Promise<never> {
    const by = this.open.find(({ latched }) => latched === error)?.latchedBy;
    if (controlKind(error) === 'stop') this.runner.call.latch(error, by);
    await this.answerRest(error);
    throw error;
  }

  /** Every call is answered before the run ends. */
  private answerRest(why: unknown): Promise<void> {
    this.approving?.questions.close();
    for (const call of this.open) if (!call.done && this.hadBegun(call)) call.doubt();
    return answerRest(this, why);
  }

  private outcome(pending: readonly PendingRequest[]): BatchOutcome {
    this.approving?.questions.close();
    const { calls, results, terminating, answered } = this.batch;
    const done = answered === calls.length ? results : results.filter((result) => result !== undefined);
    return { results: done as ToolMessage[], pending, terminate: terminating === calls.length };
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
