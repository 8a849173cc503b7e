/** The onion. A middleware is compiled into up to three primitive layers: process, a before/after pair, and wrap with its catch. */
import type { Context, ModelContext, RunContext, ToolContext } from './context.js';
import { AlliumError, attribute, attribution, checkKeys, isControl, isThenable, messageOf, RestartTurn, shown } from './errors.js';
import type { Middleware, Seam } from './middleware.js';
import { Scope, untilAborted } from './scope.js';

type LayerContext = ModelContext | ToolContext | RunContext;
type Final = (ctx: any) => Promise<unknown> | unknown;

/** One primitive layer, bound to its middleware. */
export interface Layer {
  readonly kind: 'wrap' | 'pair' | 'catch';
  readonly position: number;
  readonly name: string;
  readonly middleware: Middleware;
  /** Member names, for attribution. */
  readonly hook: string;
  readonly wrap?: (ctx: any, next: (override?: any) => Promise<any>) => unknown;
  readonly before?: (ctx: any) => unknown;
  readonly after?: (ctx: any) => unknown;
  readonly onError?: (ctx: any, error: unknown) => unknown;
}

const MAX_INWARD = 100;
const OVERRIDES: Record<Seam, readonly string[]> = {
  run: [],
  model: ['messages', 'systemPrompt', 'tools', 'model', 'settings'],
  tool: ['args', 'timeoutMs'],
};

/** Runs `final` inside the layers from index `i` on; resolves with the result, which is also in `ctx.result`. */
export function enter(layers: readonly Layer[], i: number, ctx: LayerContext, final: Final): Promise<unknown> | unknown {
  const layer = layers[i];
  if (layer === undefined) return final(ctx);
  ctx._position = layer.position;
  if (layer.kind === 'pair') return ctx.seam === 'run' ? aroundRun(layers, layer, i, ctx, final) : runPairs(layers, i, ctx, final);
  return layer.kind === 'wrap' ? runWrap(layers, layer, i, ctx, final) : runCatch(layers, layer, i, ctx, final);
}

/** Consecutive before/after pairs share one await: sync hooks cost no more than their calls. */
async function runPairs(layers: readonly Layer[], start: number, outer: LayerContext, final: Final): Promise<unknown> {
  const contexts: LayerContext[] = [];
  let ctx = outer;
  let i = start;
  let preset = false;
  for (let layer = layers[i]; layer?.kind === 'pair' && !preset; layer = layers[++i]) {
    if (i > start) ctx = ctx._fork();
    ctx._position = layer.position;
    contexts.push(ctx);
    if (layer.before) {
      const undo = layer.middleware.onFail === 'open' ? save(ctx) : undefined;
      try {
        const wait = layer.before(ctx);
        if (isThenable(wait)) await wait;
        else if (wait !== undefined) throw wrongReturn(layer, wait, 'nothing');
        preset = isPreset(ctx);
        if (preset) checkResult(layer, ctx);
      } catch (error) {
        preset = false;
        own(layer, `before${seamName(ctx)}`, error, undo);
      }
      ctx._call.check();
    }
  }
  if (!preset) {
    // A layer further in forks for itself; `final` reads this context but does not write to it.
    const inner = i < layers.length ? ctx._fork() : ctx;
    const result = await enter(layers, i, inner, final);
    if (inner !== ctx) ctx._adopt(inner as never);
    const seen = guardedView(layers[i - 1]!, ctx, result);
    ctx.result = (isThenable(seen) ? await seen : seen) as never;
  }
  let result: unknown = ctx.result;
  for (let k = contexts.length - 1; k >= 0; k--) {
    const layer = layers[start + k]!;
    const mine = contexts[k]!;
    if (k < contexts.length - 1) {
      mine._adopt(contexts[k + 1] as never);
      const seen = guardedView(layer, mine, result);
      mine.result = (isThenable(seen) ? await seen : seen) as never;
    }
    if (layer.after) {
      const before = mine.result;
      const undo = layer.middleware.onFail === 'open' ? save(mine) : undefined;
      try {
        const wait = layer.after(mine);
        if (isThenable(wait)) await wait;
        else if (wait !== undefined) throw wrongReturn(layer, wait, 'nothing');
        if (mine.result !== before) checkResult(layer, mine);
      } catch (error) {
        own(layer, `after${seamName(mine)}`, error, undo);
      }
      mine._call.check();
    }
    result = mine.result;
  }
  return result;
}

/** `afterRun` always follows `beforeRun`, also when the run failed, and has a time of its own for it. */
async function aroundRun(layers: readonly Layer[], layer: Layer, i: number, ctx: RunContext, final: Final): Promise<unknown> {
  try {
    await callHook(layer, 'beforeRun', layer.before, ctx);
    ctx._call.check();
    if (ctx.result === undefined) {
      const inner = ctx._fork();
      ctx.result = (await enter(layers, i + 1, inner, final)) as never;
      ctx._adopt(inner);
    } else checkResult(layer, ctx);
  } catch (error) {
    ctx.error = error;
  }
  if (layer.after) {
    const failed = ctx.error;
    ctx._scope = new Scope();
    const cancel = ctx._run.clock.setTimer(() => ctx._scope.abort(new AlliumError('MIDDLEWARE_ERROR', `afterRun of "${layer.name}" took longer than ${ctx._run.agent.teardownTimeoutMs} ms.`)), ctx._run.agent.teardownTimeoutMs);
    const before = ctx.result;
    try {
      await untilAborted(callHook(layer, 'afterRun', layer.after, ctx), ctx._scope);
      if (ctx.result !== before) checkResult(layer, ctx);
    } catch (error) {
      // One failing teardown must not hide why the run failed.
      if (failed === undefined) ctx.error = error;
      else ctx._run.note(layer.name, `afterRun failed: ${messageOf(error)}`);
    } finally {
      cancel();
    }
  }
  if (ctx.error !== undefined) throw ctx.error;
  return ctx.result;
}

/** Calls a hook that returns nothing; with `onFail: 'open'` what it assigned is undone when it throws. */
async function callHook(layer: Layer, hook: string, fn: ((ctx: any) => unknown) | undefined, ctx: LayerContext): Promise<void> {
  if (!fn) return;
  const undo = layer.middleware.onFail === 'open' ? save(ctx) : undefined;
  try {
    const answer = await fn(ctx);
    if (answer !== undefined) throw wrongReturn(layer, answer, 'nothing');
  } catch (error) {
    own(layer, hook, error, undo);
  }
}

/** One attempt a wrap layer made. */
interface Attempt {
  readonly ctx: LayerContext;
  readonly scope: Scope;
  settled: boolean;
  result?: unknown;
  error?: unknown;
  promise: Promise<unknown>;
}

async function runWrap(layers: readonly Layer[], layer: Layer, i: number, ctx: LayerContext, final: Final): Promise<unknown> {
  const attempts: Attempt[] = [];
  const undo = layer.middleware.onFail === 'open' ? save(ctx) : undefined;
  let over = false;
  const next = (override?: Record<string, unknown>): Promise<unknown> => {
    if (over) return Promise.reject(new AlliumError('MISSING_AWAIT', `Middleware "${layer.name}" called next() after its ${layer.hook} had ended. Await everything inside the hook.`));
    if (attempts.length > 0) {
      const refusal = repeat(layer, ctx);
      if (refusal) return Promise.reject(refusal);
    }
    const attempt = begin(layers, layer, i, ctx, final, attempts.length + 1, override);
    attempts.push(attempt);
    return attempt.promise;
  };
  try {
    const returned = await layer.wrap!(ctx, next);
    over = true;
    if (returned !== undefined) ctx.result = returned as never;
    const pending = attempts.filter((attempt) => !attempt.settled);
    if (pending.length > 0) await cancel(pending);
    if (ctx.result === undefined) throw noResult(layer, attempts, pending.length > 0);
    if (attempts.every((attempt) => attempt.result !== ctx.result)) checkResult(layer, ctx);
  } catch (error) {
    over = true;
    const pending = attempts.filter((attempt) => !attempt.settled);
    if (pending.length > 0) await cancel(pending);
    if (attempts.some((attempt) => attempt.settled && attempt.error === error && error !== undefined)) throw error;
    own(layer, layer.hook, error, undo);
    // It fails open: as if it were not there.
    const good = attempts.findLast((attempt) => attempt.result !== undefined);
    if (good) ctx.result = good.result as never;
    else if (attempts.length > 0) throw attempts.at(-1)!.error;
    else {
      const through = begin(layers, layer, i, ctx, final, 1);
      attempts.push(through);
      await through.promise;
    }
  }
  ctx._call.check();
  choose(layer, ctx, attempts);
  return ctx.result;
}

/** Starts an attempt in a fork of the context. */
function begin(layers: readonly Layer[], layer: Layer, i: number, ctx: LayerContext, final: Final, ordinal: number, override?: Record<string, unknown>): Attempt {
  const scope = new Scope(ctx._scope);
  const fork = ctx._fork(scope);
  if (ordinal > 1 && 'attempt' in fork) fork.attempt = ordinal;
  const attempt: Attempt = { ctx: fork, scope, settled: false, promise: undefined as never };
  attempt.promise = settle(attempt, layers, layer, i, ctx, final, override);
  // Whoever forgets to await it is told by MISSING_AWAIT, not by an unhandled rejection.
  attempt.promise.catch(ignore);
  return attempt;
}

async function settle(attempt: Attempt, layers: readonly Layer[], layer: Layer, i: number, ctx: LayerContext, final: Final, override?: Record<string, unknown>): Promise<unknown> {
  try {
    if (override !== undefined) applyOverride(layer, attempt.ctx, override);
    let result = await enter(layers, i + 1, attempt.ctx, final);
    if (ctx.seam === 'model' || layer.middleware.sink) {
      const seen = guardedView(layer, ctx, result);
      result = isThenable(seen) ? await seen : seen;
    }
    attempt.result = result;
    ctx.result = result as never;
    ctx._adopt(attempt.ctx as never);
    return result;
  } catch (error) {
    attempt.error = error;
    if (isControl(error)) ctx._run.cross(error, attempt.ctx);
    throw error;
  } finally {
    attempt.settled = true;
    attempt.scope.close();
  }
}

/** The catch of `onError`, around everything further in. */
async function runCatch(layers: readonly Layer[], layer: Layer, i: number, ctx: LayerContext, final: Final): Promise<unknown> {
  const call = ctx as ModelContext | ToolContext;
  for (let ordinal = 1; ; ordinal++) {
    const attempt = begin(layers, layer, i, ctx, final, ordinal);
    try {
      return await attempt.promise;
    } catch (error) {
      if (isControl(error) || attribution(error)?.final) throw error;
      call.attempt = ordinal;
      const model = 'model' in call ? call.model : undefined;
      let action: unknown;
      try {
        action = await layer.onError!(ctx, error);
      } catch (thrown) {
        if (thrown === error) throw error;
        own(layer, 'onError', thrown, layer.middleware.onFail === 'open' ? ignore : undefined);
      }
      ctx._call.check();
      ctx._scope.signal.throwIfAborted();
      if (action === undefined) throw error;
      if (action === 'fail') attribute(error, { hook: ctx.seam, middleware: layer.name }, { final: true });
      else if (action === 'restart' && ctx.seam === 'model' && ctx._run.mayRestart(layer.name)) throw new RestartTurn();
      else if (action === 'fallback' && (ctx.seam !== 'model' || ctx.model === model)) {
        throw new AlliumError('INVALID_HOOK_RESULT', `onError of "${layer.name}" returned 'fallback' without setting ctx.model. Set it, or return 'retry'.`, { cause: error });
      }
      if (action !== 'retry' && action !== 'fallback') {
        if (action === 'fail' || action === 'restart') throw error;
        throw new AlliumError('INVALID_HOOK_RESULT', `onError of "${layer.name}" returned ${shown(action)}. Return 'retry', 'fallback', 'restart', 'fail' or nothing.`, { cause: error });
      }
      const refusal = repeat(layer, ctx);
      if (refusal) throw Object.assign(refusal, { cause: error });
      ctx._run.note(layer.name, `${action} after: ${error instanceof Error ? error.message : String(error)}`);
    }
  }
}

/** Counts an inward call beyond the first, or says why there may be no more. */
function repeat(layer: Layer, ctx: LayerContext): AlliumError | undefined {
  if (ctx.seam === 'run') return new AlliumError('NEXT_TWICE', `Middleware "${layer.name}" called next() twice around a run. A run happens once; retry model or tool calls instead.`);
  if (++ctx._call.repeats < MAX_INWARD) return undefined;
  return new AlliumError('TOO_MANY_ATTEMPTS', `Middleware "${layer.name}" would make inward call ${MAX_INWARD + 1} of this ${ctx.seam} call. Bound its retries.`);
}

/** An exception of a layer's own: attributed and thrown, or undone when the middleware fails open. */
function own(layer: Layer, hook: string, error: unknown, undo: (() => void) | undefined): void {
  if (isControl(error) || !undo) {
    if (!isControl(error)) attribute(error, { middleware: layer.name, hook });
    throw error;
  }
  undo();
}

/** Keeps the attempt whose result was chosen; a replaced result still came from the last good attempt. */
function choose(layer: Layer, ctx: LayerContext, attempts: readonly Attempt[]): void {
  const last = attempts.findLast((attempt) => attempt.result !== undefined);
  const chosen = attempts.find((attempt) => attempt.result !== undefined && attempt.result === ctx.result) ?? last;
  if (chosen && chosen !== last) ctx._adopt(chosen.ctx as never);
  if (chosen?.result !== ctx.result) ctx._run.note(layer.name, chosen ? `replaced the ${ctx.seam} result` : `answered the ${ctx.seam} call itself`);
}

async function cancel(pending: readonly Attempt[]): Promise<void> {
  for (const attempt of pending) attempt.scope.abort(new Error('This attempt is no longer needed.'));
  await Promise.allSettled(pending.map((attempt) => attempt.promise));
}

/** A sink is shown what guards let through; the others what came from further in. */
function guardedView(layer: Layer, ctx: LayerContext, result: unknown): Promise<unknown> | unknown {
  return ctx._run.view(ctx, result, layer.middleware.sink === true);
}

function isPreset(ctx: LayerContext): boolean {
  return ctx.seam === 'tool' ? ctx.skip : ctx.result !== undefined;
}

function checkResult(layer: Layer, ctx: LayerContext): void {
  const problem = ctx._run.badResult(ctx);
  if (problem) throw new AlliumError('INVALID_HOOK_RESULT', `Middleware "${layer.name}" (${layer.hook}): ${problem}`);
}

function wrongReturn(layer: Layer, value: unknown, wanted: string): AlliumError {
  return new AlliumError('INVALID_HOOK_RESULT', `${layer.hook} of "${layer.name}" returned ${shown(value)}; it returns ${wanted}. Assign to the context instead.`);
}

function noResult(layer: Layer, attempts: readonly Attempt[], pending: boolean): AlliumError {
  if (pending) {
    return new AlliumError('MISSING_AWAIT', `${layer.hook} of "${layer.name}" ended while its next() was still pending. Write \`await next()\` or \`return next()\`.`);
  }
  const swallowed = attempts.findLast((attempt) => attempt.error !== undefined);
  return new AlliumError(
    'NO_RESULT',
    swallowed
      ? `${layer.hook} of "${layer.name}" swallowed an error and set no result. Rethrow it, or assign a result.`
      : `${layer.hook} of "${layer.name}" neither called next() nor set a result.`,
    { cause: swallowed?.error },
  );
}

function applyOverride(layer: Layer, fork: LayerContext, override: Record<string, unknown>): void {
  if (typeof override !== 'object' || override === null) throw wrongReturn(layer, override, 'an object of overrides to next()');
  checkKeys(`next() at the ${fork.seam} seam`, override, OVERRIDES[fork.seam]);
  Object.assign(fork, override);
}

/** Remembers the assignable fields of a context; the returned function puts them back. */
function save(ctx: LayerContext): () => void {
  const kept = { ...ctx } as Record<string, unknown>;
  return () => {
    Object.assign(ctx, kept);
  };
}

function seamName(ctx: Context): string {
  return ctx.seam === 'run' ? 'Run' : ctx.seam === 'model' ? 'Model' : 'Tool';
}

function ignore(): void {}
