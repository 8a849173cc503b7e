/** Breaks `dangling-timers`: it clears its timer only when all goes well. */

import { type Clock, defineMiddleware, type Middleware } from '../../../index.js';
export function hopeful({ clock }: { clock: Clock }): Middleware {
  return defineMiddleware({
    name: 'hopeful',
    async wrapModel(_, next) {
      const cancel = clock.setTimer(() => {}, 60_000);
      const response = await next();
      cancel();
      return response;
    },
  });
}

/** Breaks it in another way: it waits without looking at the signal. */
export function deafBackOff({ clock }: { clock: Clock }): Middleware {
  return defineMiddleware({
    name: 'deaf-back-off',
    seams: ['model'],
    async onError(ctx) {
      if (ctx.attempt > 1) return undefined;
      await new Promise<void>((resolve) => clock.setTimer(resolve, 1000));
      return 'retry';
    },
  });
}

/** Breaks it in another way: it listens for an abort in every call, and never stops listening. */
export function eavesdropping(): Middleware {
  return defineMiddleware({
    name: 'eavesdropping',
    beforeModel(ctx) {
      ctx.signal.addEventListener('abort', () => {}, { once: true });
    },
  });
}
