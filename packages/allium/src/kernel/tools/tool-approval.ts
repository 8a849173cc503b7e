/** Whether calls may happen: what hooks and guards decide, what they ask people, and what people answer. */

import { hashOf, judgeRaw, runsAsWritten, validate } from '../calls/tool-arguments.js';
import type { Call, CallBatch } from '../calls/tool-call.js';
import type { ToolsRun } from '../calls/tools-run.js';
import type { ToolContext } from '../context/context.js';
import { isRequest } from '../context/request-shape.js';
import type { CallVerdict } from '../context/run-port.js';
import { storable } from '../guards/call-verdicts.js';
import { isAllowed } from '../journal/allowances.js';
import { type Asking, askersOf, asking, narrowed } from '../journal/merged-questions.js';
import { AlliumError, shown } from '../lib/errors.js';
import { hash } from '../lib/hash.js';
import { textOf } from '../messages/messages.js';
import { asToolResult, errorResult, type ToolResult, textResult } from '../messages/tool-result.js';
import { beforeToolCall, type CallDecision } from '../plan/rules.js';
import { Suspension } from '../protocol/signals.js';
import type { Decision, PendingRequest, Request } from '../protocol/store.js';
import { ToolQuestions } from './tool-questions.js';

const MAX_EDITS = 8;

/** A verdict with the arguments the hooks rewrote, if they did. */
type Verdict = CallDecision & { args?: unknown };

export class ToolApproval {
  readonly questions: ToolQuestions;
  private readonly run: ToolsRun;
  /** How many questions each context has asked with `ctx.suspend()`, by their keys. */
  private readonly counts = new WeakMap<ToolContext, Map<string | undefined, number>>();

  constructor(private readonly batch: CallBatch) {
    this.run = batch.runner;
    this.questions = new ToolQuestions(batch);
  }

  // ── Before anything runs ───────────────────────────────────────────────────────────────────────────────────

  /** Judges the whole batch in call order before anything executes, and returns the questions that stay open. */
  async judgeAll(calls: readonly Call[]): Promise<readonly PendingRequest[]> {
    for (const call of calls) {
      if (call.misfit) await this.rescue(call);
      if (!call.result && !call.pending) await this.follow(call, await this.verdict(call));
    }
    const pending = calls.flatMap((call) => call.pending ?? []);
    for (const request of pending) this.questions.stage(request);
    await this.questions.flush();
    this.questions.reportAll(calls);
    return pending;
  }

  /** What hooks and guards say about the arguments as they are now: from the journal, or judged and journaled. */
  private async verdict(call: Call): Promise<Verdict> {
    const { ctx, toolCall } = call;
    const { runId } = this.run;
    const hash = hashOf(ctx);
    const stored = this.run.open.decided?.verdicts.get(`${toolCall.id}\n${hash}`) as Verdict | undefined;
    if (stored) return this.restored(call, stored);
    const { revision, raw } = ctx._input;
    const before = ctx._state?.mark();
    const judged = await call.closed(() => this.judgeCall(call, ctx));
    if (call.pending) return {};
    if (judged?.block) call.refuse(judged.block.reason, judged.block.by);
    const verdict: Verdict = await releasedDecision(call, judged ?? {});
    if (ctx.revision > revision || (ctx._input.raw !== raw && !verdict.block)) verdict.args = ctx._input.raw;
    const entry = { runId, callId: toolCall.id, hash, verdict: storable(verdict) };
    this.questions.entries.push({ type: 'verdict', ...entry });
    // The hooks aren't asked again, so what they wrote to cells is written with the verdict. Cells of the call stay.
    if (ctx._state) this.run.cells.stageAll(ctx._state.takeSince(before));
    return verdict;
  }

  private async restored(call: Call, verdict: Verdict): Promise<Verdict> {
    if (!('args' in verdict)) return verdict;
    call.ctx._revise();
    const problem = await call.closed(() => validate(call.ctx, verdict.args));
    return problem ? { block: { reason: problem, by: 'kernel' } } : verdict;
  }

  /** Guards come first: no hook is asked about what they refuse. A refusal beats a question. */
  private async judgeCall(call: Call, ctx: ToolContext): Promise<CallDecision> {
    let guard: Partial<CallVerdict> | undefined = call.guardVerdict;
    // Guards have judged the calls of a fresh response, and calls that a hook brought. Other arguments, and those
    // found after a crash, are judged here.
    if ((!this.batch.verdicts && !call.resolved) || ctx.revision > 0) {
      const before = ctx.revision === 0 ? guard?.ask : undefined;
      const { deny, ask = before } = await judgeRaw(ctx);
      guard = { deny, ask };
    }
    if (guard?.deny) return { block: guard.deny };
    let { ask } = guard ?? {};
    const decision = await beforeToolCall(this.run.plan.rules.beforeToolCall, ctx, async (raw) => {
      ctx._revise();
      const judged = await judgeRaw(ctx, raw);
      ask = judged.ask;
      return judged.deny?.reason;
    });
    if (ask && !decision.block) decision.ask = asking(decision.ask, ask)!;
    if (!decision.result) return decision;
    return { ...decision, result: { ...decision.result, value: asToolResult(decision.result.value) } };
  }

  /** Acts on a verdict: refuses the call, presets its result, or finds out what a person says. */
  private async follow(call: Call, { block, ask, result }: Verdict): Promise<void> {
    if (call.result || call.pending) return;
    if (block) return call.refuse(block.reason, block.by);
    if (ask && call.approved !== hashOf(call.ctx)) {
      const { request, given } = await this.question(call, call.ctx, ask);
      const answered = this.run.open.decided?.answers.has(request.id);
      const edit = answered || call.edits > 0 ? undefined : this.questions.editOf(call);
      // The schema has changed since somebody edited the arguments. Unless it takes them as they were written, people are
      // shown what it makes of them now.
      if (edit) return this.edit(call, edit.args, runsAsWritten);
      const answer = await this.questions.answer(call, request, given, this.run.scope);
      if (!answer) {
        call.pending = [request];
        return;
      }
      this.run.trace?.decided(call.ctx, answer);
      if (answer.type === 'edit') return this.edit(call, answer.args);
      if (answer.type === 'approve') call.approved = request.hash;
      else if (answer.type === 'reject') call.refuse(rejection(answer), 'human');
      else call.result = textResult(answer.text);
    }
    if (result) call.result ??= result.value as ToolResult;
  }

  /** One question for everybody who asks: that of the first who isn't satisfied by an allowance. */
  private async question(
    call: Call,
    ctx: ToolContext,
    ask: Asking,
  ): Promise<{ request: PendingRequest; given: Request }> {
    await this.questions.heedRevoked();
    const { allowed } = this.run.state;
    const about = { kind: 'ask', toolName: ctx.toolCall.name, hash: hashOf(ctx) } as const;
    const all = askersOf(ask);
    const left = all.filter(({ request, by }) => !isAllowed(allowed, { ...request, ...about, by }));
    const [first = all[0]!, ...others] = left;
    const given = narrowed([first, ...others]);
    return { request: await this.questions.make(call, ctx, 'ask', given, first.by), given };
  }

  /** The model's arguments don't fit a schema that has changed, but what a person wrote instead may. */
  private async rescue(call: Call): Promise<void> {
    const edit = this.questions.editOf(call);
    if (!edit) return;
    call.misfit = false;
    call.result = undefined;
    call.blocked = false;
    await this.edit(call, edit.args);
  }

  /** Arguments from a person are validated and judged like the model's own. Writing them counts as approval. */
  private async edit(call: Call, args: unknown, isApproved = (_: ToolContext) => true): Promise<void> {
    const { ctx } = call;
    if (++call.edits > MAX_EDITS)
      return call.refuse(`Not run: its arguments were edited more than ${MAX_EDITS} times.`, 'kernel');
    ctx._revise();
    const problem = await call.closed(() => validate(ctx, args));
    if (problem) return call.refuse(`The edited arguments are invalid.\n${problem}`, 'human');
    if (call.result) return;
    if (isApproved(ctx)) call.approved = hashOf(ctx);
    await this.follow(call, await this.verdict(call));
  }

  // ── While a call runs ──────────────────────────────────────────────────────────────────────────────────────

  /** `ctx.suspend()`: the answer, or the signal that ends this attempt. */
  async suspend(call: Call, ctx: ToolContext, request: Request): Promise<Decision> {
    const { judgements } = this.run;
    if (!isRequest(request)) {
      throw new AlliumError(
        'INVALID_HOOK_RESULT',
        `ctx.suspend() takes a request { title?, details?, timeoutMs?, decisions?, remember?, onRequest? }, got ${shown(request)}.`,
      );
    }
    this.run.call.check();
    if (call.phase === 'ending') {
      throw new AlliumError(
        'INVALID_HOOK_RESULT',
        'ctx.suspend() came after the tool had run. Ask in beforeToolCall, or in the tool before it acts.',
      );
    }
    // Arguments that a layer assigned are written and shown with the question.
    if (judgements.hasUnjudgedArguments(ctx)) await judgements.judgeAssigned(ctx);
    // Counted per context, so that an attempt that starts anew finds the answers of the one before.
    const { key } = request;
    const counts = this.counts.get(ctx) ?? new Map<string | undefined, number>();
    const count = (counts.get(key) ?? 0) + 1;
    this.counts.set(ctx, counts.set(key, count));
    const by = this.run.nameAt(ctx._position);
    // A layer and the tool inside it count in contexts of their own, so the id says who asks.
    const asker = call.phase === 'judging' ? 'hook' : by === undefined ? 'tool' : `${by}-`;
    const about = key === undefined ? '' : `-${hash(key)}`;
    const pending = await this.questions.make(call, ctx, 'suspend', request, by, `-${asker}${count}${about}`);
    return this.answerOrSuspend(call, ctx, pending, request);
  }

  /** Judges arguments that a layer changed like new ones. An approval for other arguments doesn't count. */
  async rejudge(call: Call, ctx: ToolContext): Promise<ToolResult | undefined> {
    const { block, ask, result } = await this.judgeCall(call, ctx);
    if (block) return errorResult(block.reason);
    if (ask && call.approved !== hashOf(ctx)) {
      const { request, given } = await this.question(call, ctx, ask);
      const answer = await this.answerOrSuspend(call, ctx, request, given);
      if (answer.type === 'respond') return textResult(answer.text);
      if (answer.type === 'reject') return errorResult(rejection(answer));
      if (answer.type === 'edit')
        return errorResult('Not run: arguments that a middleware rewrites cannot be edited.');
    }
    return result?.value as ToolResult | undefined;
  }

  private async answerOrSuspend(
    call: Call,
    ctx: ToolContext,
    pending: PendingRequest,
    request: Request,
  ): Promise<Decision> {
    const answer = await this.questions.answer(call, pending, request, ctx._scope);
    if (answer) {
      this.run.trace?.decided(ctx, answer);
      return answer;
    }
    const signal = new Suspension(pending);
    ctx._latch(signal);
    throw signal;
  }
}

/** A decision with what guards leave of the words the model will read: it is journaled before the result is. */
async function releasedDecision(call: Call, { block, ...rest }: CallDecision): Promise<CallDecision> {
  const { judgements, plan } = call.run;
  let { result } = rest;
  if (plan.guards['tool-result'].length > 0)
    await call.closed(async () => {
      if (call.result) call.result = await judgements.toolResult(call.ctx, call.result);
      else if (result)
        result = { ...result, value: await judgements.toolResult(call.ctx, result.value as ToolResult) };
    });
  // It was refused, or something failed.
  if (call.result) return { block: { reason: textOf(call.result), by: block?.by ?? 'kernel' } };
  return result ? { ...rest, result } : rest;
}

/** Small models make a call again unless they are told not to. */
function rejection({ reason }: Decision & { type: 'reject' }): string {
  return (
    reason ?? 'A person rejected this call, so it was not run. Do not make it again unless you are asked to.'
  );
}
