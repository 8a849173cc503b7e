/** The onion on its own: wraps anything that has a context, outside any agent. */
import { AlliumError, shown } from './errors.js';
import type { MiddlewareList } from './middleware.js';

/** A layer of a pipeline: a function, or any object with `process`. */
export type PipelineLayer<C> = ((ctx: C, next: () => Promise<void>) => unknown) | { readonly name?: string; process(ctx: C, next: () => Promise<void>): unknown };

export interface Pipeline<C> {
  /** Also makes a pipeline usable where a middleware list is wanted. */
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
export function pipeline<C = any>(layers: readonly PipelineLayer<C>[]): Pipeline<C> {
  if (!Array.isArray(layers)) throw new AlliumError('INVALID_MIDDLEWARE', `Expected a list of layers, got ${shown(layers)}.`);
  return {
    layers: layers as unknown as MiddlewareList,
    async execute(ctx, final) {
      const run = async (index: number): Promise<void> => {
        const layer = layers[index];
        if (layer === undefined) return void (await final(ctx));
        const process = typeof layer === 'function' ? layer : layer.process?.bind(layer);
        if (typeof process !== 'function') throw new AlliumError('INVALID_MIDDLEWARE', `Layer ${index + 1} of the pipeline is ${shown(layer)}: it needs a process(ctx, next) method.`);
        let pending = 0;
        await process(ctx, async () => {
          pending++;
          try {
            await run(index + 1);
          } finally {
            pending--;
          }
        });
        if (pending > 0) throw new AlliumError('MISSING_AWAIT', `Layer ${index + 1} of the pipeline ended while its next() was still pending. Write \`await next()\`.`);
      };
      await run(0);
      return ctx;
    },
  };
}
