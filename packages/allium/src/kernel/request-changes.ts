/** Which layer rewrote what of a request: found out at the innermost point, and only if something was rewritten. */
import type { ModelContext, ModelMark } from './context.js';
import { modelName } from './model.js';

/** What of a request layers may assign, and how it is called in `result.changes`. */
const PARTS = [
  ['messages', 'messages'],
  ['systemPrompt', 'system prompt'],
  ['tools', 'tools'],
  ['model', 'model'],
  ['settings', 'settings'],
] as const satisfies readonly (readonly [keyof ModelMark, string])[];

/** Notes who rewrote the request of this call on its way in. A call that is tried again notes the same once. */
export function noteRewrites(ctx: ModelContext): void {
  const { request } = ctx._run;
  const given = ctx._call.given ?? request;
  const same =
    ctx._messages === ctx._call.given?.messages &&
    ctx.systemPrompt === given.systemPrompt &&
    ctx.tools === given.tools &&
    ctx.model === given.model &&
    ctx.settings === given.settings;
  if (!same) walk(ctx);
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
  const before = outer?._mark() ?? call.given ?? { ...ctx._run.request, messages: undefined };
  const overridden = call.overridden?.get(ctx);
  if (outer && overridden) note(outer, before, overridden);
  note(ctx, overridden ?? before, ctx._mark());
}

function note(ctx: ModelContext, before: ModelMark, after: ModelMark): void {
  const run = ctx._run;
  const by = run.nameAt(ctx._position);
  if (by === undefined) return;
  for (const [part, called] of PARTS) {
    if (before[part] === after[part] || isSame[part]?.(before, after, ctx)) continue;
    const what = `rewrote the ${called} of the request`;
    const key = `${by}\n${what}`;
    ctx._call.rewrites ??= new Set();
    if (ctx._call.rewrites.has(key)) continue;
    ctx._call.rewrites.add(key);
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
