/** Whether calls may happen: verdicts of hooks and guards, the questions they ask, and what people answer. */

import { admit, isJudged } from './admission.js';
import { firstAnswer, hasLapsed } from './answers.js';
import type { CallVerdict, CallVerdicts } from './call-verdicts.js';
import { judgeUpdate } from './content-guards.js';
import type { Context, ToolContext } from './context.js';
import { AlliumError, isThenable, Suspension, shown } from './errors.js';
import { callHash } from './hash.js';
import { isRequest } from './hook-shapes.js';
import { posted } from './inbox.js';
import { LAPSED, LiveQuestions } from './live-questions.js';
import { type AssistantMessage, deepFreeze, type ToolCall, textOf } from './messages.js';
import { beforeToolCall, type CallDecision } from './rules.js';
import type { Run } from './run.js';
import { type Scope, untilAborted } from './scope.js';
import type { Decision, EntryBody, EntryDraft, InboxItem, PendingRequest, Request } from './store.js';
import { asToolResult, errorResult, inDoubtPolicy, type ToolResult, textResult } from './tool.js';
import type { ToolBatch } from './tool-batch.js';
import { BY_GUARDS, type Call, judgeRaw, released, validate } from './tool-call.js';
import { startOf } from './tool-starts.js';

const MAX_EDITS = 8;

/** A verdict with the arguments the hooks rewrote, if they did. */
type Verdict = CallDecision & { args?: unknown };

/** Does anything judge calls before they run? What was said of them holds, also without the middleware that said it. */
export function needsApproval({ plan, open }: Run): boolean {
  if (plan.rules.beforeToolCall.length > 0 || plan.guards['tool-args'].length > 0) return true;
  return open.decided !== undefined && open.decided.verdicts.size > 0;
}

export class ToolApproval {
  /** What waits to be written: verdicts and questions. */
  private entries: EntryBody[] = [];
  private asked: WeakMap<ToolContext, number> | undefined;
  /** Made for the first question to a handler here. */
  private questions: LiveQuestions | undefined;

  constructor(private readonly batch: ToolBatch) {}

  private get run(): Run {
    return this.batch.runner;
  }

  /** The whole batch is judged in call order before anything executes; questions that are open come back. */
  async judgeAll(calls: readonly Call[]): Promise<readonly PendingRequest[]> {
    for (const call of calls)
      if (!call.result && !call.pending) await this.settle(call, await this.verdict(call));
    const pending = calls.flatMap((call) => call.pending ?? []);
    for (const request of pending) this.post(request);
    await this.flush();
    return pending;
  }

  /** What hooks and guards say about the arguments as they are now: from the journal, or judged and journaled. */
  private async verdict(call: Call): Promise<Verdict> {
    const { ctx, toolCall } = call;
    const hash = hashOf(ctx);
    const stored = this.run.open.decided?.verdicts.get(`${toolCall.id}\n${hash}`) as Verdict | undefined;
    if (stored) return this.restored(call, stored);
    const { revision, raw } = ctx._input;
    const before = ctx._state?.mark();
    const judged = await call.closed(() => this.judge(call, ctx));
    if (call.pending) return {};
    if (judged?.block) call.refuse(judged.block.reason, judged.block.by);
    const verdict: Verdict = await released(call, judged ?? {});
    if (ctx.revision > revision || (ctx._input.raw !== raw && !verdict.block)) verdict.args = ctx._input.raw;
    this.entries.push({
      type: 'verdict',
      runId: this.run.runId,
      callId: toolCall.id,
      hash,
      verdict: storable(verdict),
    });
    // It is not taken again, so what its hooks wrote is written with it. Cells of the call stay with the call.
    if (ctx._state) this.run.cells.stageAll(ctx._state.take(before));
    return verdict;
  }

  private async restored(call: Call, verdict: Verdict): Promise<Verdict> {
    if (!('args' in verdict)) return verdict;
    call.ctx._revise();
    const problem = await call.closed(() => validate(call.ctx, verdict.args));
    return problem ? { block: { reason: problem, by: 'kernel' } } : verdict;
  }

  /** Guards first: what they refuse no hook is asked about. Deny beats ask. */
  private async judge(call: Call, ctx: ToolContext): Promise<CallDecision> {
    let guard: Partial<CallVerdict> | undefined = call.guardVerdict;
    // A response is judged before it is kept, and a call that a hook brought when it comes. Arguments that came from
    // elsewhere, or after a crash, are judged here.
    if ((!this.batch.isFresh && !call.resolved) || ctx.revision > 0) {
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
    if (ask && !decision.block) decision.ask ??= ask;
    if (!decision.result) return decision;
    return { ...decision, result: { ...decision.result, value: asToolResult(decision.result.value) } };
  }

  /** Acts on a verdict: refuse, preset, or find what a human answered. */
  private async settle(call: Call, verdict: Verdict): Promise<void> {
    if (call.result || call.pending) return;
    const { block, ask, result } = verdict;
    if (block) return call.refuse(block.reason, block.by);
    if (ask && call.approved !== hashOf(call.ctx)) {
      const request = this.request(call, call.ctx, 'ask', ask.request, ask.by);
      const answer = await this.answer(call, request, ask.request, this.run.scope);
      if (!answer) {
        call.pending = [request];
        return;
      }
      if (answer.type === 'edit') return this.edit(call, answer.args);
      if (answer.type === 'approve') call.approved = request.hash;
      else if (answer.type === 'reject') call.refuse(rejection(answer), 'human');
      else call.result = textResult(answer.text);
    }
    if (result) call.result ??= result.value as ToolResult;
  }

  /** Arguments of a human are raw input, validated and judged like the model's own. Who writes them agrees to them. */
  private async edit(call: Call, args: unknown): Promise<void> {
    const { ctx } = call;
    if (++call.edits > MAX_EDITS)
      return call.refuse(`Not run: its arguments were edited more than ${MAX_EDITS} times.`, 'kernel');
    ctx._revise();
    const problem = await call.closed(() => validate(ctx, args));
    if (problem) return call.refuse(`The edited arguments are invalid.\n${problem}`, 'human');
    if (call.result) return;
    call.approved = hashOf(ctx);
    await this.settle(call, await this.verdict(call));
  }

  // ── Questions ──────────────────────────────────────────────────────────────────────────────────────────────

  /** The id names call and arguments, so an answer is found again after a resume and never serves other arguments. */
  private request(
    call: Call,
    ctx: ToolContext,
    kind: PendingRequest['kind'],
    given: Request,
    by?: string,
    part = '',
  ): PendingRequest {
    const { onRequest: _, timeoutMs, ...request } = given;
    const { runId, open, clock } = this.run;
    const hash = hashOf(ctx);
    const id = `${this.batch.message.id}.${call.index}.${kind}${part}.${hash.slice(0, 8)}`;
    const known = open.requests.get(id);
    if (known) return known;
    const about = {
      callId: call.toolCall.id,
      toolName: ctx.toolCall.name,
      arguments: JSON.stringify(ctx._input.raw ?? null),
    };
    return deepFreeze({
      ...request,
      // JSON has no infinity: what never lapses says nothing of it.
      ...(Number.isFinite(timeoutMs) && { timeoutMs }),
      id,
      runId,
      ...about,
      kind,
      hash,
      ...(by && { by }),
      createdAt: clock.now(),
    });
  }

  /** A stored answer, one given in place, or none. */
  private async answer(
    call: Call,
    request: PendingRequest,
    given: Request,
    scope: Scope,
  ): Promise<Decision | undefined> {
    const { run } = this;
    const stored = run.open.decided?.answers.get(request.id);
    if (stored)
      return stored.admitted || !isJudged(run.plan, stored.decision)
        ? stored.decision
        : this.admit(call, request, stored.decision);
    if (hasLapsed(request, run.clock.now())) return this.lapse(call, request);
    const handler = given.onRequest ?? run.onRequest;
    if (!handler) return undefined;
    this.questions ??= new LiveQuestions(run);
    const question = this.questions.ask(request, given, handler, () => this.write(request));
    question.waiting++;
    try {
      // By the journal the call may have begun anew since it was first asked.
      if (run.open.requests.has(request.id)) await this.write(request);
      const decision = await run.paused(() => untilAborted(question.answer, scope));
      if (decision === undefined) return undefined;
      question.taken ??= this.take(call, request, decision);
      return await question.taken;
    } catch (error) {
      // A tool may catch it and go on with its work, unless another attempt of it still waits.
      const going = question.waiting === 1 ? this.goingOn(call) : [];
      if (going.length > 0) await run.append(going);
      throw error;
    } finally {
      question.waiting--;
    }
  }

  private async take(call: Call, request: PendingRequest, decision: Decision): Promise<Decision> {
    try {
      if (decision === LAPSED) return await this.lapse(call, request);
      return await this.admit(call, request, decision);
    } catch (error) {
      this.questions?.forget(request);
      throw error;
    }
  }

  /** Its time is over. Somebody may have answered in time elsewhere, while a handler here was asked. */
  private async lapse(call: Call, request: PendingRequest): Promise<Decision> {
    const { run } = this;
    const items = await this.posted();
    const answer = firstAnswer(items, request, run.clock.now());
    if (answer) return this.admit(call, request, answer);
    const decision: Decision = { type: 'reject', reason: `Nobody answered within ${request.timeoutMs} ms.` };
    if (run.open.requests.has(request.id)) await this.record(call, request, decision);
    return decision;
  }

  /** That the store fails is nobody's answer. */
  private async posted(): Promise<readonly InboxItem[]> {
    const { run } = this;
    try {
      return await posted(run.store, run.state);
    } catch (error) {
      throw run.surrender(error);
    }
  }

  private async admit(call: Call, request: PendingRequest, given: Decision): Promise<Decision> {
    const { decision, written } = await admit(this.run, request, given);
    if (written) this.run.cells.stage(written);
    await this.record(call, request, decision);
    return decision;
  }

  private async record(call: Call, request: PendingRequest, decision: Decision): Promise<void> {
    const { runId } = this.run;
    const { id: requestId } = request;
    await this.run.append([
      { type: 'answer', runId, requestId, decision, admitted: true },
      ...this.goingOn(call),
    ]);
  }

  /**
   * By the journal a call that asks has not begun. One that asked in the middle of its work goes on with it, and is in
   * doubt again from here.
   */
  private goingOn(call: Call): readonly EntryDraft[] {
    if (call.phase !== 'running' || inDoubtPolicy(call.ctx.tool) !== 'fail') return [];
    return [startOf(this.run.runId, this.batch.message.id, call.toolCall.id)];
  }

  private async write(request: PendingRequest): Promise<void> {
    this.post(request);
    await this.flush();
  }

  private post(request: PendingRequest): void {
    const { requests, batch } = this.run.open;
    // A call that began anew to ask again is at work by the journal, until it is written that it asks.
    if (requests.has(request.id) && !batch?.started.includes(request.callId)) return;
    if (this.entries.some((entry) => entry.type === 'request' && entry.request.id === request.id)) return;
    this.entries.push({ type: 'request', runId: this.run.runId, request });
  }

  private async flush(): Promise<void> {
    if (this.entries.length === 0) return;
    const { entries } = this;
    this.entries = [];
    const wait = this.run.append(entries);
    if (isThenable(wait)) await wait;
  }

  // ── While a call runs ──────────────────────────────────────────────────────────────────────────────────────

  /** `ctx.suspend()`: the answer, or the signal that ends this attempt. */
  async suspend(call: Call, ctx: ToolContext, request: Request): Promise<Decision> {
    if (!isRequest(request)) {
      throw new AlliumError(
        'INVALID_HOOK_RESULT',
        `ctx.suspend() takes a request { title?, details?, timeoutMs?, onRequest? }, got ${shown(request)}.`,
      );
    }
    this.run.call.check();
    if (call.phase === 'ending') {
      throw new AlliumError(
        'INVALID_HOOK_RESULT',
        'ctx.suspend() came after the tool had run. Ask in beforeToolCall, or in the tool before it acts.',
      );
    }
    // What a layer assigned is written with the question, and told.
    const { judgements } = this.run;
    if (judgements.hides(ctx)) await judgements.assigned(ctx);
    // Counted per context: an attempt that starts anew finds the answers of the one before.
    this.asked ??= new WeakMap();
    const count = (this.asked.get(ctx) ?? 0) + 1;
    this.asked.set(ctx, count);
    const by = this.run.nameAt(ctx._position);
    // A layer and the tool inside it count in contexts of their own, so the id says who asks.
    const asker = call.phase === 'judging' ? 'hook' : by === undefined ? 'tool' : `${by}-`;
    const pending = this.request(call, ctx, 'suspend', request, by, `-${asker}${count}`);
    const answer = await this.answer(call, pending, request, ctx._scope);
    if (answer) return answer;
    throw this.suspension(ctx, pending);
  }

  /** Arguments a layer changed are validated and judged like new ones; an approval for others does not count. */
  async rejudge(call: Call, ctx: ToolContext): Promise<ToolResult | undefined> {
    const { block, ask, result } = await this.judge(call, ctx);
    if (block) return errorResult(block.reason);
    if (ask && call.approved !== hashOf(ctx)) {
      const pending = this.request(call, ctx, 'ask', ask.request, ask.by);
      const answer = await this.answer(call, pending, ask.request, ctx._scope);
      if (!answer) throw this.suspension(ctx, pending);
      if (answer.type === 'respond') return textResult(answer.text);
      if (answer.type === 'reject') return errorResult(rejection(answer));
      if (answer.type === 'edit')
        return errorResult('Not run: arguments that a middleware rewrites cannot be edited.');
    }
    return result?.value as ToolResult | undefined;
  }

  private suspension(ctx: ToolContext, pending: PendingRequest): Suspension {
    const signal = new Suspension(pending);
    ctx._latch(signal);
    return signal;
  }
}

/** Of the tool and the arguments as they are now. */
function hashOf({ tool, toolCall, _input }: ToolContext): string {
  return callHash(tool?.name ?? toolCall.name, _input.raw);
}

function rejection({ reason }: Decision & { type: 'reject' }): string {
  return reason ?? 'The call was rejected.';
}

/** What guards said of the calls of a message, as it is written with the message. */
export function verdictEntries(
  ctx: Context,
  { content }: AssistantMessage,
  verdicts: CallVerdicts,
): readonly EntryDraft[] {
  return [...verdicts].map(([index, said]) => {
    const { id: callId } = content[index] as ToolCall;
    const { deny: block, ask } = tellable(said, ctx);
    return {
      type: 'verdict',
      runId: ctx.runId,
      callId,
      hash: BY_GUARDS,
      verdict: { ...(block && { block }), ...(ask && { ask }) },
    };
  });
}

/**
 * What guards said of a call as it may be written: a refusal as far as guards of results that can answer at once allow
 * it, as the result that it becomes is judged later.
 */
export function tellable({ deny, ask }: CallVerdict, ctx: Context): CallVerdict {
  if (!deny) return storable({ ask });
  const { reason, by } = deny;
  const shown = judgeUpdate([{ type: 'text', text: reason }], undefined, ctx, true);
  return { deny: { reason: shown ? textOf({ content: shown.update }) : `Refused by guard "${by}".`, by } };
}

/** Without the functions of a request, which no journal can hold. */
function storable<V extends Pick<Verdict, 'ask'>>({
  ask,
  ...rest
}: V): Omit<V, 'ask'> & Pick<Verdict, 'ask'> {
  if (!ask) return rest;
  const { onRequest: _, ...request } = ask.request;
  return { ...rest, ask: { ...ask, request } };
}
