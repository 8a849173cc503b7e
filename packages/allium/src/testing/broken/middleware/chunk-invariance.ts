/** Breaks `chunk-invariance`: it looks for a word in each piece of a stream, and misses it where a piece ends inside. */

import { defineMiddleware, type Middleware } from '../../../index.js';
export function piecewise(word = 'Rumpelstiltskin'): Middleware {
  return defineMiddleware({
    name: 'piecewise',
    beforeModel(ctx) {
      ctx.transform(() => ({
        part: (part, emit) =>
          emit(part.type === 'text' ? { ...part, text: part.text.replaceAll(word, '***') } : part),
      }));
    },
  });
}

/**
 * Breaks it in another way: it takes a piece that equals the one before for a mistake, even the second l of "hello".
 */
export function stutterCure(): Middleware {
  return defineMiddleware({
    name: 'stutter-cure',
    beforeModel(ctx) {
      ctx.transform(() => {
        let last: string | undefined;
        return {
          part(part, emit) {
            if (part.type === 'text' && part.text === last) return;
            last = part.type === 'text' ? part.text : undefined;
            emit(part);
          },
        };
      });
    },
  });
}
