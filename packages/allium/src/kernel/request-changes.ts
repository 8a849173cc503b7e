/** Which middleware rewrote what of a request: found out at the innermost point, and only if something was rewritten. */

import { modelName } from './model.js';
import type { ModelContext, ModelMark } from './model-context.js';

/** Notes who rewrote the request of this call on its way in. A call that is tried again notes the same once. */
export function noteRewrites(ctx: ModelContext): void {
  const { given } = ctx._call;
  if (!isLike(ctx, given ?? ctx._run.request, given?.messages)) walk(ctx);
}

/** Nothing was assigned that is not in `other` as well. */
function isLike(
  ctx: ModelContext,
  other: Omit<ModelMark, 'messages'>,
  messages: ModelMark['messages'],
): boolean {
  return (
    ctx._messages === messages &&
    ctx.systemPrompt === other.systemPrompt &&
    ctx.tools === other.tools &&
    ctx.model === other.model &&
    ctx.settings === other.settings
  );
}

/** A transform of the request assigned to its context what it does not return. */
export function noteAssigned(ctx: ModelContext, before: ModelMark): void {
  if (!isLike(ctx, before, before.messages)) note(ctx, before, ctx._mark());
}

/** `next({ … })` wrote this context before anybody was handed it. */
export function noteOverride(ctx: ModelContext): void {
  ctx._call.overridden ??= new Map();
  ctx._call.overridden.set(ctx, ctx._mark());
}

/**
 * From the outermost layer inward. A context is a copy of the one around it, so what differs was assigned by the layer
 * it was handed to (the last of those that shared it: who writes gets one of its own), or by `next({ … })` further out.
 */
function walk(ctx: ModelContext): void {
  const { _outer: outer, _call: call } = ctx;
  if (outer) walk(outer);
  // Most layers change nothing, and there is nothing to compare in detail.
  if (outer && call.overridden === undefined && isLike(ctx, outer, outer._messages)) return;
  const { given } = call;
  if (!outer && isLike(ctx, given ?? ctx._run.request, given?.messages)) return;
  const before = outer?._mark() ?? given ?? requested(ctx._run.request);
  const overridden = call.overridden?.get(ctx);
  if (outer && overridden) note(outer, before, overridden);
  note(ctx, overridden ?? before, ctx._mark());
}

/** Written out: this is looked at in every turn in which the outermost layer sets something. */
function requested({ systemPrompt, tools, model, settings }: Omit<ModelMark, 'messages'>): ModelMark {
  return { systemPrompt, tools, model, settings, messages: undefined };
}

/** Written out for the same reason: a table of the five parts would cost several times as much. */
function note(ctx: ModelContext, before: ModelMark, after: ModelMark): void {
  const by = ctx._run.nameAt(ctx._position);
  if (by === undefined) return;
  if (before.messages !== after.messages && !isHistory(before, after, ctx))
    noteOnce(ctx, by, 'rewrote the messages of the request');
  if (before.systemPrompt !== after.systemPrompt)
    noteOnce(ctx, by, 'rewrote the system prompt of the request');
  if (before.tools !== after.tools) noteOnce(ctx, by, 'rewrote the tools of the request');
  // What stands in for a model goes by its name.
  if (before.model !== after.model && modelName(before.model) !== modelName(after.model))
    noteOnce(ctx, by, 'rewrote the model of the request');
  if (before.settings !== after.settings) noteOnce(ctx, by, 'rewrote the settings of the request');
}

/** The history, assigned as it is. */
function isHistory(
  before: ModelMark,
  after: ModelMark,
  { _run: run, _length: length }: ModelContext,
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
