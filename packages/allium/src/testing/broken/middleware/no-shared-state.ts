/** Breaks `no-shared-state`: what it keeps between two hooks belongs to the instance, not to the run. */

import {
  defineMiddleware,
  defineState,
  type Message,
  type Middleware,
  type ModelResponse,
  textOf,
} from '../../../index.js';
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

/** Breaks it in another way: it counts the calls of all runs instead of those of one. */
export function impatient(): Middleware {
  let calls = 0;
  return defineMiddleware({
    name: 'impatient',
    beforeModel(ctx) {
      if (++calls > 10) ctx.stop('max_turns', 'More than 10 turns.');
    },
  });
}

/** Breaks it in another way: it keeps answers by the last message, regardless of what was said before it. */
export function shortSighted(): Middleware {
  const answers = new Map<string, ModelResponse>();
  return defineMiddleware({
    name: 'short-sighted',
    async wrapModel(ctx, next) {
      const key = textOf(ctx.messages.at(-1)!);
      const known = answers.get(key);
      if (known) return known;
      const answer = await next();
      answers.set(key, answer);
      return answer;
    },
  });
}

/** Breaks it in another way: it counts the calls of a session instead of those of one run. */
export function weary(): Middleware {
  const calls = defineState({ name: 'calls', scope: 'session', initial: 0 });
  return defineMiddleware({
    name: 'weary',
    state: [calls],
    beforeModel(ctx) {
      ctx.state.update(calls, (count) => count + 1);
      if (ctx.state.get(calls) > 10) ctx.stop('max_turns', 'More than 10 turns.');
    },
  });
}
