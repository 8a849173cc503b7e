/** Layers made of `before` and `after` hooks. */

import type { LayerContext, ModelContext, ToolContext } from '../context/context.js';
import { AlliumError, isThenable } from '../lib/errors.js';
import type { Layer } from '../protocol/plan.js';
import type { Awaitable } from '../protocol/store.js';
import { type Inward, save, seenBy, takeResult, undone, wrongReturn } from './layer.js';

/** Runs consecutive pairs, from layer `start` on, around what is inside them. Waits only for hooks that wait. */
export async function runPairs(
  onion: Inward,
  start: number,
  outer: ModelContext | ToolContext,
): Promise<unknown> {
  const { layers } = onion;
  /** One for each pair, from the outside in. The last one may belong to the layers further in. */
  const contexts = [outer];
  let ctx = outer;
  let preset = false;
  let inner = start;
  try {
    for (; layers[inner]?.kind === 'pair' && !preset; inner++) {
      const layer = layers[inner]!;
      if (inner > start) {
        // Before a sink, assigned arguments are judged: the onion does that.
        if (layer.sink && ctx._run.judgements.hasUnjudgedArguments(ctx)) break;
        ctx = ctx._fork();
        contexts.push(ctx);
      }
      const answer = layer.before !== undefined && runHook(layer, ctx, 'before');
      if (typeof answer === 'boolean') preset = answer;
      else {
        preset = await answer;
        // The run may have ended while the hook waited.
        if (!preset) ctx._checkBegin();
      }
    }
    let result: unknown = ctx.result;
    if (!preset) {
      // The innermost call only reads its context, so it needs no fork.
      if (inner < layers.length) contexts.push(ctx._fork());
      const work = onion.enter(inner, contexts.at(-1)!);
      result = isThenable(work) ? await work : work;
    }
    for (let at = inner - 1; at >= start; at--) {
      const layer = layers[at]!;
      const isPreset = preset && at === inner - 1;
      ctx = contexts[at - start]!;
      while (contexts.length > at - start + 1) ctx._adopt(contexts.pop() as never);
      if (!isPreset) {
        const seen = seenBy(layer, ctx, result);
        ctx.result = (isThenable(seen) ? await seen : seen) as never;
      }
      const wait = layer.after !== undefined && runHook(layer, ctx, 'after');
      if (typeof wait !== 'boolean') await wait;
      result = ctx.result;
    }
    return result;
  } catch (error) {
    // What was written to cells goes outward with the error.
    for (let i = contexts.length - 1; i > 0; i--) contexts[i - 1]!._adoptFailed(contexts[i]!);
    throw error;
  }
}

/** Calls a hook of a pair. True: a `before` answered the call itself, or an `after` replaced the result. */
export function runHook(layer: Layer, ctx: LayerContext, which: 'before' | 'after'): Awaitable<boolean> {
  // Code further in may have used this context under another position.
  ctx._position = layer.position;
  const undo = save(layer, ctx);
  const before = ctx.result;
  try {
    const returned = layer[which]!(ctx);
    if (isThenable(returned)) return awaitHook(layer, ctx, which, returned, before, undo);
    return hasAnswered(layer, ctx, which, returned, before);
  } catch (error) {
    undone(layer, hookOf(layer, which), error, ctx, undo);
    return false;
  }
}

async function awaitHook(
  layer: Layer,
  ctx: LayerContext,
  which: 'before' | 'after',
  returned: PromiseLike<unknown>,
  before: unknown,
  undo: (() => void) | undefined,
): Promise<boolean> {
  try {
    return hasAnswered(layer, ctx, which, await returned, before);
  } catch (error) {
    undone(layer, hookOf(layer, which), error, ctx, undo);
    return false;
  }
}

function hasAnswered(
  layer: Layer,
  ctx: LayerContext,
  which: 'before' | 'after',
  returned: unknown,
  before: unknown,
): boolean {
  const hook = hookOf(layer, which);
  if (returned !== undefined) throw wrongReturn(layer, hook, returned);
  ctx._call.check();
  if (which === 'after' ? ctx.result === before : !isPreset(layer, ctx)) return false;
  takeResult(layer, hook, ctx);
  const { seam } = ctx;
  const what = which === 'after' ? `replaced the ${seam} result` : `answered the ${seam} call itself`;
  ctx._run.note(layer.name, what);
  return true;
}

function hookOf({ hooks }: Layer, which: 'before' | 'after'): string {
  return which === 'after' ? hooks.at(-1)! : hooks[0]!;
}

/** Did a `before` hook answer the call itself? Around a tool `skip` says so; a result alone would be lost. */
function isPreset(layer: Layer, ctx: LayerContext): boolean {
  if (ctx.seam !== 'tool') return ctx.result !== undefined;
  if (ctx.result !== undefined && !ctx.skip)
    throw new AlliumError(
      'INVALID_HOOK_RESULT',
      `${layer.hooks[0]} of "${layer.name}" set ctx.result without ctx.skip, so the tool would still run. Set ctx.skip = true to answer without running it, or change the result in afterTool.`,
    );
  return ctx.skip;
}
