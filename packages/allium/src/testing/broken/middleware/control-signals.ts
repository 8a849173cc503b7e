/** Breaks `control-signals`: it takes every end for a failure and makes something up. */

import { assistantMessage, defineMiddleware, isControl, type Middleware } from '../../../index.js';
import { controlKind } from '../../../kit/index.js';

export function unstoppable(): Middleware {
  return defineMiddleware({
    name: 'unstoppable',
    async wrapModel(_, next) {
      try {
        return await next();
      } catch (error) {
        if (!isControl(error)) throw error;
        return assistantMessage('Where were we?');
      }
    },
  });
}

/** Breaks it in another way: it tries again. */
export function stubborn(): Middleware {
  return defineMiddleware({
    name: 'stubborn',
    async wrapTool(_, next) {
      try {
        return await next();
      } catch (error) {
        if (controlKind(error) !== 'stop') throw error;
        return next();
      }
    },
  });
}

/** Breaks it in a third way: it counts, and gives up at some point. */
export function offended(): Middleware {
  let failures = 0;
  return defineMiddleware({
    name: 'offended',
    async wrapModel(_, next) {
      if (failures >= 5) throw new Error('The model failed too often.');
      try {
        return await next();
      } catch (error) {
        if (isControl(error)) failures++;
        throw error;
      }
    },
  });
}
