/** Inference is a feature: what `input` says reaches `execute`, hooks and results without a cast. */
import {
  Agent,
  type Middleware,
  type ModelResponse,
  type RunResult,
  type StandardSchema,
  type Tool,
  type ToolContext,
  type ToolMessage,
  type ToolResult,
  tool,
  toolOutput,
  toolResult,
} from 'allium';
import { jsonSchema } from 'allium/json-schema';
import { type } from 'arktype';
import * as v from 'valibot';
import { expectTypeOf } from 'vitest';
import { z } from 'zod';

const zodTool = tool({
  name: 'zod',
  description: '',
  input: z.object({ n: z.string().transform(Number), note: z.string().optional() }),
  execute: (args, ctx) => {
    expectTypeOf(args).toEqualTypeOf<{ n: number; note?: string | undefined }>();
    expectTypeOf(ctx).toEqualTypeOf<ToolContext<{ n: number; note?: string | undefined }>>();
    expectTypeOf(ctx.args.n).toBeNumber();
    expectTypeOf(ctx.signal).toEqualTypeOf<AbortSignal>();
    return args.n;
  },
});
expectTypeOf(zodTool).toEqualTypeOf<
  Tool<{ n: string; note?: string | undefined }, { n: number; note?: string | undefined }>
>();

tool({
  name: 'arktype',
  description: '',
  input: type({ n: 'number', 'note?': 'string' }),
  execute: (args) => expectTypeOf(args).toEqualTypeOf<{ n: number; note?: string }>(),
});

tool({
  name: 'valibot',
  description: '',
  input: v.object({ n: v.pipe(v.string(), v.transform(Number)) }),
  toJsonSchema: () => ({}),
  execute: (args) => expectTypeOf(args).toEqualTypeOf<{ n: number }>(),
});

tool({
  name: 'raw',
  description: '',
  input: jsonSchema<{ city: string }>({}),
  execute: (args) => expectTypeOf(args).toEqualTypeOf<{ city: string }>(),
});
tool({
  name: 'unknown',
  description: '',
  input: jsonSchema({}),
  execute: (args) => expectTypeOf(args).toBeUnknown(),
});

expectTypeOf(jsonSchema<{ a: 1 }>({})).toEqualTypeOf<StandardSchema<{ a: 1 }, { a: 1 }>>();
expectTypeOf(toolResult({ content: 'x' })).toEqualTypeOf<ToolResult>();

// Tools of different types go into one list, and a hook narrows by the tool.
const other = tool({
  name: 'other',
  description: '',
  input: z.object({ s: z.string() }),
  execute: ({ s }) => s,
});
new Agent({ model: { provider: 'p', id: 'i', stream: () => [] }, tools: [zodTool, other] });
const narrowing: Middleware = {
  beforeToolCall: (ctx) => {
    if (ctx.is(other)) expectTypeOf(ctx.args).toEqualTypeOf<{ s: string }>();
    return undefined;
  },
};
expectTypeOf(narrowing).toExtend<Middleware>();

// `output` types what `execute` returns, and what is read from the result.
const typed = tool({
  name: 'typed',
  description: '',
  input: z.object({ s: z.string() }),
  output: z.object({ at: z.string().transform(Number) }),
  execute: ({ s }) => {
    expectTypeOf(s).toBeString();
    return { at: s };
  },
});
declare const answered: ToolMessage;
expectTypeOf(toolOutput(typed, answered)).toEqualTypeOf<{ at: number } | undefined>();
new Agent({ model: { provider: 'p', id: 'i', stream: () => [] }, tools: [typed, other] });
tool({
  name: 'later',
  description: '',
  input: z.object({}),
  output: z.object({ at: z.string() }),
  execute: async () => (Math.random() > 2 ? { at: 'x' } : toolResult({ content: 'x', isError: true })),
});
tool({
  name: 'broken',
  description: '',
  input: z.object({}),
  output: z.object({ at: z.string() }),
  // @ts-expect-error a number is not what it promised
  execute: () => ({ at: 5 }),
});

// Hooks that get it wrong do not compile.
const wrong: Middleware = {
  // @ts-expect-error a verdict is an object
  beforeToolCall: () => 'block',
  // @ts-expect-error a decision is one of three
  afterModelResponse: () => ({ decision: 'maybe' }),
  // @ts-expect-error messages, not text
  onRunEnd: () => ['go on'],
  // @ts-expect-error messages, not text
  transformContext: () => ['go on'],
};
expectTypeOf(wrong).toExtend<Middleware>();

// @ts-expect-error a tool needs an input
tool({ name: 'x', description: '', execute: () => 1 });

const wrap: Middleware = {
  wrapModel: async (_, next) => {
    const response = await next({ systemPrompt: 'x' });
    expectTypeOf(response).toEqualTypeOf<ModelResponse>();
    return response;
  },
  wrapRun: async (_, next) => {
    expectTypeOf(await next()).toEqualTypeOf<RunResult>();
  },
};
expectTypeOf(wrap).toExtend<Middleware>();

// An agent as a tool takes a prompt, or what its input says.
declare const agent: Agent;
expectTypeOf(agent.asTool({ name: 'a', description: '' })).toEqualTypeOf<
  Tool<{ prompt: string }, { prompt: string }>
>();
const weather = agent.asTool({
  name: 'weather',
  description: '',
  input: z.object({ city: z.string(), days: z.string().transform(Number) }),
  prompt: (args) => {
    expectTypeOf(args).toEqualTypeOf<{ city: string; days: number }>();
    return args.city;
  },
});
expectTypeOf(weather).toEqualTypeOf<Tool<{ city: string; days: string }, { city: string; days: number }>>();
// @ts-expect-error the name is required
agent.asTool({ description: '' });
