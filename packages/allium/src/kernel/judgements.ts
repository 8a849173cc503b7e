/** What guards have said in a run, so that nothing is judged twice, and what layers get to see because of it. */
import { judgeToolResult } from './content-guards.js';
import type { Context, ModelContext, ToolContext } from './context.js';
import { judgedOnce } from './guards.js';
import type { LayerContext } from './layer.js';
import { type AssistantContent, deepFreeze, type ModelResponse } from './messages.js';
import {
  asJudged,
  type CallVerdicts,
  guardResponse,
  type JudgedContent,
  judgeArguments,
  NO_VERDICTS,
} from './response-gate.js';
import type { Run } from './run.js';
import type { Awaitable } from './store.js';
import type { ToolResult } from './tool.js';
import { transformed } from './transforms.js';

type Content = readonly AssistantContent[];

export class Judgements {
  // Made when they are first needed: weak maps are too dear for every run.
  private judged: WeakMap<Content, Promise<JudgedContent>> | undefined;
  private results: WeakMap<ToolResult, Promise<ToolResult>> | undefined;
  private passed: WeakSet<ToolResult> | undefined;

  constructor(private readonly run: Run) {}

  /** What comes in to a layer from further in: through its transforms, and for a sink through the guards. */
  view(ctx: Context, result: unknown, sink: boolean): Awaitable<unknown> {
    if (ctx.seam === 'model') {
      const model = ctx as ModelContext;
      let response = result as ModelResponse;
      if (model._transforms) {
        const stage = this.run.stages?.get(response.content);
        response =
          stage?.ctx === model
            ? { ...response, content: stage.response.content }
            : deepFreeze(transformed(response, model));
      }
      return sink && model._call.guarded && this.run.plan.guardsResponses
        ? this.seen(response, model)
        : response;
    }
    if (ctx.seam === 'tool' && sink && this.run.plan.guards['tool-result'].length > 0)
      return this.toolResult(ctx as ToolContext, result as ToolResult);
    return result;
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
    this.judged ??= new WeakMap();
    const judged = await judgedOnce(this.judged, response.content, ctx, () => guardResponse(response, ctx));
    this.remember(judged);
    return { response: asJudged(response, judged, ctx), calls: judged.calls };
  }

  /** What guards left of a response has passed them. */
  remember(judged: JudgedContent): void {
    this.judged ??= new WeakMap();
    this.judged.set(judged.content, Promise.resolve(judged));
  }

  toolResult(ctx: ToolContext, result: ToolResult): Promise<ToolResult> {
    this.results ??= new WeakMap();
    const { results } = this;
    return judgedOnce(results, result, ctx, () =>
      judgeToolResult(result, ctx).then((made) => {
        results.set(made, Promise.resolve(made));
        this.passed ??= new WeakSet();
        this.passed.add(made);
        return deepFreeze(made);
      }),
    );
  }

  /** Has a layer assigned arguments that nobody has judged yet? Those are kept from a sink. */
  hides(ctx: LayerContext): ctx is ToolContext {
    return ctx.seam === 'tool' && ctx._input.assigned && this.run.plan.guards['tool-args'].length > 0;
  }

  /** Cleans what a layer assigned before a sink sees it. Whether the call may happen is asked where the tool is called. */
  async assigned(ctx: ToolContext): Promise<void> {
    const given = JSON.stringify(ctx._input.raw) ?? 'null';
    const toolCall = { ...ctx.toolCall, arguments: given };
    const { arguments: kept } = await judgeArguments(this.run.plan.guards, toolCall, ctx);
    if (kept !== given) ctx.args = JSON.parse(kept);
  }

  /** Is this what the guards left of a result? */
  hasPassed(result: ToolResult): boolean {
    return this.passed?.has(result) ?? false;
  }
}
