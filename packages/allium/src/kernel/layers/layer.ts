/** One layer of the onion, and what all kinds of layers share: who is blamed for a failure, and how it is undone. */

import type { Context, LayerContext, ModelContext } from '../context/context.js';
import { safeErrorMessage } from '../guards/guards.js';
import { AlliumError, type Attribution, isRecord, shown } from '../lib/errors.js';
import { lackOf, lackOfMessages } from '../messages/message-input.js';
import { deepFreeze } from '../messages/messages.js';
import { asToolResult } from '../messages/tool-result.js';
import type { Layer } from '../protocol/plan.js';
import type { RunResult } from '../protocol/result.js';
import { isControl } from '../protocol/signals.js';
import { STOP_REASONS } from '../protocol/stop.js';
import type { Awaitable } from '../protocol/store.js';

/** The layers of a seam, as one of them uses them to call those further in. */
export interface Inward {
  readonly layers: readonly Layer[];
  /** Calls layer `i`. Returns its result, which is also in `ctx.result`, or throws. */
  enter(i: number, ctx: LayerContext): Awaitable<unknown>;
}

/** A hook failed. Undoes what it assigned and returns if it fails open; otherwise throws its error. */
export function undone(
  layer: Layer,
  hook: string,
  error: unknown,
  ctx: LayerContext,
  undo: (() => void) | undefined,
  more?: Partial<Attribution>,
): void {
  ctx._call.check();
  if (undo === undefined || isControl(error)) throw ctx._blame(layer.name, hook, error, more);
  undo();
  ctx._run.note(layer.name, `${hook} failed and was skipped: ${safeErrorMessage(error, ctx)}`);
}

/** Remembers what a hook may assign; the returned function puts it back. Undefined for layers that fail closed. */
export function save({ open }: Pick<Layer, 'open'>, ctx: Context): (() => void) | undefined {
  if (!open) return undefined;
  const fields: Partial<Context> = ctx.seam === 'model' ? assignable(ctx as ModelContext) : { ...ctx };
  const extra = ctx._extra?.mark();
  const { _run: run } = ctx;
  // Hooks of a turn may set the output. Other hooks may have a whole turn inside them, whose output must stay.
  const output = 'setOutput' in ctx ? { output: run.output } : undefined;
  return () => {
    const { _extra: now } = ctx;
    Object.assign(ctx, fields);
    if (output) run.output = output.output;
    ctx._extra = extra ? extra() : now?.undone();
  };
}

/**
 * The fields of a model context that can change. Listed, because some layers save them around every call, and
 * spreading all of them costs more.
 */
function assignable(ctx: ModelContext): Partial<ModelContext> {
  return {
    _request: ctx._request,
    attempt: ctx.attempt,
    forceContinue: ctx.forceContinue,
    response: ctx.response,
    _inner: ctx._inner,
    _position: ctx._position,
    _scope: ctx._scope,
  };
}

/** Checks, normalises and freezes a result that a layer made itself. */
export function takeResult({ name }: Pick<Layer, 'name'>, hook: string, ctx: LayerContext): void {
  const problem = badResult(ctx);
  if (problem) throw new AlliumError('INVALID_HOOK_RESULT', `${hook} of "${name}": ${problem}`);
  if (ctx.seam === 'tool') ctx.result = asToolResult(ctx.result);
  if (ctx.seam === 'run') Object.freeze(ctx.result);
  else deepFreeze(ctx.result);
}

/** What is wrong with a result that a layer set, if anything. */
function badResult(ctx: LayerContext): string | undefined {
  const { result } = ctx;
  if (result === undefined) return 'it left no result.';
  if ((result as unknown) === ctx) return 'it returned its context. Return a result, or nothing.';
  if (ctx.seam === 'tool') return undefined;
  if (ctx.seam === 'model') {
    const wanted = lackOf(result, 'assistant');
    return wanted && `expected ${wanted}, got ${shown(result)}. assistantMessage(text) makes a response.`;
  }
  const { status } = (result ?? {}) as { readonly status?: unknown };
  if (status === 'error' || status === 'aborted')
    return `it set a result with the status "${status}". To fail a run, throw an error.`;
  if (status !== 'done' && status !== 'stopped' && status !== 'suspended')
    return `expected a run result, got ${shown(result)}. Spread the one next() returned.`;
  const wrong = wrongInResult(result as RunResult);
  if (wrong.length === 0) return undefined;
  return `expected a whole run result, got ${shown(result)}, which lacks a valid ${wrong.join(', ')}. Spread the one next() returned, or give all of them.`;
}

export function wrongReturn(layer: Layer, hook: string, returned: unknown): AlliumError {
  return new AlliumError(
    'INVALID_HOOK_RESULT',
    `${hook} of "${layer.name}" returned ${shown(returned)}; it returns nothing. Assign to the context instead.`,
  );
}

/** A result as a layer sees it: after its transforms and, for a sink, after the guards. */
export function seenBy(layer: Layer, ctx: LayerContext, result: unknown): Awaitable<unknown> {
  if (!layer.sink && (ctx.seam !== 'model' || ctx._transforms === undefined)) return result;
  return ctx._run.judgements.view(ctx, result, layer.sink);
}

export function ignore(): void {}

/** What a run result needs, so that its end can be written and read. */
const RESULT: Readonly<Record<string, (value: any) => boolean>> = {
  stop: (stop) => isRecord(stop) && STOP_REASONS.has(stop.reason as string),
  text: isText,
  messages: (messages) => lackOfMessages(messages) === undefined,
  usage: (usage) => isRecord(usage) && typeof usage.totalTokens === 'number',
  turns: Number.isInteger,
  pending: Array.isArray,
  queued: Array.isArray,
  changes: Array.isArray,
  runId: isText,
  sessionId: isText,
};

/** Fields that are missing in a run result, or wrong. */
function wrongInResult(result: RunResult): readonly string[] {
  return Object.keys(RESULT).filter((field) => !RESULT[field]!(result[field as keyof RunResult]));
}

function isText(value: unknown): boolean {
  return typeof value === 'string';
}
