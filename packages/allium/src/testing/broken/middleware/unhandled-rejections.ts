/** Breaks `unhandled-rejections`: it makes a promise for the abort and looks at it too late. */
import { defineMiddleware, type Middleware } from '../../../kernel/middleware.js';

export function lateRace(): Middleware {
  return defineMiddleware({
    name: 'late-race',
    async wrapModel(ctx, next) {
      const aborted = new Promise<never>((_, reject) => {
        ctx.signal.addEventListener('abort', () => reject(ctx.signal.reason), { once: true });
      });
      const response = await next();
      return Promise.race([response, aborted]);
    },
  });
}
