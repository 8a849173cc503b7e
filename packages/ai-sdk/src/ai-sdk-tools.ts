/** Tools of the AI SDK, made with its `tool()`, for an agent. */

import {
  type JsonSchema,
  type Middleware,
  type StandardSchema,
  type Tool,
  type ToolContext,
  type ToolResult,
  tool,
  toolResult,
} from 'allium';
import { checkFields, describeValue, invalidOption, isRecord, isStandardSchema, kinds } from 'allium/kit';
import { schemaFrom, schemaOf } from './foreign-schemas.js';
import { outputContent } from './from-prompt.js';
import { isObject, jsonCopy, type Loose } from './language-model.js';
import { toPrompt } from './prompt.js';

// biome-ignore lint/suspicious/noExplicitAny: each tool has types of its own.
type Any = any;

/** The part of a tool of the AI SDK that is used. Any object of this shape will do. */
export interface AiSdkTool {
  /** A text, or from version 7 on a function that returns one. */
  readonly description?: string | ((options: Any) => string) | undefined;
  /** A schema of zod, valibot or arktype, or what `jsonSchema()` of the AI SDK makes. */
  readonly inputSchema?: unknown;
  readonly execute?: ((input: Any, options: Any) => unknown) | undefined;
  readonly needsApproval?:
    | boolean
    | ((input: Any, options: Any) => boolean | PromiseLike<boolean>)
    | undefined;
  readonly toModelOutput?: ((given: Any) => unknown) | undefined;
}

export interface FromAiSdkToolsOptions {
  /** The version of `ai` that the tools are written for: 5 passes only the output to `toModelOutput`. @default 6 */
  readonly version?: 5 | 6 | 7;
  /** Makes what the tools get as their `context` (version 7) or `experimental_context` (5 and 6). @default none */
  readonly context?: (ctx: ToolContext) => unknown;
}

/**
 * A middleware that brings tools of the AI SDK. Tools that need approval ask before they run, generators show what
 * they yield and end with the last value, and `toModelOutput` decides what the model reads.
 *
 * @example
 * const agent = new Agent({ model, middleware: [fromAiSdkTools({ weather, search })] });
 */
export function fromAiSdkTools(
  tools: Readonly<Record<string, AiSdkTool>>,
  options: FromAiSdkToolsOptions = {},
): Middleware {
  if (!isRecord(tools)) throw invalidOption('tools', 'an object with tools of the AI SDK by name', tools);
  checkFields('fromAiSdkTools()', { version: kinds.integer(5, 7), context: kinds.func() }, options);
  const { version = 6, context } = options;
  const optionsOf = (ctx: ToolContext) => callOptions(ctx, context?.(ctx));
  const made = Object.entries(tools).map(([name, given]) => asTool(name, given, version, optionsOf));
  const asking = Object.entries(tools).filter(([, { needsApproval }]) => needsApproval);
  return {
    name: 'ai-sdk-tools',
    tools: made,
    ...(asking.length > 0 && {
      suspends: true,
      traits: ['protects'],
      async beforeToolCall(ctx: ToolContext) {
        const name = ctx.tool?.name ?? '';
        const needs = Object.hasOwn(tools, name) ? tools[name]!.needsApproval : undefined;
        const asks = typeof needs === 'function' ? await needs(ctx.args, optionsOf(ctx)) : needs;
        return asks ? { ask: { title: `May "${name}" be called?` } } : undefined;
      },
    }),
  };
}

function asTool(
  name: string,
  given: AiSdkTool,
  version: number,
  optionsOf: (ctx: ToolContext) => Loose,
): Tool {
  const fail = (what: string, value: unknown) => invalidOption(`tools.${name}`, what, value);
  if (typeof given !== 'object' || given === null) throw fail('a tool of the AI SDK', given);
  const { execute, description = '', toModelOutput } = given;
  // Version 5 passes only the output. A tool doesn't say which version it is for.
  const told =
    toModelOutput && version === 5
      ? ({ output }: { readonly output: unknown }) => toModelOutput.call(given, output)
      : toModelOutput;
  if (typeof execute !== 'function')
    throw fail(
      'a tool with `execute`: one that the provider runs goes to fromAiSdk({ providerTools }), one that the page runs is a tool() that calls ctx.suspend()',
      describeValue(given),
    );
  return tool({
    name,
    description: typeof description === 'function' ? description({}) : description,
    input: inputOf(given.inputSchema, fail),
    execute: async (args, ctx) =>
      resultOf(await settled(execute(args, optionsOf(ctx)), ctx), args, ctx, told),
  });
}

function callOptions(ctx: ToolContext, context: unknown): Loose {
  return {
    toolCallId: ctx.toolCall.id,
    abortSignal: ctx.signal,
    context,
    experimental_context: context,
    // What the model had when it made the call. Made on demand: few tools ask for it.
    get messages() {
      const { history, assistantMessage } = ctx;
      const end = history.findLastIndex(({ id }) => id === assistantMessage.id);
      const asked = end < 0 ? history : history.slice(0, end);
      return toPrompt('', asked, { version: 'v3', provider: '', keys: new Set() });
    },
  };
}

function inputOf(schema: unknown, fail: (what: string, value: unknown) => Error): StandardSchema<Loose> {
  const found = typeof schema === 'function' && !isStandardSchema(schema) ? schema() : (schema ?? EMPTY);
  const known = schemaOf(found, fail);
  if (known) return known;
  const { jsonSchema, validate } = (isObject(found) ? found : {}) as {
    jsonSchema?: unknown;
    validate?: unknown;
  };
  if (!isObject(jsonSchema)) throw fail('a tool whose `inputSchema` has a JSON Schema', schema);
  type Checked = { success: true; value: Loose } | { success: false; error: Error };
  return schemaFrom(jsonSchema as JsonSchema, async (value) => {
    // Without one, the AI SDK accepts everything, too.
    if (typeof validate !== 'function') return { value: value as Loose };
    const checked = (await validate(value)) as Checked;
    return checked.success ? { value: checked.value } : { issues: [{ message: checked.error.message }] };
  });
}

const EMPTY = { jsonSchema: { type: 'object', properties: {} } };

/** A generator shows what it yields at once; the last is the result. */
async function settled(output: unknown, ctx: ToolContext): Promise<unknown> {
  if (!isObject(output) || typeof output[Symbol.asyncIterator as never] !== 'function') return output;
  let last: unknown;
  for await (const value of output as unknown as AsyncIterable<unknown>) {
    // It may not look at its signal. Leaving the loop ends it.
    ctx.signal.throwIfAborted();
    last = value;
    await ctx.update(textOf(value), jsonCopy(value));
  }
  return last;
}

async function resultOf(
  output: unknown,
  input: unknown,
  ctx: ToolContext,
  toModelOutput: AiSdkTool['toModelOutput'],
): Promise<ToolResult> {
  const details = output === undefined ? {} : { details: jsonCopy(output) };
  const given = { toolCallId: ctx.toolCall.id, input, output };
  const told = (await toModelOutput?.(given)) ?? undefined;
  // It may have nothing to say of some outputs.
  if (told === undefined) return toolResult({ content: textOf(output), ...(isObject(output) && details) });
  const { type } = (isObject(told) ? told : {}) as Loose;
  const isError = type === 'error-text' || type === 'error-json';
  return toolResult({
    content: outputContent(isObject(told) ? told : { type: 'text', value: told }),
    isError,
    ...details,
  });
}

function textOf(output: unknown): string {
  return typeof output === 'string' ? output : (JSON.stringify(output) ?? '(no output)');
}
