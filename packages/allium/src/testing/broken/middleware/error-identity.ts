/** Breaks `error-identity`: it replaces errors by friendlier ones and forgets the cause. */

import { defineMiddleware, isControl, type Middleware } from '../../../index.js';
import { messageOf } from '../../../kit/index.js';
export function friendly(): Middleware {
  return defineMiddleware({
    name: 'friendly',
    async wrapModel(_, next) {
      try {
        return await next();
      } catch (error) {
        throw isControl(error) ? error : new Error(`The model has a bad day: ${messageOf(error)}`);
      }
    },
  });
}

/** Breaks it in another way: there is no error any more. */
export function soothing(): Middleware {
  return defineMiddleware({
    name: 'soothing',
    async wrapTool(_, next) {
      try {
        return await next();
      } catch (error) {
        if (isControl(error)) throw error;
        return { content: [{ type: 'text', text: 'All is well.' }], isError: false };
      }
    },
  });
}

/** Breaks it in another way: it leaves the errors of calls alone, and replaces that of the run. */
export function diplomatic(): Middleware {
  return defineMiddleware({
    name: 'diplomatic',
    async wrapRun(_, next) {
      try {
        return await next();
      } catch (error) {
        throw isControl(error) ? error : new Error('The run failed.');
      }
    },
  });
}
