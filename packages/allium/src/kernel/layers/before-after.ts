/** Layers made of `before` and `after` hooks. As long as all of them are sync, so is the layer: nothing is awaited. */

import type { LayerContext, ModelContext, ToolContext } from '../context/context.js';
import type { RequestParts } from '../context/model-context.js';
import type { ToolInput } from '../context/tool-context.js';
import { AlliumError, isThenable } from '../lib/errors.js';
import type { Layer } from '../protocol/plan.js';
import type { Attempt } from './attempt.js';
import { save, takeResult, undone, wrongReturn } from './layer.js';
import type { Onion } from './onion.js';

/** Runs consecutive pairs, from layer `start` on, around what is inside them. */
export function runPairs(
  onion: Onion,
  start: number,
  ctx: ModelContext | ToolContext,
  attempt: Attempt | undefined,
): Promise<unknown> | unknown {
  const pairs = new Pairs(onion, start, ctx);
  if (attempt === undefined) return pairs.goIn();
  try {
    return attempt.settledBy(pairs.goIn());
  } catch (error) {
    return attempt.rejected(error);
  }
}

/**
 * Pairs share a context as long as nobody writes to it: the first that does is the last of its group, the next one gets
 * a fork, and what it wrote is taken back before outer hooks go on.
 */
class Pairs {
  private group: Group;
  /** The layer under way, first going in, then going out. */
  private at: number;
  /** The first layer further in. */
  private inner: number;
  private preset = false;
  private result: unknown = undefined;

  constructor(
    private readonly onion: Onion,
    private readonly start: number,
    outer: ModelContext | ToolContext,
  ) {
    this.group = new Group(start, outer, undefined);
    this.at = start;
    this.inner = start;
  }

  goIn(): Promise<unknown> | unknown {
    const { start } = this;
    const { layers } = this.onion;
    // A hook that waited may have been overtaken by the end of the run.
    if (this.at > start && !this.preset) this.group.ctx._checkBegin();
    for (let layer = layers[this.at]; layer?.kind === 'pair' && !this.preset; layer = layers[++this.at]) {
      // What was assigned is judged on the way in to a sink.
      if (layer.sink && this.at > start && this.group.ctx._run.judgements.hides(this.group.ctx)) break;
      if (this.at > start && this.group.written)
        this.group = new Group(this.at, this.group.ctx._fork(), this.group);
      const { ctx } = this.group;
      ctx._position = layer.position;
      if (layer.before === undefined) continue;
      const answer = runHook(layer, ctx, false);
      if (typeof answer !== 'boolean')
        return answer.then((preset) => {
          this.preset = preset;
          this.at++;
          return this.goIn();
        });
      this.preset = answer;
    }
    this.inner = this.at--;
    return this.preset ? this.goOut(this.group.ctx.result) : this.inside();
  }

  private inside(): Promise<unknown> | unknown {
    const { onion, inner } = this;
    const { ctx } = this.group;
    // A layer further in forks for itself; `final` reads this context but does not write to it.
    const fork = inner < onion.layers.length ? ctx._fork() : ctx;
    let work: Promise<unknown> | unknown;
    try {
      work = onion.enter(inner, fork, undefined);
    } catch (error) {
      this.failed(fork, error);
    }
    if (!isThenable(work)) return this.cameOut(fork, work);
    return work.then(
      (result) => this.cameOut(fork, result),
      (error) => this.failed(fork, error),
    );
  }

  /** What was written further in goes on outward with the error. */
  private failed(fork: ModelContext | ToolContext, error: unknown): never {
    this.group.ctx._adoptFailed(fork);
    for (let { group } = this; group.outer !== undefined; group = group.outer)
      group.outer.ctx._adoptFailed(group.ctx);
    throw error;
  }

  private cameOut(fork: ModelContext | ToolContext, result: unknown): Promise<unknown> | unknown {
    const { ctx } = this.group;
    if (fork !== ctx) ctx._adopt(fork as never);
    return this.goOut(result);
  }

  private goOut(given: unknown): Promise<unknown> | unknown {
    this.result = given;
    for (; this.at >= this.start; this.at--) {
      const layer = this.onion.layers[this.at]!;
      this.leaveGroup();
      const { ctx } = this.group;
      // A preset is its layer's own.
      if (!this.preset || this.at < this.inner - 1) {
        const seen = seenBy(layer, ctx, this.result);
        if (isThenable(seen)) return this.goOutLater(layer, seen);
        ctx.result = seen as never;
      }
      const wait = layer.after === undefined ? false : runHook(layer, ctx, true);
      if (typeof wait !== 'boolean')
        return wait.then(() => {
          this.at--;
          return this.goOut(ctx.result);
        });
      this.result = ctx.result;
    }
    return this.result;
  }

  private async goOutLater(layer: Layer, seen: PromiseLike<unknown>): Promise<unknown> {
    const { ctx } = this.group;
    ctx.result = (await seen) as never;
    if (layer.after !== undefined) await runHook(layer, ctx, true);
    this.at--;
    return this.goOut(ctx.result);
  }

  /** The context of the next layer further out. */
  private leaveGroup(): void {
    const { group, at } = this;
    if (at < group.first) {
      this.group = group.outer!;
      this.group.ctx._adopt(group.ctx as never);
    } else if (at < this.inner - 1 && group.written) group.ctx._takeBack(group.before as never);
  }
}

/** Pairs that share a context, from layer `first` on, and what it was when they began. */
class Group {
  readonly before: RequestParts | ToolInput;

  constructor(
    readonly first: number,
    readonly ctx: ModelContext | ToolContext,
    readonly outer: Group | undefined,
  ) {
    this.before = ctx._mark();
  }

  get written(): boolean {
    return this.ctx._isWritten(this.before as never);
  }
}

/** Calls a hook of a pair. True when a `before` answered the call itself, or an `after` replaced the result. */
export function runHook(layer: Layer, ctx: LayerContext, isAfter: boolean): boolean | Promise<boolean> {
  // What ran inside may have borrowed this context.
  ctx._position = layer.position;
  const undo = save(layer, ctx);
  const before = ctx.result;
  try {
    const answer = isAfter ? layer.after!(ctx) : layer.before!(ctx);
    if (isThenable(answer)) return awaitHook(layer, ctx, isAfter, answer, before, undo);
    return hasAnswered(layer, ctx, isAfter, answer, before);
  } catch (error) {
    undone(layer, hookOf(layer, isAfter), error, ctx, undo);
    return false;
  }
}

async function awaitHook(
  layer: Layer,
  ctx: LayerContext,
  isAfter: boolean,
  answer: PromiseLike<unknown>,
  before: unknown,
  undo: (() => void) | undefined,
): Promise<boolean> {
  try {
    return hasAnswered(layer, ctx, isAfter, await answer, before);
  } catch (error) {
    undone(layer, hookOf(layer, isAfter), error, ctx, undo);
    return false;
  }
}

function hasAnswered(
  layer: Layer,
  ctx: LayerContext,
  isAfter: boolean,
  returned: unknown,
  before: unknown,
): boolean {
  if (returned !== undefined) throw wrongReturn(layer, hookOf(layer, isAfter), returned);
  ctx._call.check();
  if (isAfter ? ctx.result === before : !isPreset(layer, ctx)) return false;
  takeResult(layer, hookOf(layer, isAfter), ctx);
  const { seam } = ctx;
  ctx._run.note(layer.name, isAfter ? `replaced the ${seam} result` : `answered the ${seam} call itself`);
  return true;
}

function hookOf({ hooks }: Layer, isAfter: boolean): string {
  return isAfter ? hooks.at(-1)! : hooks[0]!;
}

/** Did a `before` hook answer the call itself? Around a tool `skip` says so; a result alone would be lost. */
function isPreset(layer: Layer, ctx: LayerContext): boolean {
  if (ctx.seam !== 'tool') return ctx.result !== undefined;
  if (ctx.result !== undefined && !ctx.skip)
    throw new AlliumError(
      'INVALID_HOOK_RESULT',
      `${layer.hooks[0]} of "${layer.name}" set ctx.result without ctx.skip, so the tool would run all the same. Set ctx.skip = true to answer without it, or change the result in afterTool.`,
    );
  return ctx.skip;
}

/** What comes in to a layer: through its transforms and, for a sink, through the guards. */
function seenBy(layer: Layer, ctx: LayerContext, result: unknown): Promise<unknown> | unknown {
  if (!layer.sink && (ctx.seam !== 'model' || ctx._transforms === undefined)) return result;
  return ctx._run.judgements.view(ctx, result, layer.sink);
}
