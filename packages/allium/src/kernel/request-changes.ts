/** Which layer rewrote what of a request: found out at the innermost point, and only if something was rewritten. */

import { modelName } from './model.js';
import type { ModelContext, ModelMark } from './model-context.js';

/** What of a request layers may assign, and what `result.changes` says of it. */
const PARTS = [
  ['messages', 'rewrote the messages of the request'],
  ['systemPrompt', 'rewrote the system prompt of the request'],
  ['tools', 'rewrote the tools of the request'],
  ['model', 'rewrote the model of the request'],
  ['settings', 'rewrote the settings of the request'],
] as const satisfies readonly (readonly [keyof ModelMark, string])[];

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

function note(ctx: ModelContext, before: ModelMark, after: ModelMark): void {
  const run = ctx._run;
  const by = run.nameAt(ctx._position);
  if (by === undefined) return;
  for (const [part, what] of PARTS) {
    if (before[part] === after[part] || isSame[part]?.(before, after, ctx)) continue;
    ctx._call.rewrites ??= [];
    const { rewrites } = ctx._call;
    if (rewrites.some((one) => one.by === by && one.what === what)) continue;
    rewrites.push({ by, what });
    run.note(by, what);
  }
}

/** Other objects that make no other request. */
const isSame: Partial<
  Record<keyof ModelMark, (before: ModelMark, after: ModelMark, ctx: ModelContext) => boolean>
> = {
  // The history, assigned as it is.
  messages: (before, after, ctx) =>
    before.messages === undefined && after.messages === ctx._run.history.first(ctx._length),
  // What stands in for a model goes by its name.
  model: (before, after) => modelName(before.model) === modelName(after.model),
};
