/** Breaks `no-shared-state`: what it keeps between two hooks belongs to the instance, not to the run. */
import type { Message } from '../../../kernel/messages.js';
import { defineMiddleware, type Middleware } from '../../../kernel/middleware.js';

export function forgetful(): Middleware {
  let current: readonly Message[] = [];
  return defineMiddleware({
    name: 'forgetful',
    async beforeModel(ctx) {
      current = ctx.messages;
      await new Promise((resolve) => setImmediate(resolve));
      ctx.messages = current;
    },
  });
}

/** Breaks it in another way: it counts the calls of all runs where it means those of one. */
export function impatient(): Middleware {
  let calls = 0;
  return defineMiddleware({
    name: 'impatient',
    beforeModel(ctx) {
      if (++calls > 10) ctx.stop('max_turns', 'More than 10 turns.');
    },
  });
}
