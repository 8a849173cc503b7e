/** `tool()`: the types of a tool come from its schema, and mistakes in it are found at once. */

import { invalidOption, shown } from '../kernel/lib/errors.js';
import { foreignTable } from '../kernel/lib/foreign-names.js';
import { checkKeys } from '../kernel/lib/shapes.js';
import type { StandardSchema } from '../kernel/messages/standard-schema.js';
import type { ToolResult } from '../kernel/messages/tool-result.js';
import type { ToolContext } from '../kernel/protocol/contexts.js';
import type { Awaitable } from '../kernel/protocol/store.js';
import { TOOL_OPTIONS, type Tool, type ToolOptions, toolSpec } from '../kernel/protocol/tool.js';

type OutputSchema = StandardSchema<any, any> | undefined;

/** What `execute` may return: whatever `output` accepts, or anything without an `output`. */
type Returns<Schema extends OutputSchema> =
  Schema extends StandardSchema<infer Returned, any> ? Awaitable<Returned | ToolResult> : unknown;

type ResultOf<Schema extends OutputSchema> = Schema extends StandardSchema<any, infer Result> ? Result : any;

/** Tool options whose `execute` returns what `output` accepts. */
type TypedOptions<Input, Output, Schema extends OutputSchema> = Omit<
  ToolOptions<Input, Output>,
  'execute' | 'output'
> & {
  readonly output?: Schema;
  execute(args: Output, ctx: ToolContext<Output>): Returns<Schema>;
};

/**
 * Defines a tool. The types of `execute` come from `input`.
 *
 * @example
 * const add = tool({
 *   name: 'add',
 *   description: 'Adds two numbers.',
 *   input: z.object({ a: z.number(), b: z.number() }),
 *   execute: ({ a, b }) => a + b,
 * });
 */
export function tool<Input, Output, Schema extends OutputSchema = undefined>(
  options: TypedOptions<Input, Output, Schema>,
): Tool<Input, Output, ResultOf<Schema>> {
  if (typeof options !== 'object' || options === null)
    throw invalidOption('options', 'one object with name, description, input and execute', options);
  checkKeys(`tool ${shown(options.name)}`, options, Object.keys(TOOL_OPTIONS), FOREIGN_TOOL);
  const { idempotent = false, sequential = false } = options;
  const made: Tool<Input, Output, ResultOf<Schema>> = Object.freeze({ ...options, idempotent, sequential });
  // Now, and not when a model is first called, so that the author of the schema sees the error.
  toolSpec(made);
  return made;
}

/** What other libraries call the options of a tool. */
const FOREIGN_TOOL = foreignTable(`
  inputschema parameters schema args argsschema paramsschema jsonschema → input
  outputschema returns responseschema → output
  tomodeloutput responseformat → toolResult({ content, details }) as what execute returns
  handler invoke run func callback fn call action → execute
  id title label → name
  needsapproval requireapproval → approval() in the middleware of the agent
  returndirect → toolResult({ content, terminate: true }) as what execute returns
  timeout → timeoutMs
  executionmode parallel → sequential: true
  suspendschema resumeschema → ctx.suspend( … ) in execute
  errorfunction failureerrorfunction onerror toolerrorformatter → toolErrors() in the middleware of the agent
  isenabled enabled → a middleware that sets ctx.tools
  strict → nothing: arguments are always validated
  preparearguments → a transform of the schema, or resolveToolCall of a middleware
  inputguardrails → a guard on 'tool-args' in middleware
  outputguardrails → a guard on 'tool-result' in middleware
  oninputstart oninputdelta oninputavailable → observers: message_update events
  retries maxretries retry → retry({ on: 'tool' }) in the middleware of the agent
  cache cacheable → toolCache({ tools }) in the middleware of the agent
  metadata → tags
  annotations → idempotent, tags and the policy of approval()
  provideroptions → fromAiSdk(model, { providerTools })
`);
