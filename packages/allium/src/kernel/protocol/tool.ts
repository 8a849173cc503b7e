/** Tools: what a model may call. */

import { AlliumError, invalidOption, shown } from '../lib/errors.js';
import * as kinds from '../lib/kinds.js';
import { type Fields, type Kind, wrongFieldValue } from '../lib/shapes.js';
import { deepFreeze } from '../messages/messages.js';
import type { JsonSchema, ToolSpec } from '../messages/model.js';
import {
  excludesObjects,
  isStandardSchema,
  jsonSchemaOf,
  type StandardSchema,
} from '../messages/standard-schema.js';
import { outputSchemaOf } from '../messages/tool-output.js';
import type { ToolContext } from './contexts.js';

export interface ToolOptions<Input, Output, Result = any> {
  /** 1 to 64 letters, digits, `_` or `-`. */
  readonly name: string;
  /** Shown to the model. */
  readonly description: string;
  /** Any Standard Schema of an object. A raw JSON Schema goes through `allium/json-schema`. */
  readonly input: StandardSchema<Input, Output>;
  /**
   * Does the work. Its return value becomes the result: text, any JSON value, a list of content, or `toolResult({ … })` for
   * details and flags. If it throws, the model reads an error result. Long work should stop when `ctx.signal` aborts; late
   * results are dropped.
   */
  execute(args: Output, ctx: ToolContext<Output>): unknown;
  /**
   * Any Standard Schema of what `execute` returns. The value that passes becomes the result and is also in its
   * `details`; read it with `toolOutput()`. A value that doesn't fit becomes an error result. A raw JSON Schema goes
   * through `allium/json-schema`.
   */
  readonly output?: StandardSchema<any, Result> | undefined;
  /** Makes the JSON Schema for the model if the schema doesn't provide one. */
  readonly toJsonSchema?: (schema: never) => object;
  /** Running it twice with the same arguments does no harm. @default false */
  readonly idempotent?: boolean;
  /** What a resume does with a call that started but has no result. @default 'retry' if idempotent, else 'fail' */
  readonly onInDoubt?: 'retry' | 'fail';
  /** Never runs at the same time as another call of the same batch. @default false */
  readonly sequential?: boolean;
  /** How many of its calls may run at once in a batch. */
  readonly concurrency?: number;
  /** Milliseconds after which a call is cancelled. Time spent waiting for people and readers doesn't count. */
  readonly timeoutMs?: number;
  /** Free labels for middleware: `cacheable`, `destructive`, … */
  readonly tags?: readonly string[];
  /** How many messages from before the run it looks at in `ctx.history`. @default 0 without a second parameter, else all */
  readonly looksBack?: number;
}

/**
 * What `tool()` returns. A changed copy, such as `{ ...look, name: 'peek' }`, is a tool too: `toolSpec()` works out what the
 * model is shown from these fields.
 */
export interface Tool<Input = any, Output = any, Result = any> extends ToolOptions<Input, Output, Result> {
  readonly idempotent: boolean;
  readonly sequential: boolean;
}

const SCHEMA = kinds.kind(
  'a Standard Schema (zod, valibot, arktype, …), or a raw JSON Schema in jsonSchema() of "allium/json-schema"',
  isStandardSchema,
);

/** How the options of a tool are checked. */
export const TOOL_OPTIONS: Fields = {
  name: kinds.required(
    kinds.kind(
      '1 to 64 letters, digits, "_" or "-"',
      (name) => typeof name === 'string' && /^[\w-]{1,64}$/.test(name),
    ),
  ),
  description: kinds.required(kinds.text),
  input: kinds.required(SCHEMA),
  execute: kinds.required(kinds.func()),
  output: SCHEMA,
  toJsonSchema: kinds.func(),
  idempotent: kinds.flag,
  onInDoubt: kinds.oneOf('retry', 'fail'),
  sequential: kinds.flag,
  concurrency: kinds.integer(1),
  timeoutMs: kinds.number(1, Number.POSITIVE_INFINITY),
  tags: kinds.listOf(kinds.text, 'a list of texts'),
  looksBack: kinds.integer(0),
} satisfies Record<keyof ToolOptions<any, any>, Kind>;

/** How far before its run a tool reads messages, if it is known: one without a second parameter can't read any. */
export function looksBackOf({ looksBack, execute }: Tool): number | undefined {
  return looksBack ?? (execute.length === 1 ? 0 : undefined);
}

type Shown = Pick<Tool, 'name' | 'description' | 'input' | 'output' | 'toJsonSchema'>;

/** With the fields that each was made from. */
const specs = new WeakMap<Tool, { readonly of: Shown; readonly spec: ToolSpec }>();

/** How a model is shown this tool. Worked out, and the tool checked, once for each tool and each copy of one. */
export function toolSpec(tool: Tool): ToolSpec {
  if (typeof tool !== 'object' || tool === null) throw invalidOption('tool', 'what tool() made', tool);
  const known = specs.get(tool);
  // A copy is not frozen, so its fields may have been changed since.
  if (known && isSame(known.of, tool)) return known.spec;
  checkTool(tool);
  const { name, description, input, output, toJsonSchema } = tool;
  const outputSchema = outputSchemaOf(tool);
  const inputSchema = inputSchemaOf(tool);
  const spec = Object.freeze({ name, description, inputSchema, ...(outputSchema && { outputSchema }) });
  specs.set(tool, { of: { name, description, input, output, toJsonSchema }, spec });
  return spec;
}

function isSame(of: Shown, tool: Tool): boolean {
  for (const field in of) if (of[field as keyof Shown] !== tool[field as keyof Shown]) return false;
  return true;
}

const inputSchemas = new WeakMap<
  StandardSchema,
  { convert: Tool['toJsonSchema']; inputSchema: JsonSchema }
>();

/** Remembered for the schema: copies that a layer makes for every request share it. */
function inputSchemaOf({ name, input, toJsonSchema: convert }: Tool): JsonSchema {
  const known = inputSchemas.get(input);
  if (known && known.convert === convert) return known.inputSchema;
  const made = jsonSchemaOf(`Tool "${name}"`, input, convert);
  if (excludesObjects(made))
    throw new AlliumError(
      'INVALID_TOOL',
      `Tool "${name}": \`input\` must be the schema of an object, got ${shown(made)}. Models call tools with named arguments: make it a field of an object.`,
    );
  // A copy, so that changes by its author or by one agent's middleware don't reach other agents.
  // Without `properties` it means the same, but some providers refuse it.
  const named = made.type === 'object' ? { ...made, properties: made.properties ?? {} } : made;
  const inputSchema = deepFreeze(structuredClone(named));
  inputSchemas.set(input, { convert, inputSchema });
  return inputSchema;
}

function checkTool(tool: ToolOptions<any, any>): void {
  const wrong = wrongFieldValue(TOOL_OPTIONS, tool);
  if (wrong) throw new AlliumError('INVALID_TOOL', `Tool ${shown(tool.name)}: ${wrong.message}`);
}

/** Was it made by `tool()`, here or in another copy of this package? A copy of such a tool counts as well. */
export function isTool(value: unknown): value is Tool {
  if (typeof value !== 'object' || value === null) return false;
  const { name, execute, input, idempotent } = value as Partial<Tool>;
  return (
    typeof name === 'string' &&
    typeof execute === 'function' &&
    isStandardSchema(input) &&
    typeof idempotent === 'boolean'
  );
}

/** A list of tools. */
export const TOOLS: Kind<readonly Tool[]> = kinds.listOf(
  kinds.kind('a tool', isTool),
  'a list of tools made with tool()',
);

/** What a resume does with a call that had started and has no result. */
export function inDoubtPolicy(tool: Tool | undefined): 'retry' | 'fail' | undefined {
  return tool && (tool.onInDoubt ?? (tool.idempotent ? 'retry' : 'fail'));
}

const lists = new WeakMap<readonly Tool[], readonly ToolSpec[]>();

/** How these tools are shown to a model. Made once for a frozen list. */
export function toolSpecs(tools: readonly Tool[]): readonly ToolSpec[] {
  let made = lists.get(tools);
  if (!made) {
    made = Object.freeze(tools.map(toolSpec));
    if (Object.isFrozen(tools)) lists.set(tools, made);
  }
  return made;
}
