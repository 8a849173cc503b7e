/** Tools: what a model may call. */

import { AlliumError, invalidOption, shown } from '../lib/errors.js';
import { FOREIGN_TOOL } from '../lib/foreign-names.js';
import { copyOf, isFrozenJson, isPlain, kindOf, ownJson, unwritable } from '../lib/frozen-json.js';
import * as kinds from '../lib/kinds.js';
import { checkFields, checkKeys, type Fields, isOf, type Kind, wrongFieldValue } from '../lib/shapes.js';
import { deepFreeze, type ToolContent } from '../messages/messages.js';
import type { JsonSchema, ToolSpec } from '../messages/model.js';
import {
  excludesObjects,
  isStandardSchema,
  jsonSchemaOf,
  type StandardSchema,
} from '../messages/standard-schema.js';
import type { ToolContext } from './contexts.js';
import type { ToolResultPatch } from './middleware.js';

export interface ToolOptions<Input, Output> {
  /** 1 to 64 letters, digits, `_` or `-`. */
  readonly name: string;
  /** Shown to the model. */
  readonly description: string;
  /** Any Standard Schema of an object. A raw JSON Schema goes through `allium/json-schema`. */
  readonly input: StandardSchema<Input, Output>;
  /**
   * Does the work. What it returns becomes the result: text, any JSON value, a list of content, or
   * `toolResult({ … })` for details and flags. What it throws becomes an error result the model can read.
   * Long work should stop when `ctx.signal` aborts; late results are dropped.
   */
  execute(args: Output, ctx: ToolContext<Output>): unknown;
  /** Makes the JSON Schema for the model where the schema does not expose one. */
  readonly toJsonSchema?: (schema: never) => object;
  /** Running it twice with the same arguments does no harm. @default false */
  readonly idempotent?: boolean;
  /** What a resume does with a call that had started and has no result. @default 'retry' if idempotent, else 'fail' */
  readonly onInDoubt?: 'retry' | 'fail';
  /** Never runs beside another call of the same batch. @default false */
  readonly sequential?: boolean;
  /** At most this many calls of it at once in one batch. */
  readonly concurrency?: number;
  /** Milliseconds after which a call is cancelled. Those that people and readers take do not count. */
  readonly timeoutMs?: number;
  /** Free labels for middleware: `cacheable`, `destructive`, … */
  readonly tags?: readonly string[];
}

/**
 * What `tool()` makes. A changed copy, such as `{ ...look, name: 'peek' }`, is a tool too: what a model is shown is
 * worked out from these fields by `toolSpec()`.
 */
export interface Tool<Input = any, Output = any> extends ToolOptions<Input, Output> {
  readonly idempotent: boolean;
  readonly sequential: boolean;
}

const OPTIONS: Fields = {
  name: kinds.required(
    kinds.kind(
      '1 to 64 letters, digits, "_" or "-"',
      (name) => typeof name === 'string' && /^[\w-]{1,64}$/.test(name),
    ),
  ),
  description: kinds.required(kinds.text),
  input: kinds.required(
    kinds.kind(
      'a Standard Schema (zod, valibot, arktype, …), or a raw JSON Schema in jsonSchema() of "allium/json-schema"',
      isStandardSchema,
    ),
  ),
  execute: kinds.required(kinds.func()),
  toJsonSchema: kinds.func(),
  idempotent: kinds.flag,
  onInDoubt: kinds.oneOf('retry', 'fail'),
  sequential: kinds.flag,
  concurrency: kinds.integer(1),
  timeoutMs: kinds.number(1, Number.POSITIVE_INFINITY),
  tags: kinds.listOf(kinds.text, 'a list of texts'),
} satisfies Record<keyof ToolOptions<any, any>, Kind>;

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
export function tool<Input, Output>(options: ToolOptions<Input, Output>): Tool<Input, Output> {
  if (typeof options !== 'object' || options === null)
    throw invalidOption('options', 'one object with name, description, input and execute', options);
  checkKeys(`tool ${shown(options.name)}`, options, Object.keys(OPTIONS), FOREIGN_TOOL);
  const { idempotent = false, sequential = false } = options;
  const made: Tool<Input, Output> = Object.freeze({ ...options, idempotent, sequential });
  // Now, and not when a model is first called, so that the author of the schema sees the error.
  toolSpec(made);
  return made;
}

interface Known {
  readonly input: StandardSchema;
  readonly convert: Tool['toJsonSchema'];
  readonly spec: ToolSpec;
}

const specs = new WeakMap<Tool, Known>();

/** How a model is shown this tool. Worked out, and the tool checked, once for each tool and each copy of one. */
export function toolSpec(tool: Tool): ToolSpec {
  if (typeof tool !== 'object' || tool === null) throw invalidOption('tool', 'what tool() made', tool);
  const known = specs.get(tool);
  const { name, description, input, toJsonSchema: convert } = tool;
  // A copy is not frozen, so its fields may have been changed since.
  if (
    known &&
    known.input === input &&
    known.convert === convert &&
    known.spec.name === name &&
    known.spec.description === description
  )
    return known.spec;
  checkTool(tool);
  const spec = Object.freeze({ name, description, inputSchema: inputSchemaOf(tool) });
  specs.set(tool, { input, convert, spec });
  return spec;
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
  const inputSchema = deepFreeze(structuredClone(made));
  inputSchemas.set(input, { convert, inputSchema });
  return inputSchema;
}

function checkTool(tool: ToolOptions<any, any>): void {
  const wrong = wrongFieldValue(OPTIONS, tool);
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

/** What a tool call came to. */
export interface ToolResult {
  /** What the model reads. */
  readonly content: readonly ToolContent[];
  /** For the application; never sent to the model. */
  readonly details?: unknown;
  /** The call failed, as far as the model is told. */
  readonly isError: boolean;
  /** When every result of a batch says so, the run ends after it. */
  readonly terminate?: boolean;
}

const RESULT: Fields = {
  content: kinds.required(
    kinds.kind(
      'text or a list of text, image and file content',
      (content) => typeof content === 'string' || isResultContent(content),
    ),
  ),
  details: kinds.anything,
  isError: kinds.flag,
  terminate: kinds.flag,
} satisfies Record<keyof ToolResult, Kind>;

const RESULTS = new WeakSet<object>();

/** A result with more than content: details for the application, an error flag, or the wish to end the run. */
export function toolResult(
  result: Partial<Omit<ToolResult, 'content'>> & { content: string | readonly ToolContent[] },
): ToolResult {
  checkFields('toolResult()', RESULT, result);
  const { content: given } = result;
  const content = typeof given === 'string' ? [{ type: 'text' as const, text: given }] : ownContent(given);
  const made = Object.freeze(withOwnDetails({ isError: false, ...result, content }));
  RESULTS.add(made);
  return made;
}

/** A result from a result, or from anything a tool could return. */
export function asToolResult(value: unknown): ToolResult {
  if (typeof value !== 'object' || value === null || typeof (value as ToolResult).isError !== 'boolean')
    return toToolResult(value);
  const { content } = value as { readonly content?: unknown };
  // As toolResult() takes it.
  if (typeof content === 'string')
    return withOwnDetails({ ...(value as ToolResult), content: [{ type: 'text', text: content }] });
  return isResultContent(content) ? withOwnDetails(value as ToolResult) : toToolResult(value);
}

/** The tool may go on changing the details it gave, so the result gets a copy. */
function withOwnDetails(result: ToolResult): ToolResult {
  const { details } = result;
  return details === undefined || isFrozenJson(details)
    ? result
    : { ...result, details: ownDetails(details) };
}

/** The same for its list of content and the metadata of the parts. */
function ownContent(content: readonly ToolContent[]): readonly ToolContent[] {
  if (isFrozenJson(content)) return content;
  return content.map((part) => (part.metadata ? { ...part, metadata: copyOf(part.metadata) } : { ...part }));
}

function ownDetails(details: unknown): unknown {
  return ownJson(details, (why) => invalidOption('details', `what can be written as JSON (${why})`, details));
}

/** A result from what `execute` returned. Throws if that is not JSON. */
export function toToolResult(value: unknown): ToolResult {
  if (typeof value === 'string') return textResult(value);
  if (typeof value === 'number' && Number.isFinite(value)) return textResult(String(value));
  if (value instanceof Error) throw value;
  if (value instanceof Map || value instanceof Set)
    throw new TypeError(
      `A tool must return text, a JSON value or content, got a ${value.constructor.name}. Return Object.fromEntries(map) or [...set].`,
    );
  if (value === undefined) return textResult('(no output)');
  if (typeof value === 'object' && value !== null) {
    if (RESULTS.has(value)) return value as ToolResult;
    if (isContentList(value)) return { content: ownContent(value), isError: false };
  }
  const text = jsonText(value);
  if (text === undefined)
    throw new TypeError(`A tool must return text, a JSON value or content, got ${shown(value)}.`);
  if (
    text === '{}' &&
    !isPlain(value as object) &&
    typeof (value as { toJSON?: unknown }).toJSON !== 'function'
  )
    throw new TypeError(
      `A tool must return text, a JSON value or content, got ${kindOf(value as object)}, which JSON leaves empty. Return what is in it, and show progress with ctx.update().`,
    );
  return textResult(text);
}

function jsonText(value: unknown): string | undefined {
  try {
    return JSON.stringify(value);
  } catch {
    throw new TypeError(
      `A tool must return text, a JSON value or content, got a value that cannot be written as JSON: ${unwritable(value)}.`,
    );
  }
}

/** Is it a list of text, image and file content, as a tool may return it? An empty list is not. */
export function isContentList(value: unknown): value is readonly ToolContent[] {
  return isResultContent(value) && value.length > 0;
}

/** Is it the content of a result, which may be empty? */
export function isResultContent(value: unknown): value is readonly ToolContent[] {
  return isOf(CONTENT, value);
}

const CONTENT: Kind = kinds.listOf(kinds.kind('text, image or file content', isToolContent));

function isToolContent(value: unknown): value is ToolContent {
  if (typeof value !== 'object' || value === null) return false;
  const part = value as Record<string, unknown>;
  const { type, text, data, mimeType } = part;
  const fine =
    type === 'text'
      ? typeof text === 'string'
      : (type === 'image' || type === 'file') && typeof data === 'string' && typeof mimeType === 'string';
  // It is stored with all that is in it, metadata above all.
  return fine && Object.values(part).every((item) => unwritable(item) === undefined);
}

/** Content is flat but for metadata. */
export function freezeResult(result: ToolResult): ToolResult {
  const { content, details } = result;
  for (let i = 0; i < content.length; i++) {
    const part = content[i]!;
    if (part.metadata !== undefined) deepFreeze(part.metadata);
    Object.freeze(part);
  }
  Object.freeze(content);
  if (details !== undefined) deepFreeze(details);
  return Object.freeze(result);
}

/** `undefined` keeps a field, `null` clears `details`. */
export function patched(result: ToolResult, patch: ToolResultPatch): ToolResult {
  const { content, details, isError, terminate } = patch;
  const next: { -readonly [K in keyof ToolResult]: ToolResult[K] } = { ...result };
  if (typeof content === 'string') next.content = [{ type: 'text', text: content }];
  else if (content !== undefined) next.content = deepFreeze(ownContent(content));
  if (details !== undefined) next.details = details === null ? undefined : ownDetails(details);
  if (isError !== undefined) next.isError = isError;
  if (terminate !== undefined) next.terminate = terminate;
  return Object.freeze(next);
}

export function textResult(text: string): ToolResult {
  return { content: [{ type: 'text', text }], isError: false };
}

/** A tool result that tells the model what went wrong. */
export function errorResult(text: string): ToolResult {
  return { content: [{ type: 'text', text }], isError: true };
}
