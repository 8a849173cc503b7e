/** The onion. A middleware is compiled into up to four primitive layers: process, a before/after pair, wrap, and its catch. */
import { type Attempt, runWrap } from './attempts.js';
import type { ModelContext, ModelMark, RunContext, ToolContext, ToolMark } from './context.js';
import { AlliumError, isControl, isThenable, messageOf } from './errors.js';
import {
  ignore,
  isPreset,
  type Layer,
  type LayerContext,
  owned,
  save,
  takeResult,
  undone,
  wrongReturn,
} from './layer.js';
import { runCatch } from './on-error.js';
import { Scope, untilAborted } from './scope.js';

/** What is inside all layers. Given an attempt, it may settle it itself and return what came of that. */
type Final = (ctx: any, attempt: Attempt | undefined) => Promise<unknown> | unknown;

/** Runs `final` inside the layers from index `i` on; resolves with the result, which is also in `ctx.result`. */
export function enter(
  layers: readonly Layer[],
  i: number,
  ctx: LayerContext,
  final: Final,
): Promise<unknown> | unknown {
  return new Onion(layers, final).enter(i, ctx, undefined);
}

/** The layers of one call and what is inside them. */
export class Onion {
  constructor(
    readonly layers: readonly Layer[],
    readonly final: Final,
  ) {}

  /** Goes in at layer `i`; what comes out is the attempt's, if one is given. */
  enter(i: number, ctx: LayerContext, attempt: Attempt | undefined): Promise<unknown> | unknown {
    const layer = this.layers[i];
    if (layer === undefined)
      return attempt === undefined ? this.final(ctx, undefined) : runFinal(this, ctx, attempt);
    ctx._position = layer.position;
    if (layer.kind === 'wrap') return runWrap(this, layer, i, ctx, attempt);
    if (layer.kind === 'catch') return runCatch(this, layer, i, ctx, attempt);
    return ctx.seam === 'run' ? aroundRun(this, layer, i, ctx, attempt) : runPairs(this, i, ctx, attempt);
  }
}

function runFinal(onion: Onion, ctx: LayerContext, attempt: Attempt): Promise<unknown> {
  try {
    const work = onion.final(ctx, attempt);
    // The model settles the attempt itself.
    if (ctx.seam === 'model') return work as Promise<unknown>;
    // An answer that is there at once must not hide that somebody forgot to await it.
    const later = isThenable(work) ? work : AT_ONCE.then(ignore);
    return later.then(
      (value) => attempt.completed(isThenable(work) ? value : work),
      (error) => attempt.failed(error),
    ) as Promise<unknown>;
  } catch (error) {
    return attempt.rejected(error);
  }
}

const AT_ONCE = Promise.resolve();

/**
 * Consecutive before/after pairs share one await, and one context as long as nobody writes to it: the first pair that
 * does is the last of its group, the next one gets a fork, and what it wrote is taken back before outer hooks go on.
 */
async function runPairs(
  onion: Onion,
  start: number,
  outer: ModelContext | ToolContext,
  attempt: Attempt | undefined,
): Promise<unknown> {
  try {
    const { layers } = onion;
    let group = new Group(start, outer, undefined);
    let i = start;
    let preset = false;
    for (let layer = layers[i]; layer?.kind === 'pair' && !preset; layer = layers[++i]) {
      if (i > start && group.written) group = new Group(i, group.ctx._fork(), group);
      group.ctx._position = layer.position;
      if (layer.before === undefined) continue;
      const answer = runBefore(layer, group.ctx);
      preset = typeof answer === 'boolean' ? answer : await answer;
    }
    let { ctx } = group;
    let result: unknown = ctx.result;
    if (!preset) {
      // A layer further in forks for itself; `final` reads this context but does not write to it.
      const inner = i < layers.length ? ctx._fork() : ctx;
      const work = onion.enter(i, inner, undefined);
      result = isThenable(work) ? await work : work;
      if (inner !== ctx) ctx._adopt(inner as never);
    }
    for (let k = i - 1; k >= start; k--) {
      const layer = layers[k]!;
      if (k < group.first) {
        group = group.outer!;
        group.ctx._adopt(ctx as never);
        ctx = group.ctx;
      } else if (k < i - 1 && group.written) ctx._takeBack(group.before as never);
      // A preset is its layer's own.
      if (!preset || k < i - 1) {
        const seen = seenBy(layer, ctx, result);
        ctx.result = (isThenable(seen) ? await seen : seen) as never;
      }
      if (layer.after !== undefined) {
        const wait = runAfter(layer, ctx);
        if (wait !== undefined) await wait;
      }
      result = ctx.result;
    }
    return attempt === undefined ? result : attempt.succeed(result);
  } catch (error) {
    throw attempt === undefined ? error : attempt.fail(error);
  }
}

/** Pairs that share a context, from layer `first` on, and what it was when they began. */
class Group {
  readonly before: ModelMark | ToolMark;

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

/** Calls a `before` hook; true when it answered the call itself. */
function runBefore(layer: Layer, ctx: LayerContext): boolean | Promise<boolean> {
  const undo = save(layer, ctx);
  try {
    const answer = layer.before!(ctx);
    return isThenable(answer) ? awaitBefore(layer, ctx, answer, undo) : isAnswered(layer, ctx, answer);
  } catch (error) {
    undone(layer, layer.hooks[0]!, error, ctx, undo);
    return false;
  }
}

async function awaitBefore(
  layer: Layer,
  ctx: LayerContext,
  answer: PromiseLike<unknown>,
  undo: (() => void) | undefined,
): Promise<boolean> {
  try {
    return isAnswered(layer, ctx, await answer);
  } catch (error) {
    undone(layer, layer.hooks[0]!, error, ctx, undo);
    return false;
  }
}

function isAnswered(layer: Layer, ctx: LayerContext, returned: unknown): boolean {
  if (returned !== undefined) throw wrongReturn(layer, layer.hooks[0]!, returned);
  ctx._call.check();
  if (!isPreset(layer, ctx)) return false;
  takeResult(layer, layer.hooks[0]!, ctx);
  ctx._run.note(layer.name, `answered the ${ctx.seam} call itself`);
  return true;
}

/** Calls an `after` hook, which may replace the result. */
function runAfter(layer: Layer, ctx: LayerContext): Promise<void> | undefined {
  // What ran inside may have borrowed this context.
  ctx._position = layer.position;
  const undo = save(layer, ctx);
  const before = ctx.result;
  try {
    const answer = layer.after!(ctx);
    if (isThenable(answer)) return awaitAfter(layer, ctx, answer, before, undo);
    checkReplaced(layer, ctx, answer, before);
  } catch (error) {
    undone(layer, layer.hooks.at(-1)!, error, ctx, undo);
  }
  return undefined;
}

async function awaitAfter(
  layer: Layer,
  ctx: LayerContext,
  answer: PromiseLike<unknown>,
  before: unknown,
  undo: (() => void) | undefined,
): Promise<void> {
  try {
    checkReplaced(layer, ctx, await answer, before);
  } catch (error) {
    undone(layer, layer.hooks.at(-1)!, error, ctx, undo);
  }
}

function checkReplaced(layer: Layer, ctx: LayerContext, returned: unknown, before: unknown): void {
  if (returned !== undefined) throw wrongReturn(layer, layer.hooks.at(-1)!, returned);
  ctx._call.check();
  if (ctx.result === before) return;
  takeResult(layer, layer.hooks.at(-1)!, ctx);
  ctx._run.note(layer.name, `replaced the ${ctx.seam} result`);
}

/** What comes in to a layer: through its transforms and, for a sink, through the guards. */
function seenBy(layer: Layer, ctx: LayerContext, result: unknown): Promise<unknown> | unknown {
  if (!layer.sink && (ctx.seam !== 'model' || ctx._transforms === undefined)) return result;
  return ctx._run.view(ctx, result, layer.sink);
}

/** `afterRun` always follows `beforeRun`, also when the run failed. */
async function aroundRun(
  onion: Onion,
  layer: Layer,
  i: number,
  ctx: RunContext,
  attempt: Attempt | undefined,
): Promise<unknown> {
  let failure: { readonly error: unknown } | undefined;
  let inner: RunContext | undefined;
  try {
    const preset = layer.before !== undefined && (await runBefore(layer, ctx));
    if (!preset) {
      inner = ctx._fork();
      ctx.result = (await onion.enter(i + 1, inner, undefined)) as never;
      ctx._adopt(inner);
    }
  } catch (error) {
    // A run happens once: what its layers wrote holds, also when it failed.
    if (inner) ctx._adopt(inner);
    failure = { error };
    ctx.result = undefined;
    ctx.error = error;
  }
  if (layer.after !== undefined) failure = await tearDown(layer, ctx, failure);
  if (failure) throw attempt === undefined ? failure.error : attempt.fail(failure.error);
  return attempt === undefined ? ctx.result : attempt.succeed(ctx.result);
}

/** `afterRun` has a signal and a time of its own. A failing one must not hide why the run failed. */
async function tearDown(
  layer: Layer,
  ctx: RunContext,
  failure: { readonly error: unknown } | undefined,
): Promise<typeof failure> {
  const hook = layer.hooks.at(-1)!;
  const { clock, agent } = ctx._run;
  const undo = save(layer, ctx);
  const before = ctx.result;
  const scope = new Scope();
  ctx._scope = scope;
  const late = new AlliumError(
    'MIDDLEWARE_ERROR',
    `${hook} of "${layer.name}" took longer than ${agent.teardownTimeoutMs} ms.`,
  );
  const cancel = clock.setTimer(() => scope.abort(late), agent.teardownTimeoutMs);
  try {
    const answer = layer.after!(ctx);
    const returned = isThenable(answer) ? await untilAborted(answer, scope) : answer;
    if (returned !== undefined) throw wrongReturn(layer, hook, returned);
    if (ctx.result !== before && !failure) takeResult(layer, hook, ctx);
    return failure;
  } catch (error) {
    if (failure || (undo && !isControl(error))) {
      undo?.();
      ctx._run.note(layer.name, `${hook} failed: ${messageOf(error)}`);
      return failure;
    }
    return { error: owned(layer, hook, error, ctx) };
  } finally {
    cancel();
    scope.close();
  }
}
