/** The tool phase of a turn: every call gets exactly one result, in call order, whatever happens. */

import type { ToolContext } from '../context/context.js';
import type { CallVerdicts } from '../context/run-port.js';
import { endOf, toolCallLimit } from '../context/stop-checks.js';
import type { OpenBatch } from '../journal/journaled-run.js';
import { Onion } from '../layers/onion.js';
import { messageOf } from '../lib/errors.js';
import { type AssistantMessage, NOTHING, type ToolMessage } from '../messages/messages.js';
import { startOf } from '../model/tool-starts.js';
import { Aborted, controlKind, type StopRun, type Suspension } from '../protocol/signals.js';
import type { Awaitable, EntryDraft, PendingRequest } from '../protocol/store.js';
import { errorResult, inDoubtPolicy, type Tool, type ToolResult } from '../protocol/tool.js';
import { needsApproval, ToolApproval } from './tool-approval.js';
import { Call } from './tool-call.js';
import { executeTool } from './tool-execution.js';
import { executeMany } from './tool-lanes.js';
import { prepare } from './tool-preparation.js';
import { answerRest, begin, finish, waits } from './tool-results.js';
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
  /** What guards said about the calls when they were made; undefined after a resume, where they are asked again. */
  readonly verdicts?: CallVerdicts;
  /** Nothing runs; each call is answered with this. */
  readonly notRun?: string | undefined;
}

/** The calls of a message, or what is left of them after a resume. */
export class ToolBatch {
  declare readonly runner: ToolsRun;
  declare readonly batch: OpenBatch;
  declare readonly options: BatchOptions;
  declare readonly message: AssistantMessage;
  declare private approving: ToolApproval | undefined;
  /** One of the calls asks somebody. */
  declare private waiting: boolean;
  /** What calls beside it are cut off with. */
  declare private waits: Aborted | undefined;
  /** A kernel limit that cuts this batch short: what fits still runs. */
  declare limit: StopRun | undefined;
  /** Those that had no result when this process began with them. */
  declare readonly open: readonly Call[];

  constructor(runner: ToolsRun, batch: OpenBatch, options: BatchOptions) {
    this.runner = runner;
    this.batch = batch;
    this.options = options;
    this.message = batch.message;
    this.approving = undefined;
    this.waiting = false;
    this.waits = undefined;
    this.limit = undefined;
    // Results follow each other in call order.
    const first = runner.open.count + 1;
    const { calls, results } = batch;
    const open = results[0] ? [] : [new Call(this, 0, first, calls[0]!)];
    for (let i = 1; i < calls.length; i++)
      if (!results[i]) open.push(new Call(this, i, first + i, calls[i]!));
    this.open = open;
  }

  /** The calls were just made: none can have begun before. */
  get isFresh(): boolean {
    return this.options.verdicts !== undefined;
  }

  /** Made for the first question: most batches have none. */
  get approval(): ToolApproval {
    this.approving ??= new ToolApproval(this);
    return this.approving;
  }

  /** Answers at once as long as nothing has to wait: no hook, tool or store that answers with a promise. */
  run(): Awaitable<BatchOutcome> {
    const { open } = this;
    if (!this.isFresh) {
      const ended = endOf(this.runner);
      if (ended !== undefined) return this.broken(ended);
      // Those beyond the limit may have been answered before.
      if (this.options.notRun === undefined && this.batch.calls.length > this.runner.toolCallsLeft())
        this.limit = toolCallLimit();
    }
    if (needsApproval(this.runner)) return this.judgeThenExecute(0);
    const allowed = this.runner.toolCallsLeft();
    for (let i = 0; i < open.length; i++) {
      try {
        const wait = this.prepare(open[i]!, allowed);
        if (wait)
          return wait.then(
            () => this.judgeThenExecute(i + 1),
            (error) => this.broken(error),
          );
      } catch (error) {
        return this.broken(error);
      }
    }
    return this.execute();
  }

  /** The slow way: calls before `first` are prepared already. */
  private async judgeThenExecute(first: number): Promise<BatchOutcome> {
    const { open } = this;
    try {
      const allowed = this.runner.toolCallsLeft();
      for (let i = first; i < open.length; i++) {
        const wait = this.prepare(open[i]!, allowed);
        if (wait) await wait;
      }
      // What is in doubt does not run, so nobody is asked whether it may.
      for (const call of open) call.result ??= this.doubt(call);
      const pending = needsApproval(this.runner) ? await this.approval.judgeAll(open) : NOTHING;
      if (pending.length > 0) return this.outcome(pending);
    } catch (error) {
      return this.broken(error);
    }
    return this.execute();
  }

  private execute(): Awaitable<BatchOutcome> {
    const { open } = this;
    try {
      if (open.length !== 1) return this.concluded(executeMany(this, open));
      const wait = this.started(open);
      if (wait)
        return wait.then(
          () => this.executeAlone(open[0]!),
          (error) => this.broken(error),
        );
    } catch (error) {
      return this.broken(error);
    }
    return this.executeAlone(open[0]!);
  }

  /** The calls are over, once `wait` is. */
  private concluded(wait: Awaitable<void>): Awaitable<BatchOutcome> {
    if (!wait) return this.conclude();
    return wait.then(
      () => this.conclude(),
      (error) => this.broken(error),
    );
  }

  private conclude(): Awaitable<BatchOutcome> {
    const ended = this.ending();
    if (ended === undefined && !this.waiting) return this.outcome(NOTHING);
    return this.concludeEarly(ended);
  }

  private async concludeEarly(ended: unknown): Promise<BatchOutcome> {
    if (ended !== undefined) {
      await this.answerRest(ended);
      throw ended;
    }
    const pending = this.open.flatMap((call) => call.pending ?? []);
    const { runId } = this.runner;
    const notBegun = this.notBegun();
    await this.runner.append(
      pending.map((request, i) => ({
        type: 'request',
        runId,
        request,
        ...(i === 0 && notBegun.length > 0 && { notBegun }),
      })),
    );
    this.approval.questions.tellAll(this.open);
    for (const call of this.open) if (call.begun && !call.done && !call.pending) waits(call, pending);
    return this.outcome(pending);
  }

  /** Ids of calls that were written down, or told, as begun, and wait for the answer before they do. */
  private notBegun(): readonly string[] {
    const { started } = this.batch;
    const left = this.open.filter((call) => !call.done && call.attempts === 0);
    const begun = left.filter(({ begun, toolCall }) => begun || started.includes(toolCall.id));
    return begun.map(({ toolCall }) => toolCall.id);
  }

  /** Something ends the run in the middle of the batch: every call is answered before it goes on outward. */
  private async broken(error: unknown): Promise<never> {
    const by = this.open.find(({ latched }) => latched === error)?.latchedBy;
    if (controlKind(error) === 'stop') this.runner.call.latch(error, by);
    await this.answerRest(error);
    throw error;
  }

  private answerRest(why: unknown): Promise<void> {
    this.approving?.questions.close();
    for (const call of this.open)
      if (!call.done && this.hadBegun(call)) call.result ??= inDoubt(call.toolCall.name);
    return answerRest(this, why);
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
    // What fits and asks somebody goes on once it is answered; the limit is found again then.
    if (this.limit === undefined || this.waiting) return undefined;
    latch.latch(this.limit, 'kernel');
    return this.limit;
  }

  private outcome(pending: readonly PendingRequest[]): BatchOutcome {
    this.approving?.questions.close();
    const { answered, calls, results, terminating } = this.batch;
    const all = answered === calls.length ? results : results.filter((result) => result !== undefined);
    return { results: all as readonly ToolMessage[], pending, terminate: terminating === calls.length };
  }

  // ── Before anything runs ───────────────────────────────────────────────────────────────────────────────────

  /** What can be known before hooks and guards judge. Waits only where a hook or schema does. */
  private prepare(call: Call, allowed: number): Awaitable<void> {
    const { notRun } = this.options;
    if (notRun !== undefined) return call.refuse(`Not run: ${notRun}`);
    if (call.index >= allowed) {
      this.limit ??= toolCallLimit();
      return call.refuse(`Not run: ${this.limit.message}`);
    }
    return prepare(call);
  }

  // ── Execution ──────────────────────────────────────────────────────────────────────────────────────────────

  /** Journals that calls begin whose effects may not happen twice: after a crash they are in doubt. */
  started(calls: readonly Call[]): Awaitable<void> {
    let entries: EntryDraft[] | undefined;
    for (const call of calls) {
      const { id: callId } = call.toolCall;
      if (
        call.result ||
        this.halted() ||
        inDoubtPolicy(call.ctx.tool) !== 'fail' ||
        this.batch.started.includes(callId)
      )
        continue;
      call.fresh = true;
      entries ??= [];
      entries.push(startOf(this.runner.runId, this.message.id, callId));
    }
    return entries && this.runner.append(entries);
  }

  /** What has not begun does not begin: the run stops, is aborted, or waits for an answer that may change everything. */
  private halted(): boolean {
    return this.waiting || endOf(this.runner) !== undefined;
  }

  /** One of several. */
  executeOne(call: Call): Awaitable<void> {
    if (!this.begins(call)) return call.result && this.finish(call, call.result);
    let work: Awaitable<unknown>;
    try {
      const { onion } = this;
      call.goIn();
      work = onion ? onion.enter(0, call.ctx) : this.innermost(call, call.ctx);
    } catch (error) {
      return this.gaveUp(call, error);
    }
    if (!(work instanceof Promise)) return this.ended(call, work);
    return this.runner.supervise(work).then(
      (result) => this.ended(call, result),
      (error) => this.gaveUp(call, error),
    );
  }

  /** The only call that is left ends the batch with it: one promise less to wait for. */
  private executeAlone(call: Call): Awaitable<BatchOutcome> {
    let work: Awaitable<unknown>;
    try {
      if (!this.begins(call)) return this.concluded(call.result && this.finish(call, call.result));
    } catch (error) {
      return this.broken(error);
    }
    try {
      const { onion } = this;
      call.goIn();
      work = onion ? onion.enter(0, call.ctx) : this.innermost(call, call.ctx);
    } catch (error) {
      return this.over(error, true);
    }
    if (!(work instanceof Promise)) return this.over(work, false);
    return this.runner.supervise(work).then(
      (result) => this.over(result, false),
      (error) => this.over(error, true),
    );
  }

  private over(value: unknown, failed: boolean): Awaitable<BatchOutcome> {
    const call = this.open[0]!;
    try {
      return this.concluded(failed ? this.gaveUp(call, value) : this.ended(call, value));
    } catch (error) {
      return this.broken(error);
    }
  }

  /** False: it has its result already, or does not begin at all. */
  private begins(call: Call): boolean {
    if (!call.result && this.halted()) return false;
    begin(call);
    call.result ??= this.doubt(call);
    return call.result === undefined;
  }

  private get onion(): Onion | undefined {
    const { layers, onions } = this.runner.plan;
    if (layers.tool.length > 0) onions.tool ??= new Onion(layers.tool, innermost);
    return onions.tool;
  }

  /** The layers and the tool have come to a result. */
  private ended(call: Call, result: unknown): Awaitable<void> {
    const asked = call.answered();
    if (asked)
      return asked.then(
        () => this.ended(call, result),
        (error) => this.gaveUp(call, error),
      );
    try {
      call.check();
    } catch (error) {
      return this.gaveUp(call, error);
    }
    return this.finish(call, result as ToolResult);
  }

  private gaveUp(call: Call, error: unknown): Awaitable<void> {
    if (this.interrupted(call, error)) return;
    return this.finish(call, errorResult(this.whyNoResult(call, error)));
  }

  private whyNoResult(call: Call, error: unknown): string {
    if (call.latched !== undefined) return `Stopped: ${messageOf(call.latched)}`;
    return call.isCutOff(error) ? call.cutOffText() : call.failureText(error);
  }

  private finish(call: Call, result: ToolResult): Awaitable<void> {
    const { judgements } = this.runner;
    // What the outermost layer assigned is still in the context that `afterToolCall` gets.
    return judgements.hides(call.ctx)
      ? judgements.assigned(call.ctx).then(() => this.settle(call, result))
      : this.settle(call, result);
  }

  private settle(call: Call, result: ToolResult): Awaitable<void> {
    return finish(call, result);
  }

  innermost(call: Call, ctx: ToolContext): Awaitable<ToolResult> {
    const asked = call.answered(ctx._scope);
    if (asked) return asked.then(() => this.innermost(call, ctx));
    if (!ctx._input.assigned) return executeTool(ctx);
    return this.approval.rejudge(call, ctx).then((refused) => refused ?? executeTool(ctx));
  }

  private doubt(call: Call): ToolResult | undefined {
    if (!this.hadBegun(call) || inDoubtPolicy(call.ctx.tool) !== 'fail') return undefined;
    return inDoubt(call.toolCall.name);
  }

  /** Before this process went on with it. */
  private hadBegun(call: Call): boolean {
    return !this.isFresh && !call.fresh && this.batch.started.includes(call.toolCall.id);
  }

  /** One of the calls asks somebody: those that have not begun begin after the answer, and none is tried again. */
  wait(): void {
    this.waiting = true;
    this.waits ??= new Aborted('The run waits for an answer.');
    for (const call of this.open) if (call.phase === 'running') call.halt(this.waits);
  }

  /** A control signal came out of a call. True when the call has no result yet. */
  private interrupted(call: Call, error: unknown): boolean {
    const kind = controlKind(error);
    if (call.isCutOff(error)) {
      if (call.attempts > 0) return false;
      return true;
    }
    if (kind === 'suspend') {
      call.pending = (error as Suspension).requests as readonly PendingRequest[];
      this.waiting = true;
      return true;
    }
    if (kind === 'stop') call.latch(error);
    return kind === 'abort' && this.runner.scope.aborted;
  }
}

/** The call of the context knows its batch: no function has to be made for each call. */
function innermost(ctx: ToolContext): Awaitable<ToolResult> {
  const call = ctx._call as Call;
  return call.batch.innermost(call, ctx);
}
