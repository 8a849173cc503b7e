/** The onion on its own: wraps anything that has a context, outside any agent. */

import { AlliumError, shown } from '../kernel/lib/errors.js';
import * as kinds from '../kernel/lib/kinds.js';
import { checkValue } from '../kernel/lib/shapes.js';
import type { Middleware, MiddlewareList } from '../kernel/protocol/middleware.js';

/** A layer of a pipeline: a function, any object with `process`, or (inside an agent only) any other middleware. */
export type PipelineLayer<C> = PipelineFunction<C> | PipelineObject<C> | Pipeline<C>;

type PipelineFunction<C> = (ctx: C, next: () => Promise<void>) => unknown;

interface PipelineObject<C> extends Omit<Middleware, 'process'> {
  process?(ctx: C, next: () => Promise<void>): unknown;
}

export interface Pipeline<C> {
  /** Lets a pipeline stand in for a middleware list. */
  readonly layers: MiddlewareList;
  /** Runs `final` inside the layers, the first outermost. Layers and `final` read and write the context. */
  execute(ctx: C, final: (ctx: C) => unknown): Promise<C>;
}

/**
 * Threads layers together. A layer may call `next()` several times (each runs what is inside again), or not at all.
 *
 * @example
 * const timed = pipeline([async (ctx, next) => { const t = Date.now(); await next(); ctx.ms = Date.now() - t; }]);
 * await timed.execute({ ms: 0 }, async () => { await work(); });
 */
// biome-ignore lint/suspicious/noExplicitAny: layers that are written in place read any field of their context.
export function pipeline<C = any>(layers: readonly PipelineLayer<C>[]): Pipeline<C> {
  if (!Array.isArray(layers))
    throw new AlliumError('INVALID_MIDDLEWARE', `Expected a list of layers, got ${shown(layers)}.`);
  const list = layers.flatMap((layer, index) => layersIn(layer, index));
  return {
    layers: list as readonly Middleware[],
    async execute(ctx, final) {
      checkValue('final', kinds.func(), final);
      const lost = list.findIndex((layer) => typeof layer.process !== 'function');
      if (lost >= 0)
        throw new AlliumError(
          'INVALID_MIDDLEWARE',
          `${nameOf(list, lost)} has no process(ctx, next). Its hooks only work in an agent: pass the pipeline as \`middleware\`.`,
        );
      await goIn(list, 0, ctx, final);
      return ctx;
    },
  };
}

function layersIn<C>(layer: PipelineLayer<C>, index: number): readonly PipelineObject<C>[] {
  if (typeof layer === 'function') return [{ ...(layer.name && { name: layer.name }), process: layer }];
  if (typeof layer !== 'object' || layer === null)
    throw new AlliumError(
      'INVALID_MIDDLEWARE',
      `Layer ${index + 1} of the pipeline is ${shown(layer)}: it needs a process(ctx, next) method.`,
    );
  return 'layers' in layer && Array.isArray(layer.layers) ? layer.layers : [layer as PipelineObject<C>];
}

/** Layer `index` and what is inside it. */
async function goIn<C>(
  layers: readonly PipelineObject<C>[],
  index: number,
  ctx: C,
  final: (ctx: C) => unknown,
): Promise<void> {
  const layer = layers[index];
  if (layer === undefined) return void (await final(ctx));
  const wrong = (what: string) => new AlliumError('MISSING_AWAIT', `${nameOf(layers, index)} ${what}`);
  const pending = new Set<Promise<void>>();
  let ended = false;
  const next = (): Promise<void> => {
    const inner = ended
      ? Promise.reject(wrong('called next() after it had ended. Await everything in it.'))
      : goIn(layers, index + 1, ctx, final);
    pending.add(inner);
    const done = () => void pending.delete(inner);
    inner.then(done, done);
    return inner;
  };
  let failure: { readonly error: unknown } | undefined;
  try {
    await layer.process!(ctx, next);
  } catch (error) {
    failure = { error };
  }
  ended = true;
  const forgotten = pending.size > 0;
  // Nothing of a pipeline is still running when it has ended.
  while (pending.size > 0) await Promise.allSettled(pending);
  if (failure) throw failure.error;
  if (forgotten) throw wrong('ended while its next() was still pending. Write `await next()`.');
}

function nameOf(layers: readonly Pick<Middleware, 'name'>[], index: number): string {
  const { name } = layers[index]!;
  return `Layer ${index + 1} of the pipeline${name ? ` ("${name}")` : ''}`;
}
