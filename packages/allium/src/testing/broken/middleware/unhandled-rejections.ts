/** Breaks `unhandled-rejections`: it makes a promise for the abort and looks at it too late. */

import { defineMiddleware, type Middleware } from '../../../index.js';
export function lateRace(): Middleware {
  return defineMiddleware({
    name: 'late-race',
    async wrapModel(ctx, next) {
      const { promise: aborted, stop } = abortOf(ctx.signal);
      try {
        const response = await next();
        return await Promise.race([response, aborted]);
      } finally {
        stop();
      }
    },
  });
}

function abortOf(signal: AbortSignal): { promise: Promise<never>; stop: () => void } {
  let tell = (): void => {};
  const promise = new Promise<never>((_, reject) => {
    tell = () => reject(signal.reason);
    signal.addEventListener('abort', tell, { once: true });
  });
  return { promise, stop: () => signal.removeEventListener('abort', tell) };
}
