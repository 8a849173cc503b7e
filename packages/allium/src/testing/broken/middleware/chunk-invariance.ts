/** Breaks `chunk-invariance`: it looks for a word in each piece of a stream, and misses it where a piece ends inside. */
import { defineMiddleware, type Middleware } from '../../../kernel/middleware.js';

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
