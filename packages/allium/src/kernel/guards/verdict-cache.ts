/**
 * Remembers the verdicts of a model or tool call, so that nothing is judged twice, and gives sinks the guarded view. Kept
 * per call, because the same object may pass as the answer to one call but not to another.
 */

import type { Context, LayerContext, ModelContext, SeamCall, ToolContext } from '../context/context.js';
import type { CallVerdict, CallVerdicts, RunPort, Stage } from '../context/run-port.js';
import { deepFreeze, type ModelResponse } from '../messages/messages.js';
import type { ToolResult } from '../messages/tool-result.js';
import type { Awaitable } from '../protocol/store.js';
import { transformed } from '../stream/transforms.js';
import { judgeArguments, NO_VERDICTS } from './call-verdicts.js';
import { judgeToolResult } from './content-guards.js';
import { withoutQuotes } from './guard-model-calls.js';
import { judgedOnce } from './judged-once.js';
import { RequestGate } from './request-gate.js';
import { asJudged, guardResponse, type JudgedContent } from './response-gate.js';

export class Judgements {
  /** Transformed responses, by their original content. */
  stages: WeakMap<ModelResponse['content'], Stage> | undefined;
  private gate: RequestGate | undefined;
  /** The call in which a result passed the guards. Made on first use. */
  private passed: WeakMap<ToolResult, SeamCall> | undefined;

  constructor(private readonly run: RunPort) {}

  /** Judges requests, and remembers which messages have been judged. */
  get requestGate(): RequestGate {
    this.gate ??= new RequestGate();
    return this.gate;
  }

  /** A result as a layer gets it from further in: after its transforms, and for a sink after the guards. */
  view(ctx: Context, result: unknown, sink: boolean): Awaitable<unknown> {
    if (ctx.seam === 'model') {
      const model = ctx as ModelContext;
      let response = result as ModelResponse;
      if (model._transforms) {
        const stage = this.stages?.get(response.content);
        response =
          stage?.ctx === model
            ? { ...response, content: stage.response.content }
            : deepFreeze(transformed(response, model));
      }
      if (!sink) return response;
      const { pendingInput } = this.run;
      // A sink must not write an answer to an input that may still be refused.
      if (pendingInput && model._call.live)
        return pendingInput.allowed().then(() => this.guarded(response, model));
      return this.guarded(response, model);
    }
    if (ctx.seam === 'tool' && sink && this.run.plan.guards['tool-result'].length > 0)
      return this.toolResult(ctx as ToolContext, result as ToolResult);
    return result;
  }

  private guarded(response: ModelResponse, ctx: ModelContext): Awaitable<ModelResponse> {
    if (!ctx._call.guarded) return withoutQuotes(response, ctx.messages, ctx.systemPrompt);
    return this.run.plan.guardsResponses ? this.seen(response, ctx) : response;
  }

  private async seen(response: ModelResponse, ctx: ModelContext): Promise<ModelResponse> {
    const live = ctx._call.live?.streaming(response);
    return deepFreeze(live ? await live.end(response, ctx) : (await this.response(response, ctx)).response);
  }

  /** The response as the guards leave it; judged once, however often it is looked at. */
  async response(
    response: ModelResponse,
    ctx: Context,
  ): Promise<{ response: ModelResponse; calls: CallVerdicts }> {
    if (!this.run.plan.guardsResponses) return { response, calls: NO_VERDICTS };
    const judged: JudgedContent = await judgedOnce(judgedIn(ctx._call), response.content, ctx, () =>
      guardResponse(response, ctx),
    );
    this.remember(judged, ctx._call);
    return { response: asJudged(response, judged, ctx), calls: judged.calls };
  }

  /** Remembers a judged response, so that it isn't judged again. */
  remember(judged: JudgedContent, call: SeamCall): void {
    judgedIn(call).set(judged.content, Promise.resolve(judged));
  }

  toolResult(ctx: ToolContext, result: ToolResult): Promise<ToolResult> {
    const { _call: call } = ctx;
    const known = judgedIn(call);
    return judgedOnce(known, result, ctx, () =>
      judgeToolResult(result, ctx).then((made) => {
        known.set(made, Promise.resolve(made));
        this.passed ??= new WeakMap();
        this.passed.set(made, call);
        return deepFreeze(made);
      }),
    );
  }

  /** Judges a result that a hook changed, before a sink gets it. Undefined if it has passed already. */
  judgePatched(ctx: ToolContext): Promise<void> | undefined {
    const { result, _call: call } = ctx;
    if (this.run.plan.guards['tool-result'].length === 0 || this.hasPassed(result!, call)) return undefined;
    return this.toolResult(ctx, result!).then((judged) => {
      ctx.result = judged;
    });
  }

  /** Has a layer assigned arguments that no guard has judged yet? A sink must not see those. */
  hasUnjudgedArguments(ctx: LayerContext): ctx is ToolContext {
    return ctx.seam === 'tool' && ctx._input.assigned && this.run.plan.guards['tool-args'].length > 0;
  }

  /** Cleans assigned arguments before a sink sees them. Whether the call may run is decided where the tool is called. */
  async judgeAssigned(ctx: ToolContext): Promise<void> {
    const given = JSON.stringify(ctx._input.raw) ?? 'null';
    const toolCall = { ...ctx.toolCall, arguments: given };
    const { arguments: kept, deny, ask } = await judgeArguments(toolCall, ctx);
    if (kept === given) return;
    const before = await this.saidOf(ctx, ctx._input.raw);
    ctx.args = JSON.parse(kept);
    const said: CallVerdict = { deny: deny ?? before?.deny, ask: ask ?? before?.ask };
    judgedIn(ctx._call).set(ctx._input.raw, Promise.resolve(said));
  }

  /** What guards said about arguments before cleaning them. Asked again, they would find nothing. */
  async saidOf(ctx: ToolContext, raw: unknown): Promise<CallVerdict | undefined> {
    return ctx._call.judged?.get(raw);
  }

  /** Has this result passed the guards in this call? */
  hasPassed(result: ToolResult, call: SeamCall): boolean {
    return this.passed?.get(result) === call;
  }
}

function judgedIn(call: SeamCall): Map<unknown, Promise<any>> {
  call.judged ??= new Map();
  return call.judged;
}
