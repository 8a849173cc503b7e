import {
  Agent,
  BaseMiddleware,
  defineMiddleware,
  type Middleware,
  type ModelContext,
  type ModelResponse,
  type Next,
  pipeline,
  type RunContext,
  type RunResult,
  type ToolContext,
  type ToolResult,
  type TurnContext,
  tool,
  toolResult,
} from 'allium';
import { scriptedModel } from 'allium/testing';
import { expectTypeOf } from 'vitest';
import { z } from 'zod';

// A misspelt hook is a compile error.
defineMiddleware({
  // @ts-expect-error: beforeModel
  befroeModel() {},
});
defineMiddleware({
  name: 'a',
  beforeModel() {},
  // @ts-expect-error: snake_case is not a hook
  after_model() {},
});
// @ts-expect-error: a hook of the wrong shape
defineMiddleware({ beforeToolCall: () => ({ blok: true }) });
// @ts-expect-error: not a seam
defineMiddleware({ seams: ['turn'], process: (_, next) => next() });
// @ts-expect-error: onFail is 'open' or 'closed'
defineMiddleware({ onFail: 'maybe', beforeModel() {} });
expectTypeOf(defineMiddleware).toEqualTypeOf<(middleware: Middleware) => Middleware>();

// A class may name the types without their parameters.
class Elapsed implements Middleware {
  async process(ctx: RunContext | ModelContext | ToolContext, next: Next) {
    await next();
    ctx.metadata.elapsed = 1;
  }
}
expectTypeOf(new Elapsed()).toExtend<Middleware>();

// Each hook knows its context.
defineMiddleware({
  process(ctx, next) {
    expectTypeOf(ctx).toEqualTypeOf<RunContext | ModelContext | ToolContext>();
    if (ctx.seam === 'model') expectTypeOf(ctx).toEqualTypeOf<ModelContext>();
    if (ctx.seam === 'tool') expectTypeOf(ctx).toEqualTypeOf<ToolContext>();
    if (ctx.seam === 'run') expectTypeOf(ctx).toEqualTypeOf<RunContext>();
    return next();
  },
  wrapRun: async (ctx, next) => {
    expectTypeOf(ctx).toEqualTypeOf<RunContext>();
    expectTypeOf(await next()).toEqualTypeOf<RunResult>();
  },
  wrapModel: async (ctx, next) => {
    expectTypeOf(ctx).toEqualTypeOf<ModelContext>();
    expectTypeOf(await next({ systemPrompt: 'x' })).toEqualTypeOf<ModelResponse>();
    // @ts-expect-error: not part of a request
    await next({ mesages: [] });
  },
  wrapTool: async (ctx, next) => {
    expectTypeOf(ctx).toEqualTypeOf<ToolContext>();
    expectTypeOf(await next({ args: {}, timeoutMs: 5 })).toEqualTypeOf<ToolResult>();
  },
  beforeRun: (ctx) => expectTypeOf(ctx).toEqualTypeOf<RunContext>() as never,
  afterModel: (ctx) => expectTypeOf(ctx).toEqualTypeOf<ModelContext>() as never,
  beforeTool: (ctx) => expectTypeOf(ctx).toEqualTypeOf<ToolContext>() as never,
  onError: (ctx, error) => {
    expectTypeOf(ctx).toEqualTypeOf<ModelContext | ToolContext>();
    expectTypeOf(error).toEqualTypeOf<unknown>();
    return 'retry';
  },
  transformContext(messages, ctx) {
    expectTypeOf(ctx).toEqualTypeOf<ModelContext>();
    return messages;
  },
  afterModelResponse(response, ctx) {
    expectTypeOf(response).toEqualTypeOf<ModelResponse>();
    expectTypeOf(ctx).toEqualTypeOf<TurnContext>();
  },
});

// `ctx.is(tool)` narrows the arguments.
const pay = tool({
  name: 'pay',
  description: 'Pays.',
  input: z.object({ amount: z.string().transform(Number) }),
  execute: ({ amount }) => amount,
});
const note = tool({
  name: 'note',
  description: 'Notes.',
  input: z.object({ text: z.string() }),
  execute: ({ text }) => text,
});
defineMiddleware({
  beforeTool(ctx) {
    expectTypeOf(ctx.args).toBeAny();
    if (ctx.is(pay)) expectTypeOf(ctx.args).toEqualTypeOf<{ amount: number }>();
    else if (ctx.is(note)) expectTypeOf(ctx.args).toEqualTypeOf<{ text: string }>();
  },
});

// Results and responses are read-only.
defineMiddleware({
  afterModel(ctx) {
    // @ts-expect-error: replace it instead
    ctx.response!.content = [];
    // @ts-expect-error: replace it instead
    ctx.messages.push(ctx.messages[0]!);
  },
  afterTool(ctx) {
    ctx.result = toolResult({ content: 'other' });
    // @ts-expect-error: replace it instead
    ctx.result.isError = true;
  },
});

// Words need no `as const`, awaited or not.
defineMiddleware({
  async onError(ctx) {
    await Promise.resolve();
    if (ctx.attempt > 3) return;
    return ctx.attempt > 2 ? 'fail' : 'retry';
  },
});
defineMiddleware({ onError: () => 'retry' });
defineMiddleware({ onError: async () => 'fallback' });
defineMiddleware({ async onError() {} });
// @ts-expect-error: not an action
defineMiddleware({ onError: () => 'again' });
// @ts-expect-error: not a text
defineMiddleware({ onError: async () => true });
defineMiddleware({
  async afterModelResponse() {
    return { decision: 'stop' };
  },
  async shouldStopAfterTurn() {
    return { reason: 'stopped' };
  },
  guard: {
    on: ['input'],
    async judge() {
      return { type: 'deny' };
    },
  },
});
class Retrying extends BaseMiddleware {
  override async onError() {
    return 'retry';
  }
}
new Retrying();

// A class implements what it needs.
class Timing extends BaseMiddleware {
  override readonly name = 'timing';
  override beforeModel(ctx: ModelContext): void {
    ctx.metadata.started = 0;
  }
}

// Lists, nested lists and pipelines are all accepted; functions only inside a pipeline.
const model = scriptedModel([]);
new Agent({ model, middleware: [new Timing(), [new Timing(), [new Timing()]], pipeline([new Timing()])] });
new Agent({
  model,
  middleware: pipeline([
    new Timing(),
    { name: 'retry', onError: () => 'retry' },
    async (_ctx, next) => void (await next()),
  ]),
});
// @ts-expect-error: a factory has to be called
new Agent({ model, middleware: [() => new Timing()] });
// @ts-expect-error: layer hooks belong to middleware
new Agent({ model, beforeModel() {} });
