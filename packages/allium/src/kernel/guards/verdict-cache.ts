/**
 * Remembers the verdicts of a model or tool call, so that nothing is judged twice, and gives sinks the guarded view. Kept
 * per call, because the same object may pass as the answer to one call and not to another.
 */

import type { Context, LayerContext, ModelContext, SeamCall, ToolContext } from '../context/context.js';
import type { CallVerdict, CallVerdicts, RunPort, Stage } from '../context/run-port.js';
import { deepFreeze, type ModelResponse } from '../messages/messages.js';
import type { ToolResult } from '../messages/tool-result.js';
import type { Awaitable } from '../protocol/store.js';
import { transformed } from '../stream/transforms.js';
import { judgeArguments, NO_VERDICTS } from './call-verdicts.js';
import { judgeToolResult } from './content-guards.js';
import { judgedOnce } from './judged-once.js';
import { RequestGate } from './request-gate.js';
import { asJudged, guardResponse, type JudgedContent } from './response-gate.js';

export class Judgements {
  /** What transforms made of responses, by the content they were made from. */
  stages: WeakMap<ModelResponse['content'], Stage> | undefined;
  private gate: RequestGate | undefined;
  /** In which call a result has passed the guards. Made on first use. */
  private passed: WeakMap<ToolResult, SeamCall> | undefined;

  constructor(private readonly run: RunPort) {}

  /** Remembers what of the history the guards of requests have judged. */
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
    return ctx._call.guarded && this.run.plan.guardsResponses ? this.seen(response, ctx) : response;
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

  /** What guards left of a response need not be judged again. */
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

  /** Judges what a hook made of a result, before a sink is given it; undefined where it has passed. */
  patched(ctx: ToolContext): Promise<void> | undefined {
    const { result, _call: call } = ctx;
    if (this.run.plan.guards['tool-result'].length === 0 || this.hasPassed(result!, call)) return undefined;
    return this.toolResult(ctx, result!).then((judged) => {
      ctx.result = judged;
    });
  }

  /** Has a layer assigned arguments that nobody has judged yet? Those are kept from a sink. */
  hides(ctx: LayerContext): ctx is ToolContext {
    return ctx.seam === 'tool' && ctx._input.assigned && this.run.plan.guards['tool-args'].length > 0;
  }

  /** Cleans what a layer assigned before a sink sees it. Whether the call may happen is asked where the tool is called. */
  async assigned(ctx: ToolContext): Promise<void> {
    const given = JSON.stringify(ctx._input.raw) ?? 'null';
    const toolCall = { ...ctx.toolCall, arguments: given };
    const { arguments: kept, deny, ask } = await judgeArguments(toolCall, ctx);
    if (kept === given) return;
    const before = await this.saidOf(ctx, ctx._input.raw);
    ctx.args = JSON.parse(kept);
    const said: CallVerdict = { deny: deny ?? before?.deny, ask: ask ?? before?.ask };
    judgedIn(ctx._call).set(ctx._input.raw, Promise.resolve(said));
  }

  /** What guards said of arguments before they were cleaned: they could not say it again. */
  async saidOf(ctx: ToolContext, raw: unknown): Promise<CallVerdict | undefined> {
    return ctx._call.judged?.get(raw);
  }

  /** Is this what the guards left of a result of this call? */
  hasPassed(result: ToolResult, call: SeamCall): boolean {
    return this.passed?.get(result) === call;
  }
}

function judgedIn(call: SeamCall): Map<unknown, Promise<any>> {
  call.judged ??= new Map();
  return call.judged;
}
