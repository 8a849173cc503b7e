/** Breaks `abort-calls`: it has the model say goodbye when a run was aborted. */
import { controlKind } from '../../../kernel/errors.js';
import { defineMiddleware, type Middleware } from '../../../kernel/middleware.js';

export function farewell(): Middleware {
  return defineMiddleware({
    name: 'farewell',
    async afterRun(ctx) {
      if (controlKind(ctx.error) === 'abort')
        await ctx.generate(ctx.agent.model, { messages: 'Say goodbye.' });
    },
  });
}
