/** The tool phase of a turn: every call gets exactly one result, in call order, whatever happens. */
import { SeamCall, ToolContext, type ToolCallHooks } from './context.js';
import { AlliumError, attribute, attribution, controlKind, isControl, isThenable, messageOf, StopRun, Suspension } from './errors.js';
import { type CallVerdicts, judgeArguments, judgeToolResult, judgeUpdate } from './guards.js';
import { callHash, hash } from './hash.js';
import { enter } from './layers.js';
import { type AssistantMessage, deepFreeze, type ToolCall, type ToolContent, type ToolMessage } from './messages.js';
import { afterToolCall, beforeToolCall, type CallDecision, resolveToolCall } from './rules.js';
import type { Run } from './run.js';
import { Scope, untilAborted } from './scope.js';
import type { OpenBatch } from './session-state.js';
import { describeIssues } from './standard-schema.js';
import type { Decision, EntryBody, PendingRequest, Request } from './store.js';
import { errorResult, isContentList, type Tool, type ToolResult, toToolResult } from './tool.js';

/** One call on its way through the phase. */
interface Call {
  readonly index: number;
  /** As the model made it: what events and the history name. */
  readonly toolCall: ToolCall;
  readonly seam: SeamCall;
  ctx: ToolContext;
  /** Decided before anything ran: an unknown tool, bad arguments, a refusal, a preset. */
  result?: ToolResult;
  blocked?: boolean;
  /** Arguments that were asked about and agreed to. */
  approved?: string;
  suspends: number;
  pending?: PendingRequest;
  done?: ToolMessage;
}

export interface BatchOutcome {
  readonly results: readonly ToolMessage[];
  readonly terminate: boolean;
  /** Questions nobody has answered yet: the run suspends. */
  readonly pending: readonly PendingRequest[];
}

export interface BatchOptions {
  /** The tools the model was shown. */
  readonly tools: readonly Tool[];
  readonly verdicts?: CallVerdicts;
  /** Nothing runs; each call is answered with this. */
  readonly notRun?: string;
}

/** Runs the calls of a message, or what is left of them after a resume. */
export async function runTools(run: Run, batch: OpenBatch, options: BatchOptions): Promise<BatchOutcome> {
  const phase = new ToolBatch(run, batch, options);
  return phase.run();
}

class ToolBatch implements ToolCallHooks {
  private readonly calls: Call[];
  private readonly firstResult: number;
  private readonly message: AssistantMessage;
  private stopped: StopRun | undefined;

  constructor(
    private readonly runner: Run,
    private readonly batch: OpenBatch,
    private readonly options: BatchOptions,
  ) {
    this.message = batch.message;
    this.firstResult = runner.open.count + 1;
    this.calls = [];
    for (let index = 0; index < batch.calls.length; index++) {
      const toolCall = batch.calls[index]!;
      const seam = new SeamCall();
      this.calls.push({ index, toolCall, seam, ctx: undefined as never, suspends: 0, done: batch.results.get(toolCall.id) });
    }
  }

  async run(): Promise<BatchOutcome> {
    const open = this.calls.filter((call) => !call.done);
    try {
      for (const call of open) await this.prepare(call);
      const pending = await this.askAll(open);
      if (pending.length > 0) return this.outcome(pending);
    } catch (error) {
      await this.refuseAll(open, error);
      throw error;
    }
    await this.executeAll(open);
    const failure = open.find((call) => call.seam.latched !== undefined && controlKind(call.seam.latched) !== 'suspend');
    const pending = open.flatMap((call) => call.pending ?? []);
    if (failure) {
      await this.refuseAll(open, failure.seam.latched);
      this.runner.call.latch(failure.seam.latched, failure.seam.latchedBy);
      throw failure.seam.latched;
    }
    if (this.runner.scope.aborted) {
      await this.refuseAll(open, this.runner.scope.reason);
      throw this.runner.scope.reason;
    }
    if (pending.length > 0) await this.runner.append(pending.map((request) => ({ type: 'request', runId: this.runner.runId, request })));
    return this.outcome(pending);
  }

  private outcome(pending: readonly PendingRequest[]): BatchOutcome {
    const results = this.calls.flatMap((call) => call.done ?? []);
    const all = results.length === this.calls.length;
    return { results, pending, terminate: all && this.calls.every((call) => this.batch.terminate.has(call.toolCall.id)) };
  }

  // ── Before anything runs ───────────────────────────────────────────────────────────────────────────────────

  /** Resolves, parses and validates; what fails becomes a result the model can act on. */
  private async prepare(call: Call): Promise<void> {
    const { runner } = this;
    call.ctx = this.context(call, call.toolCall, undefined);
    if (this.options.notRun !== undefined) return this.refuse(call, `Not run: ${this.options.notRun}`);
    const limit = runner.toolCallsLeft();
    if (call.index >= limit) {
      this.stopped ??= new StopRun('max_tool_calls', 'The limit of tool calls is used up.');
      call.seam.latch(this.stopped, 'kernel');
      return this.refuse(call, 'Not run: the limit of tool calls is used up.');
    }
    await this.closed(call, async () => {
      const { rules } = runner.plan;
      const resolved = rules.resolveToolCall.length > 0 ? await resolveToolCall(rules.resolveToolCall, call.toolCall, call.ctx) : undefined;
      const effective = resolved?.toolCall ?? call.toolCall;
      const tool = resolved?.tool ?? runner.findTool(effective.name, this.options.tools);
      if (!tool) {
        const known = this.options.tools.map(({ name }) => name);
        return this.refuse(call, `There is no tool "${effective.name}". ${known.length > 0 ? `Available: ${known.slice(0, 50).join(', ')}.` : 'No tools are available.'}`);
      }
      if (resolved || tool !== call.ctx.tool) call.ctx = this.context(call, effective, tool, call.ctx);
      const raw = parseArguments(effective.arguments);
      if ('problem' in raw) return this.refuse(call, `The arguments of "${tool.name}" are not valid JSON: ${raw.problem}. Send one JSON object.`);
      const checking = validate(call.ctx, raw.value);
      const problem = isThenable(checking) ? await checking : checking;
      if (problem) this.refuse(call, problem);
    });
  }

  private context(call: Call, toolCall: ToolCall, tool: Tool | undefined, previous?: ToolContext): ToolContext {
    const key = previous?.idempotencyKey ?? hash(`${this.runner.sessionId}\n${this.message.id}\n${call.index}\n${call.toolCall.arguments}`);
    const ctx = new ToolContext(this.runner, this.runner.scope, { assistantMessage: this.message, toolCall, tool, idempotencyKey: key }, undefined, undefined, call.seam, this);
    if (previous) ctx._state = previous._state;
    return ctx;
  }

  /** The whole batch is judged in call order before anything executes; open questions come back. */
  private async askAll(calls: readonly Call[]): Promise<readonly PendingRequest[]> {
    const { runner } = this;
    const hooks = runner.plan.rules.beforeToolCall;
    const journal: EntryBody[] = [];
    for (const call of calls) {
      if (call.result) continue;
      const guard = this.options.verdicts?.get(this.message.content.indexOf(call.toolCall as never));
      if (hooks.length === 0 && !guard) continue;
      const stored = runner.open.verdicts.get(call.toolCall.id);
      const key = callHash(call.ctx.tool!.name, call.ctx._raw);
      let decision: CallDecision & { args?: unknown };
      if (stored?.hash === key) decision = stored.verdict as typeof decision;
      else {
        decision = guard?.deny ? { block: guard.deny } : await this.decide(call);
        if (guard?.ask && !decision.block) decision.ask ??= guard.ask;
        if (call.ctx.revision > 0) decision.args = call.ctx._raw;
        journal.push({ type: 'verdict', runId: runner.runId, callId: call.toolCall.id, hash: key, verdict: storable(decision) });
      }
      if (stored && 'args' in decision) await validate(call.ctx, decision.args);
      await this.settle(call, decision);
    }
    const pending = calls.flatMap((call) => call.pending ?? []);
    for (const request of pending) if (!runner.open.requests.has(request.id)) journal.push({ type: 'request', runId: runner.runId, request });
    if (journal.length > 0) await runner.append(journal);
    return pending;
  }

  private async decide(call: Call): Promise<CallDecision> {
    const { ctx } = call;
    const seams = await this.closed(call, () =>
      beforeToolCall(this.runner.plan.rules.beforeToolCall, ctx, async (raw) => {
        ctx.revision++;
        return validate(ctx, raw);
      }),
    );
    return seams ?? {};
  }

  /** Acts on a decision: refuse, preset, or find the answer of a human. */
  private async settle(call: Call, decision: CallDecision): Promise<void> {
    if (call.result) return;
    if (decision.block) return this.refuse(call, decision.block.reason, decision.block.by);
    if (decision.ask) {
      const request = this.request(call, 'ask', decision.ask.request, decision.ask.by);
      const answer = await this.answer(request, decision.ask.request);
      if (!answer) call.pending = request;
      else await this.obey(call, request, answer);
      if (!answer || call.result) return;
    }
    if (decision.result) call.result = asToolResult(decision.result.value);
  }

  private request(call: Call, kind: PendingRequest['kind'], { onRequest: _, ...request }: Request, by?: string): PendingRequest {
    const { toolCall, tool, _raw } = call.ctx;
    const bound = callHash(tool?.name ?? toolCall.name, _raw);
    const suffix = kind === 'ask' ? bound.slice(0, 6) : `s${call.suspends}`;
    const id = `${this.message.id}.${call.index}.${suffix}`;
    return this.runner.open.requests.get(id) ?? deepFreeze({ ...request, id, runId: this.runner.runId, callId: call.toolCall.id, toolName: toolCall.name, arguments: JSON.stringify(_raw ?? null), kind, hash: bound, ...(by && { by }), createdAt: this.runner.clock.now() });
  }

  /** A stored answer, one given in place, or none. */
  private async answer(request: PendingRequest, original: Request): Promise<Decision | undefined> {
    const { runner } = this;
    const stored = runner.open.answers.get(request.id);
    if (stored) return stored;
    if (request.timeoutMs !== undefined && runner.clock.now() > request.createdAt + request.timeoutMs) {
      return { type: 'reject', reason: `Nobody answered within ${request.timeoutMs} ms.` };
    }
    const handler = original.onRequest ?? runner.onRequest;
    if (!handler) return undefined;
    const decision = await runner.paused(async () => handler(request));
    if (decision === undefined) return undefined;
    runner.checkDecision(request, decision);
    await runner.append([
      { type: 'request', runId: runner.runId, request },
      { type: 'answer', runId: runner.runId, requestId: request.id, decision },
    ]);
    return decision;
  }

  private async obey(call: Call, request: PendingRequest, decision: Decision): Promise<void> {
    const { ctx } = call;
    if (decision.type === 'reject') return this.refuse(call, decision.reason ?? 'The call was rejected.', 'human');
    if (decision.type === 'respond') {
      call.result = { content: [{ type: 'text', text: decision.text }], isError: false };
      return;
    }
    if (decision.type === 'approve') {
      call.approved = request.hash;
      return;
    }
    ctx.revision++;
    const problem = await validate(ctx, decision.args);
    if (problem) return this.refuse(call, `The edited arguments are invalid.\n${problem}`, 'human');
    call.approved = callHash(ctx.tool!.name, ctx._raw);
    const again = await this.judgeAgain(ctx);
    if (again.block) this.refuse(call, again.block.reason, again.block.by);
  }

  /** Arguments that nobody judged yet are judged by every guard and hook. */
  private async judgeAgain(ctx: ToolContext): Promise<CallDecision> {
    const { guards, rules } = this.runner.plan;
    if (guards['tool-args'].length > 0) {
      const judged = await judgeArguments(guards, { ...ctx.toolCall, arguments: JSON.stringify(ctx._raw) }, ctx);
      if (judged.deny) return { block: judged.deny };
      const problem = await validate(ctx, JSON.parse(judged.arguments));
      if (problem) return { block: { reason: problem, by: 'guard' } };
      if (judged.ask) return { ask: judged.ask };
    }
    return beforeToolCall(rules.beforeToolCall, ctx, (raw) => Promise.resolve(validate(ctx, raw)));
  }

  private refuse(call: Call, reason: string, by?: string): void {
    call.result = errorResult(reason);
    call.blocked = true;
    if (by) this.runner.note(by, `blocked ${call.toolCall.name}`);
  }

  /** Hooks of a call that throw make its result an error; only control signals go further. */
  private async closed<T>(call: Call, work: () => Promise<T>): Promise<T | undefined> {
    try {
      return await work();
    } catch (error) {
      if (isControl(error)) {
        call.seam.latch(error);
        throw error;
      }
      this.refuse(call, failureText(call, error));
      return undefined;
    }
  }

  // ── Execution ──────────────────────────────────────────────────────────────────────────────────────────────

  private async executeAll(calls: readonly Call[]): Promise<void> {
    const sequential = this.runner.agent.toolExecution === 'sequential' || calls.some((call) => call.ctx.tool?.sequential);
    if (sequential || calls.length === 1) {
      for (const call of calls) {
        await this.started([call]);
        await this.execute(call);
      }
      return;
    }
    const limited = calls.some((call) => call.ctx.tool?.concurrency !== undefined);
    if (!limited) {
      await this.started(calls);
      await Promise.all(calls.map((call) => this.execute(call)));
      return;
    }
    const lanes = new Map<Tool | undefined, Lane>();
    await Promise.all(
      calls.map((call) => {
        const { tool } = call.ctx;
        if (!lanes.has(tool)) lanes.set(tool, new Lane(tool?.concurrency ?? Number.POSITIVE_INFINITY));
        return lanes.get(tool)!.run(async () => {
          await this.started([call]);
          await this.execute(call);
        });
      }),
    );
  }

  /** Journals that calls begin whose effects may not happen twice: after a crash they are in doubt. */
  private started(calls: readonly Call[]): void | Promise<void> {
    let entries: EntryBody[] | undefined;
    for (const call of calls) {
      if (call.result || this.ended() || call.ctx.tool?.onInDoubt !== 'fail' || this.batch.started.has(call.toolCall.id)) continue;
      entries ??= [];
      entries.push({ type: 'tool_started', runId: this.runner.runId, messageId: this.message.id, callId: call.toolCall.id, key: call.ctx.idempotencyKey });
    }
    return entries && this.runner.append(entries);
  }

  /** A stop or abort happened: what has not begun does not begin. */
  private ended(): boolean {
    return this.runner.scope.aborted || this.stopped !== undefined;
  }

  private async execute(call: Call): Promise<void> {
    const { runner } = this;
    if (this.ended() && !call.result) return;
    if (runner.watched) runner.emit({ type: 'tool_execution_start', runId: runner.runId, sessionId: runner.sessionId, messageId: this.message.id, toolCall: call.toolCall });
    let result = call.result ?? this.inDoubt(call);
    if (!result) {
      try {
        const { ctx } = call;
        const layers = runner.plan.layers.tool;
        const work = layers.length === 0 ? executeTool(ctx, this) : enter(layers, 0, ctx, (inner: ToolContext) => executeTool(inner, this));
        result = asToolResult(isThenable(work) ? await runner.supervise(work) : work);
        call.seam.check();
      } catch (error) {
        if (this.interrupted(call, error)) return;
        result = errorResult(call.seam.latched === undefined ? failureText(call, error) : `Stopped: ${messageOf(call.seam.latched)}`);
      }
    }
    await this.finish(call, result);
  }

  private inDoubt(call: Call): ToolResult | undefined {
    if (!this.runner.resumed || !this.batch.started.has(call.toolCall.id) || call.ctx.tool?.onInDoubt !== 'fail') return undefined;
    if (this.runner.open.answers.size > 0 && [...this.runner.open.answers.keys()].some((id) => id.startsWith(`${this.message.id}.${call.index}.s`))) return undefined;
    return errorResult(`In doubt: "${call.toolCall.name}" had started when the run broke off, and nobody knows whether it took effect. It was not run again.`);
  }

  /** A control signal came out of a call. True when the call has no result yet and waits. */
  private interrupted(call: Call, error: unknown): boolean {
    const kind = controlKind(error);
    if (kind === 'suspend') {
      call.pending = (error as Suspension).request as PendingRequest;
      return true;
    }
    if (kind === 'stop') {
      call.seam.latch(error);
      this.stopped ??= error as StopRun;
    }
    return kind === 'abort' && this.runner.scope.aborted;
  }

  /** Guards and `afterToolCall` have their say, then the result is journaled and told. */
  private async finish(call: Call, given: ToolResult): Promise<void> {
    const { runner } = this;
    const { guards, rules } = runner.plan;
    const { ctx } = call;
    ctx.blocked = call.blocked ?? false;
    ctx.result = given;
    if (guards['tool-result'].length > 0 || rules.afterToolCall.length > 0) {
      try {
        if (guards['tool-result'].length > 0) ctx.result = await runner.guardToolResult(ctx, given);
        if (rules.afterToolCall.length > 0) await afterToolCall(rules.afterToolCall, ctx);
      } catch (error) {
        if (isControl(error)) {
          call.seam.latch(error);
          if (controlKind(error) === 'stop') this.stopped ??= error as StopRun;
        } else ctx.result = errorResult(failureText(call, error));
        if (guards['tool-result'].length > 0 && ctx.result === given) ctx.result = errorResult('The result was withheld.');
      }
    }
    await this.record(call, ctx.result);
  }

  private record(call: Call, result: ToolResult): void | Promise<void> {
    const { runner } = this;
    const { content, isError, details, terminate } = result;
    const { toolCall } = call;
    const id = `${runner.runId}.${this.firstResult + call.index}`;
    const message: ToolMessage = deepFreeze({ id, role: 'tool', toolCallId: toolCall.id, toolName: toolCall.name, content, isError, ...(details !== undefined && { details }) });
    if (call.ctx._state) runner.cells.stage(call.ctx._state);
    const wait = runner.append([{ type: 'tool_finished', runId: runner.runId, message, ...(terminate && { terminate }) }]);
    call.done = message;
    const told = (): void => {
      if (runner.watched) runner.emit({ type: 'tool_execution_end', runId: runner.runId, sessionId: runner.sessionId, toolCall, message });
    };
    if (isThenable(wait)) return wait.then(told);
    told();
  }

  /** Answers every call that has no result, with the reason why it will get no other. */
  private async refuseAll(calls: readonly Call[], why: unknown): Promise<void> {
    const { runner } = this;
    const reason = controlKind(why) === 'abort' ? 'Aborted' : isControl(why) ? 'Not run: the run was stopped' : 'Not run: the run failed';
    for (const call of calls) {
      if (call.done) continue;
      call.ctx ??= this.context(call, call.toolCall, undefined);
      if (runner.watched) runner.emit({ type: 'tool_execution_start', runId: runner.runId, sessionId: runner.sessionId, messageId: this.message.id, toolCall: call.toolCall });
      await this.record(call, call.result ?? errorResult(`${reason}: ${messageOf(why)}`));
    }
  }

  // ── What contexts ask for ──────────────────────────────────────────────────────────────────────────────────

  update(ctx: ToolContext, partial: string | readonly ToolContent[], details: unknown): void {
    const { runner } = this;
    const call = this.calls.find((one) => one.toolCall.id === ctx.toolCall.id);
    if (!runner.watched || !call || call.done) return;
    const content = typeof partial === 'string' ? [{ type: 'text' as const, text: partial }] : partial;
    if (!isContentList(content)) throw new AlliumError('INVALID_HOOK_RESULT', 'ctx.update() takes text or a list of text, image and file content.');
    const shown = judgeUpdate(runner.plan.guards, content, ctx);
    if (shown) runner.emit({ type: 'tool_execution_update', runId: runner.runId, sessionId: runner.sessionId, toolCallId: call.toolCall.id, toolName: call.toolCall.name, update: shown, ...(details !== undefined && { details }) });
  }

  async suspend(ctx: ToolContext, request: Request): Promise<Decision> {
    const call = this.calls.find((one) => one.toolCall.id === ctx.toolCall.id)!;
    call.suspends++;
    const pending = this.request(call, 'suspend', request, this.runner.nameAt(ctx._position));
    const answer = await this.answer(pending, request);
    if (answer) return answer;
    const signal = new Suspension(pending);
    ctx._call.latch(signal);
    throw signal;
  }

  /** Arguments a layer changed are validated and judged like new ones; an approval for others does not count. */
  async rejudge(ctx: ToolContext): Promise<ToolResult | undefined> {
    const problem = await validate(ctx, ctx._raw);
    if (problem) return errorResult(problem);
    const decision = await this.judgeAgain(ctx);
    if (decision.block) return errorResult(decision.block.reason);
    if (decision.result) return asToolResult(decision.result.value);
    const call = this.calls.find((one) => one.toolCall.id === ctx.toolCall.id)!;
    if (!decision.ask || call.approved === callHash(ctx.tool!.name, ctx._raw)) return undefined;
    call.ctx._raw = ctx._raw;
    const pending = this.request(call, 'ask', decision.ask.request, decision.ask.by);
    const answer = await this.answer(pending, decision.ask.request);
    if (!answer) throw new Suspension(pending);
    if (answer.type === 'approve') return undefined;
    if (answer.type === 'respond') return { content: [{ type: 'text', text: answer.text }], isError: false };
    return errorResult(answer.type === 'reject' ? (answer.reason ?? 'The call was rejected.') : 'Not run: arguments that a middleware rewrites cannot be edited.');
  }
}

/** The innermost point of the tool seam. */
function executeTool(ctx: ToolContext, batch: ToolBatch): Promise<ToolResult> | ToolResult {
  if (ctx._assigned) {
    return batch.rejudge(ctx).then((refused) => {
      ctx._assigned = false;
      return refused ?? executeTool(ctx, batch);
    });
  }
  const attempts = ++ctx._call.attempts;
  const tool = ctx.tool!;
  const timeoutMs = ctx.timeoutMs ?? tool.timeoutMs;
  if (timeoutMs !== undefined) return withTimeout(ctx, tool, timeoutMs);
  try {
    const value = tool.execute(ctx._args, ctx);
    if (isThenable(value)) return settled(untilAborted(value, ctx._scope), attempts);
    return deepFreeze(toToolResult(value));
  } catch (error) {
    if (!isControl(error)) attribute(error, { hook: 'tool', attempts });
    throw error;
  }
}

async function settled(work: Promise<unknown>, attempts: number): Promise<ToolResult> {
  try {
    return deepFreeze(toToolResult(await work));
  } catch (error) {
    if (!isControl(error)) attribute(error, { hook: 'tool', attempts });
    throw error;
  }
}

async function withTimeout(ctx: ToolContext, tool: Tool, timeoutMs: number): Promise<ToolResult> {
  const scope = new Scope(ctx._scope);
  const cancel = ctx._run.clock.setTimer(() => scope.abort(new AlliumError('TOOL_TIMEOUT', `"${tool.name}" did not finish within ${timeoutMs} ms.`)), timeoutMs);
  const outer = ctx._scope;
  ctx._scope = scope;
  try {
    const value = (async () => tool.execute(ctx._args, ctx))();
    return await settled(untilAborted(value, scope), ctx._call.attempts);
  } finally {
    cancel();
    ctx._scope = outer;
    scope.close();
  }
}

function parseArguments(text: string): { value: unknown } | { problem: string } {
  try {
    return { value: JSON.parse(text === '' ? '{}' : text) };
  } catch (error) {
    return { problem: messageOf(error) };
  }
}

/** Validates raw arguments into the context; says what is wrong with them otherwise. Parsed values are never parsed again. */
function validate(ctx: ToolContext, raw: unknown): string | undefined | Promise<string | undefined> {
  const tool = ctx.tool!;
  const checked = tool.input['~standard'].validate(raw);
  const take = (result: Awaited<typeof checked>): string | undefined => {
    if (result.issues) return `Invalid arguments for "${tool.name}":\n${describeIssues(result.issues)}`;
    ctx._raw = deepFreeze(raw);
    ctx._args = deepFreeze(result.value);
    ctx._assigned = false;
    return undefined;
  };
  return isThenable(checked) ? checked.then(take) : take(checked);
}

/** Results come as results, or as anything a tool could return. */
function asToolResult(value: unknown): ToolResult {
  if (typeof value === 'object' && value !== null && 'isError' in value && Array.isArray((value as ToolResult).content)) return value as ToolResult;
  return toToolResult(value);
}

function failureText(call: Call, error: unknown): string {
  const by = attribution(error)?.middleware;
  return by ? `"${call.toolCall.name}" was not completed: middleware "${by}" failed: ${messageOf(error)}` : `"${call.toolCall.name}" failed: ${messageOf(error)}`;
}

function storable(decision: CallDecision & { args?: unknown }): unknown {
  const { ask, ...rest } = decision;
  if (!ask) return rest;
  const { onRequest: _, ...request } = ask.request;
  return { ...rest, ask: { ...ask, request } };
}

/** At most `max` at once, first come first served. */
class Lane {
  private active = 0;
  private readonly waiting: (() => void)[] = [];

  constructor(private readonly max: number) {}

  async run(work: () => Promise<void>): Promise<void> {
    if (this.active >= this.max) await new Promise<void>((resolve) => this.waiting.push(resolve));
    this.active++;
    try {
      await work();
    } finally {
      this.active--;
      this.waiting.shift()?.();
    }
  }
}
