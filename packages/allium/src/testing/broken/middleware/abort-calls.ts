/** Breaks `abort-calls`: it calls the model itself when a run was aborted, past the kernel, which would have refused. */

import { defineMiddleware, type Middleware } from '../../../index.js';
import { controlKind } from '../../../kit/index.js';

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
