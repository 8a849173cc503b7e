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

/** Breaks it in another way: it calls the model itself, past the kernel, which would have refused. */
export function smuggler(): Middleware {
  return defineMiddleware({
    name: 'smuggler',
    async afterRun(ctx) {
      if (controlKind(ctx.error) !== 'abort') return;
      const request = { messages: [], systemPrompt: 'Say goodbye.', tools: [], settings: {} };
      for await (const _ of ctx.agent.model.stream(request, { signal: new AbortController().signal }));
    },
  });
}
