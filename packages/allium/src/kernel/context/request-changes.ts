/** Finds which middleware rewrote which part of a request: at the innermost point, and only if one did. */

import type { Attribution } from '../lib/errors.js';
import { modelName } from '../messages/model.js';
import type { ModelContext } from './model-context.js';
import type { RequestParts } from './run-port.js';

/** A transform assigned parts of the request to its context, besides what it returns. */
export function noteAssigned(ctx: ModelContext, before: RequestParts, hook: string): void {
  // `convertToLlm` sends the messages it returns, whatever it assigns.
  const { messages } = hook === 'convertToLlm' ? ctx._request : before;
  note(ctx, { ...before, messages }, ctx._request);
}

/** `next({ … })` wrote this context before any layer had it. */
export function noteOverride(ctx: ModelContext): void {
  ctx._call.overridden ??= new Map();
  ctx._call.overridden.set(ctx, ctx._request);
}

/**
 * Notes who rewrote the request on its way in. A retried call notes each change once. Goes from the outermost layer inward. Each context is a copy of the one around it, so a difference was assigned by its
 * layer (the last of those that shared it, because a writer gets its own copy), or by `next({ … })` further out.
 */
export function noteRewrites(ctx: ModelContext): void {
  const { _outer: outer, _call: call } = ctx;
  if (outer) noteRewrites(outer);
  const before = outer ? outer._request : (call.given ?? ctx._run.request);
  // Most layers change nothing.
  if (call.overridden === undefined && ctx._request === before) return;
  const overridden = call.overridden?.get(ctx);
  if (outer && overridden) note(outer, before, overridden);
  note(ctx, overridden ?? before, ctx._request);
}

/** Who made the request invalid: the last layer that was given a valid one. Only asked once there is an error. */
export function authorOf(
  ctx: ModelContext,
  isWrong: (request: RequestParts) => boolean,
): Attribution | undefined {
  const { _outer: outer, _call: call } = ctx;
  const before = outer ? outer._request : (call.given ?? ctx._run.request);
  if (isWrong(before)) return outer && authorOf(outer, isWrong);
  const overridden = call.overridden?.get(ctx);
  return writerOf(outer && overridden && isWrong(overridden) ? outer : ctx);
}

/** The layers of a middleware follow each other, and each has its own context. */
function writerOf({ _run: run, _position: position, _outer }: ModelContext): Attribution | undefined {
  const middleware = run.nameAt(position);
  if (middleware === undefined) return undefined;
  let index = 0;
  for (let outer = _outer; outer?._position === position; outer = outer._outer) index++;
  const layers = run.plan.layers.model.filter((layer) => layer.position === position);
  return { middleware, hook: layers[index]!.hooks[0]! };
}

/** Written out because some stacks rewrite every request: a table of the five parts costs several times as much. */
function note(ctx: ModelContext, before: RequestParts, after: RequestParts): void {
  const by = ctx._run.nameAt(ctx._position);
  if (by === undefined) return;
  if (before.messages !== after.messages && !isHistory(before, after, ctx))
    noteOnce(ctx, by, 'rewrote the messages of the request');
  if (before.systemPrompt !== after.systemPrompt)
    noteOnce(ctx, by, 'rewrote the system prompt of the request');
  if (before.tools !== after.tools) noteOnce(ctx, by, 'rewrote the tools of the request');
  // A stand-in for a model has the same name.
  if (before.model !== after.model && modelName(before.model) !== modelName(after.model))
    noteOnce(ctx, by, 'rewrote the model of the request');
  if (before.settings !== after.settings) noteOnce(ctx, by, 'rewrote the settings of the request');
}

/** Somebody assigned the history, unchanged. */
function isHistory(
  before: RequestParts,
  after: RequestParts,
  { _run: run, _call: { length } }: ModelContext,
): boolean {
  return before.messages === undefined && after.messages === run.history.first(length);
}

function noteOnce({ _run: run, _call: call }: ModelContext, by: string, what: string): void {
  const noted = { by, what };
  if (call.rewrites === undefined) call.rewrites = [noted];
  else {
    if (call.rewrites.some((one) => one.by === by && one.what === what)) return;
    call.rewrites.push(noted);
  }
  run.note(by, what);
}
