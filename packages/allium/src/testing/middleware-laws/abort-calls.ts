/** The law `abort-calls`. */

import { eachInterruption } from './aftermath.js';
import type { MiddlewareCheck } from './context.js';

export const abortCalls: MiddlewareCheck<'abort-calls'> = {
  law: 'abort-calls',
  statement: 'After an abort, neither the model nor a tool is called again.',
  async check(context) {
    await eachInterruption(context, ({ calls }) => {
      if (calls > 0)
        throw new Error(
          `Expected no call of the model or a tool after the abort, got ${calls}. Look at ctx.signal first.`,
        );
    });
  },
};
