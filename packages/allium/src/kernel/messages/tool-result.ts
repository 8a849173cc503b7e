/** The result of a tool call, made from what the tool returned. */

import { invalidOption, isPlainObject, leaveAlone, shown } from '../lib/errors.js';
import { copyOf, isFrozenJson, kindOf, ownJson, unwritable } from '../lib/frozen-json.js';
import * as kinds from '../lib/kinds.js';
import { checkFields, type Fields, type Kind } from '../lib/shapes.js';
import { lackOfContent, lackOfJson } from './message-input.js';
import { deepFreeze, freezeContent, type ToolContent } from './messages.js';

/** The result of a tool call. */
export interface ToolResult {
  /** What the model reads. */
  readonly content: readonly ToolContent[];
  /** For the application; never sent to the model. */
  readonly details?: unknown;
  /** The model is told that the call failed. */
  readonly isError: boolean;
  /** If every result of a batch has it, the run ends after the batch. */
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

/** Makes a result with more than content: details for the application, an error flag, or `terminate`. */
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

/** Did `toolResult()` make it? */
export function isMadeResult(value: unknown): value is ToolResult {
  return typeof value === 'object' && value !== null && RESULTS.has(value);
}

/** Makes a result from anything a tool could return; keeps one that is a result already. */
export function asToolResult(value: unknown): ToolResult {
  if (typeof value !== 'object' || value === null || typeof (value as ToolResult).isError !== 'boolean')
    return toToolResult(value);
  const { content } = value as { readonly content?: unknown };
  // Like toolResult().
  if (typeof content === 'string')
    return withOwnDetails({ ...(value as ToolResult), content: [{ type: 'text', text: content }] });
  return isResultContent(content) ? withOwnDetails(value as ToolResult) : toToolResult(value);
}

/** The tool may keep changing its details, so the result gets a copy. */
function withOwnDetails(result: ToolResult): ToolResult {
  const { details } = result;
  return details === undefined || isFrozenJson(details)
    ? result
    : { ...result, details: ownDetails(details) };
}

/** The same for its content and the metadata of the parts. */
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
  if (ArrayBuffer.isView(value) || value instanceof ArrayBuffer)
    throw new TypeError(
      `A tool must return text, a JSON value or content, got ${kindOf(value)} of ${value.byteLength} bytes. Return its text, or [{ type: 'image', data, mimeType }] with the bytes in base64; 'file' for anything else.`,
    );
  if (value === undefined) return textResult('(no output)');
  if (typeof value === 'object' && value !== null) {
    if (isMadeResult(value)) return value;
    if (isContentList(value)) return { content: ownContent(value), isError: false };
  }
  const text = jsonText(value);
  // This is probably a promise that somebody forgot to await.
  if (text?.includes('{}')) leaveAlone(value);
  if (text === undefined)
    throw new TypeError(`A tool must return text, a JSON value or content, got ${shown(value)}.`);
  if (
    text === '{}' &&
    !isPlainObject(value as object) &&
    typeof (value as { toJSON?: unknown }).toJSON !== 'function'
  )
    throw new TypeError(
      `A tool must return text, a JSON value or content, got ${kindOf(value as object)}, which turns into an empty object in JSON. Return its contents, and show progress with ctx.update().`,
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

/** Is it a non-empty list of text, image and file content? */
export function isContentList(value: unknown): value is readonly ToolContent[] {
  return isResultContent(value) && value.length > 0;
}

/** Is it the content of a result, which may be empty? */
export function isResultContent(value: unknown): value is readonly ToolContent[] {
  if (lackOfContent('tool', value)) return false;
  // All of it is journaled, including metadata.
  return lackOfJson({ content: value as readonly ToolContent[] }) === undefined;
}

export function freezeResult(result: ToolResult): ToolResult {
  freezeContent(result.content);
  if (result.details !== undefined) deepFreeze(result.details);
  return Object.freeze(result);
}

/** What `afterToolCall` changes of a result. */
export interface ToolResultPatch {
  readonly content?: string | readonly ToolContent[];
  /** `null` clears. */
  readonly details?: unknown;
  readonly isError?: boolean;
  readonly terminate?: boolean;
}

/** Applies a patch: `undefined` keeps a field, `null` clears `details`. */
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
